"""What is kept of a draw: one small record. A draw is one training of a recipe.

Its record has the number of every estimand that claims need of the recipe, and the values of the
quantities that the paper prints: all that it takes to judge the claims again.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from paper.study import RESULTS, read_records

DRAWS = "draws"
"""Where records are among the results: draws/<recipe>/<seed>.json."""


class DrawRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One draw of a recipe."""

    package_version: str
    weights_sha256: str
    machine: str
    recipe: str
    """The name of its preset."""
    seed: int
    steps: int
    heads: list[str]
    """What each head reads, `own column` first; `no column` if it has no staircase."""
    held_out_loss: float
    numbers: dict[str, float | None]
    """By estimand. Null if the draw has none, such as no head of a role."""
    untrained: dict[str, float | None] = {}
    """The same for the initial weights of the draw, where a claim is true of any model."""
    printed: dict[str, list[float]] = {}
    """By quantity that the paper prints: its value, or that of each of the last 100 batches."""


def draw_name(recipe: str, seed: int) -> str:
    """What the run and the record of a draw are called."""
    return f"{recipe}/{seed}"


def read_draws(results: Path = RESULTS) -> list[DrawRecord]:
    """The records of all draws."""
    return read_records(results / DRAWS, DrawRecord)
