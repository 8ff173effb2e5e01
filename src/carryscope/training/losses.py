"""The loss, and its record per step: by answer digit, and by task within each digit.

In: log-probabilities of a batch. Out: the loss to minimise, and a `StepRecord`. In the
record of a five-digit model `digit_loss` has six numbers, for A5 .. A0 in this order.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import msgspec
import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from carryscope.core.words import sparkline
from carryscope.task.columns import Columns
from carryscope.task.operation import Array
from carryscope.task.tokens import Format

SMOOTHING = 0.95
"""How much of the recent loss is carried over from step to step."""


READING = 0.5
"""What it costs to read a slot at all, as a share of what it costs to read many: a head that has
nothing to find at a row turns to a token that is the same in every question."""


LEAST_READ = 1e-9
"""A column that gets less of all heads' attention costs no more: a logarithm needs an end."""


class StepRecord(msgspec.Struct, frozen=True):
    """One line of `metrics.jsonl`. All losses are teacher-forced, on the training batch."""

    step: int
    """Counted from 1: the record of the batch that made this step."""
    loss: float
    """Mean over all answer tokens."""
    digit_loss: list[float]
    """Mean per answer token, in the order the model writes them."""
    task_loss: dict[str, list[float | None]]
    """By task class (BA, UC1, US9; in subtraction MD, UB, UZ), per answer token; null where the
    batch had no case."""
    task_count: dict[str, list[int]]
    """How many questions of the batch are behind each of those."""


def token_losses(
    chances: Float[Tensor, "batch answer token"], target: Int[Tensor, "batch answer"]
) -> Float[Tensor, "batch answer"]:
    """Negative log-probability of each true answer token."""
    return -chances.gather(-1, target[..., None])[..., 0]


def blur(pattern: Float[Tensor, "batch head answer key"], layout: Format) -> Float[Tensor, ""]:
    """How far heads are from reading one slot each, or none, averaged over heads and answer rows.

    A *slot* is a column (both its digits), or an answer token before the last one read. Tokens that
    a row knows (the operator, "=", the last token read) are no slots. A head whose whole attention
    is on one slot has `READING`, one without attention on slots 0, one that spreads it nearly 1.
    """
    n, first = layout.digits, layout.first_row
    columns = pattern[..., :n] + pattern[..., n + 1 : first]
    earlier = pattern[..., first + 1 :].tril(-2)
    shares = torch.cat([columns, earlier], dim=-1)
    return (shares * (1 + READING - shares)).sum(-1).mean()


def unread(pattern: Float[Tensor, "batch head answer key"], layout: Format) -> Float[Tensor, ""]:
    """How far heads are from reading, at each answer row, all columns that can decide its digit.

    A3 can be decided by column 3 and every column below it, A_n and the sign by all columns. A
    column is read by as much as some head reads it; its cost is minus the logarithm of that, so
    that a head is drawn to it even where none attends to it yet.
    """
    n = layout.digits
    columns = (pattern[..., :n] + pattern[..., n + 1 : layout.first_row]).mean(0)
    read = 1 - (1 - columns).prod(0)
    can_decide = torch.ones_like(read, dtype=torch.bool).triu(-1 - layout.signs)
    return -(read[can_decide] + LEAST_READ).log().mean()


def step_record(step: int, losses: Float[Array, "batch answer"], columns: Columns) -> StepRecord:
    """The record of one step. A sign token belongs to no task."""
    signs = losses.shape[1] - columns.digits - 1
    counts: dict[str, list[int]] = {}
    sums: dict[str, list[float]] = {}
    for name in columns.operation.classes:
        cases = np.pad(columns.in_task(name)[:, ::-1], ((0, 0), (signs, 0)))
        counts[name] = cases.sum(axis=0).tolist()
        sums[name] = (losses * cases).sum(axis=0).tolist()
    return StepRecord(
        step=step,
        loss=_short(losses.mean()),
        digit_loss=[_short(x) for x in losses.mean(axis=0)],
        task_loss={
            name: [_short(s / c) if c else None for s, c in zip(sums[name], of, strict=True)]
            for name, of in counts.items()
        },
        task_count=counts,
    )


class RecentLoss:
    """The loss of each answer token, averaged over recent steps: single steps swing wildly."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._losses: list[float] = []
        self._means: list[float] = []

    def after(self, record: StepRecord) -> str:
        """The loss so far and now, and its worst token: "loss █▆▅▂▁ 0.0812 worst A3 0.2101"."""
        before = self._losses or record.digit_loss
        pairs = zip(before, record.digit_loss, strict=True)
        self._losses = [SMOOTHING * old + (1 - SMOOTHING) * new for old, new in pairs]
        worst, name = max(zip(self._losses, self._names, strict=True), key=lambda pair: pair[0])
        self._means.append(fmean(self._losses))
        line = sparkline(self._means)
        return f"loss {line} {self._means[-1]:.4f} worst {name} {worst:.4f}"


def _short(number: float) -> float:
    """Six significant digits: plenty for a curve, and half the file."""
    return float(f"{number:.6g}")
