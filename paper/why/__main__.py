"""`python -m paper.why`: train and measure the models, then write the page."""

from __future__ import annotations

import argparse
from pathlib import Path

from carryscope.cli.bars import bars
from carryscope.core.storage import read_json, write_bytes, write_json
from paper.why.page import why_figure, why_page
from paper.why.study import WhyStudy, study_why

ROOT = Path(__file__).parents[2]
RECORD, PAGE = ROOT / "paper/results/why.json", ROOT / "docs/why-it-fails.md"


def main() -> None:
    """Train what is missing, unless only the page is wanted."""
    parser = argparse.ArgumentParser(prog="python -m paper.why", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/why"), help="where the runs are")
    parser.add_argument("--workers", type=int, help="local processes; default: one per core")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    options = parser.parse_args()
    if not options.page:
        with bars() as progress:
            found = study_why(options.out, workers=options.workers, progress=progress)
        write_json(RECORD, found)
    write_page(read_json(RECORD, WhyStudy))
    print(PAGE)


def write_page(found: WhyStudy) -> None:
    """The page and its figure, from the record."""
    write_bytes(PAGE.with_suffix(".svg"), why_figure(found).svg().encode())
    write_bytes(PAGE, why_page(found, PAGE.with_suffix(".svg").name).encode())


if __name__ == "__main__":
    main()
