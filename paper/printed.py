"""Numbers that the paper prints, next to the same quantity in our draws.

In: a draw. Out: its values of these quantities, for its record. In: records. Out: for each printed
number its percentile. The paper's notebook prints the losses of the last batch. So a printed loss
is compared with single batches, the last 100 of every draw, not with a mean. A number with three
decimals stands for all that round to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from carryscope.task.columns import Task
from carryscope.training.losses import StepRecord
from carryscope.training.summary import LAST_STEPS
from paper.claims import DrawRecord, estimands_of
from paper.draw import Draw

USUAL = (0.05, 0.95)
"""A printed number is usual if it lies between these percentiles."""


@dataclass(frozen=True)
class Printed:
    """One number of the paper."""

    where: str
    what: str
    text: str
    """As the paper prints it."""
    quantity: str
    """The name of the same quantity in the records."""
    recipe: str = "paper-5"
    cut: bool = False
    """Whether it was cut to its decimals, not rounded."""

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest number that would be printed so."""
        if self.text.startswith("<"):
            return 0.0, float(self.text[1:])
        value, unit = float(self.text), 10 ** -len(self.text.partition(".")[2])
        return (value, value + unit) if self.cut else (value - unit / 2, value + unit / 2)


TABLE_2 = {"A5": "<0.001", "A4": "<0.001", "A3": "0.003", "A2": "0.008", "A1": "0.046"}
TABLE_2["A0"] = "0.001"
"""Final training loss by digit, as printed."""

NUMBERS = (
    Printed("Table 1", "final training loss, 5 digits", "0.009", "loss"),
    Printed("Table 1", "final training loss, 10 digits", "0.011", "loss", "paper-10"),
    Printed("Table 1", "final training loss, 15 digits", "0.031", "loss", "paper-15"),
    Printed("Table 3", "final training loss on BA", "0.021", "loss on BA"),
    Printed("Table 3", "final training loss on MC1 (UC1)", "0.001", "loss on UC1"),
    Printed("Table 3", "final training loss on US9", "<0.001", "loss on US9"),
    Printed("Appendix H", "share of BA in the training data", "0.61", "share of BA", cut=True),
    Printed("Appendix H", "share of MC1 (UC1)", "0.33", "share of UC1", cut=True),
    Printed("Appendix H", "share of US9", "0.06", "share of US9", cut=True),
    Printed("§7", "loss on BA questions, all heads", "0.05", "BA, all heads"),
    Printed("Table 6", "without head 0", "0.016", "BA, without the least needed head"),
    Printed("Table 6", "without head 2", "0.062", "BA, without the next needed head"),
    Printed("Table 6", "without head 1", "4.712", "BA, without the most needed head"),
)


def table_2(*, token_order: bool) -> list[Printed]:
    """Table 2 by digit: as printed, or in the order in which the notebook lists the tokens."""
    names = list(TABLE_2)
    meant = names[::-1] if token_order else names
    return [
        Printed("Table 2", f"final training loss of {name}", TABLE_2[row], f"loss of {name}")
        for name, row in sorted(zip(meant, names, strict=True), reverse=True)
    ]


@dataclass(frozen=True)
class Placed:
    """A printed number among the values of our draws."""

    printed: Printed
    median: float
    percentile: tuple[float, float]
    """The share of values below all that would be printed so, and of those not above them."""
    of: int

    @property
    def rank(self) -> str:
        """The percentile as text; a range if many values round to the number."""
        low, high = (f"{100 * share:.0f}" for share in self.percentile)
        return low if low == high else f"{low} to {high}"

    @property
    def usual(self) -> bool:
        """Whether it is neither among the smallest values nor among the largest."""
        return self.percentile[1] >= USUAL[0] and self.percentile[0] <= USUAL[1]


def placed(numbers: Sequence[Printed], records: Sequence[DrawRecord]) -> Iterator[Placed]:
    """Each number among the values of all draws of its recipe; without a draw, not at all."""
    for one in numbers:
        drawn = [r.printed.get(one.quantity, []) for r in records if r.recipe == one.recipe]
        values = np.array([value for draw in drawn for value in draw])
        if len(values):
            low, high = one.ends
            ranks = float((values < low).mean()), float((values <= high).mean())
            yield Placed(one, float(np.median(values)), ranks, len(values))


def quantities(draw: Draw, recipe: str) -> dict[str, list[float]]:
    """The quantities that the paper prints, measured as its notebook does."""
    found = last_batches(draw)
    if draw.digits == 5 and "second_ba_head" in estimands_of(recipe):
        whole, *without = map(float, draw.base_add_losses)
        found["BA, all heads"] = [whole]
        for place, loss in zip(("least", "next", "most"), sorted(without), strict=True):
            found[f"BA, without the {place} needed head"] = [loss]
    return found


def last_batches(draw: Draw) -> dict[str, list[float]]:
    """The losses of each of the last 100 batches, and the mix of tasks over all of them."""
    last = draw.metrics[-LAST_STEPS:]
    found = {"loss": [record.loss for record in last]}
    if draw.digits == 5:
        for i, name in enumerate(draw.layout.answer_names):
            found[f"loss of {name}"] = [record.digit_loss[i] for record in last]
        counts = {task: _count(draw, task) for task in Task}
        for task in Task:
            found[f"loss on {task.name}"] = [_task_loss(draw, record, task) for record in last]
            found[f"share of {task.name}"] = [counts[task] / sum(counts.values())]
    return found


def _task_loss(draw: Draw, record: StepRecord, task: Task) -> float:
    """The mean over the digits that have a column, each by the questions of the task it has."""
    losses = [loss for loss in record.task_loss[task.name][-draw.digits :] if loss is not None]
    return fmean(losses) if losses else 0.0


def _count(draw: Draw, task: Task) -> int:
    """How many digits of a task were trained on, of those that have a column."""
    return sum(sum(record.task_count[task.name][-draw.digits :]) for record in draw.metrics)
