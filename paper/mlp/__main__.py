"""`python -m paper.mlp`: the study of the MLP, from training to page."""

from __future__ import annotations

from pathlib import Path

import cyclopts

from carryscope.cli.bars import bars
from carryscope.cli.console import print_plain
from carryscope.core.storage import read_json, write_json
from paper.mlp.page import RECORD, write_study
from paper.mlp.study import MlpStudy, study
from paper.records import RESULTS


def main(*, runs: Path = Path("runs/mlp-study"), out: Path = RESULTS, pages: bool = False) -> None:
    """Train the base and its variants (about an hour), compare them, and write the page.

    Parameters
    ----------
    runs
        Where the runs are. What is there is continued.
    out
        Where the record and the page go.
    pages
        Only write the page of the record that is in OUT again.
    """
    if not pages:
        with bars() as progress:
            write_json(out / RECORD, study(runs, progress=progress))
    print_plain(str(write_study(read_json(out / RECORD, MlpStudy), out)))


if __name__ == "__main__":
    cyclopts.run(main)
