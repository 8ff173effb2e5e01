"""`python -m paper.exact`: train, test and prove the seeds, then write the page."""

from __future__ import annotations

import argparse
from pathlib import Path

from carryscope.cli.bars import bars
from carryscope.core.storage import read_json, write_bytes, write_json
from paper.exact.page import exact_page
from paper.exact.study import ExactStudy, study_exact

ROOT = Path(__file__).parents[2]
RECORD, PAGE = ROOT / "paper/results/exact.json", ROOT / "docs/exact-adders.md"


def main() -> None:
    """Study the seeds, unless only the page is wanted."""
    parser = argparse.ArgumentParser(prog="python -m paper.exact", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/exact"), help="where the runs are")
    parser.add_argument("--workers", type=int, help="local processes; default: one per core")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    options = parser.parse_args()
    if not options.page:
        with bars() as progress:
            found = study_exact(options.out, workers=options.workers, progress=progress)
        write_json(RECORD, found)
    write_bytes(PAGE, exact_page(read_json(RECORD, ExactStudy)).encode())
    print(PAGE)


if __name__ == "__main__":
    main()
