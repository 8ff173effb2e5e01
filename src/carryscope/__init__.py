"""carryscope: train small transformers to add, see how they do it, know where they fail.

import carryscope

run = carryscope.load()            # the model that comes with the package
run = carryscope.load("runs/study")
model = run.model()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from carryscope.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from carryscope.stages import Run

__all__ = ["__version__", "load"]


def load(directory: Path | str | None = None) -> Run:
    """The run in a directory, or the one that comes with the package."""
    from carryscope.stages import SHIPPED, Run

    return Run(SHIPPED if directory is None else directory)
