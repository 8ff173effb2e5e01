"""What is kept of a draw: one small record, and where the records are.

In: the directory of the results. Out: `DrawRecord`s. A draw is one training of a recipe. Its record
has the number of every estimand that claims need of the recipe, and the values of the quantities
that the paper prints. Neither weights nor findings are needed to judge the claims again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from carryscope.core.storage import read_json, write_bytes
from carryscope.stages import Stage

RESULTS = Path(__file__).parent / "results"
"""The committed results."""

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

    @property
    def name(self) -> str:
        """What its run is called."""
        return run_name(self.recipe, self.seed)


DRAW = Stage("draw", "the record of a draw", DrawRecord)


def run_name(recipe: str, seed: int) -> str:
    """What the run of a draw is called."""
    return f"{recipe}-{seed}"


def read_records(results: Path = RESULTS) -> list[DrawRecord]:
    """All records, by recipe and seed."""
    files = sorted((results / DRAWS).glob("*/*.json"), key=lambda f: (f.parent.name, int(f.stem)))
    return [read_json(file, DrawRecord) for file in files]


def write_records(records: Sequence[DrawRecord], results: Path) -> None:
    """Add records to the results, in place of older ones of the same draw."""
    for record in records:
        file = results / DRAWS / record.recipe / f"{record.seed}.json"
        write_bytes(file, msgspec.json.encode(record) + b"\n")
