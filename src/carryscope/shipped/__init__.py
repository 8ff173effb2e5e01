"""Trained models that come with the package, by name.

In: what a person calls a run. Out: its directory. Nothing is loaded here.
"""

from __future__ import annotations

import os.path
from pathlib import Path

SHIPPED = Path(__file__).parent

DEFAULT_MODEL = "fast-5"
"""The shipped model that is meant where no run is named."""


def run_directory(run: Path | str | None) -> Path:
    """The directory of a run: where it is, or of a shipped model if there is no such place.

    What a person types may be longer than any name of a file, which `os.path` takes for no file.
    """
    shipped = SHIPPED / str(run or DEFAULT_MODEL)
    known = shipped.parent == SHIPPED and os.path.isdir(shipped)  # noqa: PTH112
    there = run is not None and os.path.exists(run)  # noqa: PTH110
    return shipped if run is None or (known and not there) else Path(run)


def typed(directory: Path) -> str:
    """What one types for a run: its directory, or the name of a shipped model."""
    return directory.name if directory.parent == SHIPPED else str(directory)


def exact_model(digits: int, *, other_than: Path) -> Path | None:
    """The shipped model that is proved right on numbers of so many digits, if there is another."""
    exact = SHIPPED / f"exact-{digits}"
    return exact if exact.is_dir() and exact != other_than.resolve() else None
