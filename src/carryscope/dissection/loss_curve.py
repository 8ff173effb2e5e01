"""One loss over the steps of a training, smoothed to find the step at which it fell.

In: per step a mean loss and the number of questions behind it. Out: a `LossCurve`, which
weighs each batch by its questions: three questions of class US9 count less than sixty of BA.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from numpy.lib.stride_tricks import sliding_window_view

from carryscope.task.columns import Task
from carryscope.task.operation import Array
from carryscope.training.losses import StepRecord

WINDOW = 51
"""Steps averaged for a smoothed loss, centred. A batch of 64 has about three questions of class
US9 for a digit, too few for a loss. 51 batches have 150."""

WINDOW_OF_RUN = 20
"""A window is at most one part in so many of a run, so that short runs keep their shape."""


@dataclass(frozen=True, eq=False)
class LossCurve:
    """The losses of an answer token, on all questions or on those of one task."""

    steps: Int[Array, " step"]
    losses: Float[Array, " step"]
    """Mean over the questions of the step; not a number where there were none."""
    counts: Int[Array, " step"]
    """How many questions that were."""

    @property
    def reach(self) -> int:
        """Steps of the window on either side."""
        return (max(1, min(WINDOW, len(self.steps) // WINDOW_OF_RUN)) - 1) // 2

    @cached_property
    def smooth(self) -> Float[Array, " step"]:
        """The mean over all questions of the window around each step, cut off at both ends.

        Not a number where the window had no question.
        """
        sums = np.where(self.counts, self.losses, 0.0) * self.counts
        padded = np.pad(np.stack([sums, self.counts]), ((0, 0), (self.reach, self.reach)))
        sums, counts = sliding_window_view(padded, 2 * self.reach + 1, axis=1).sum(axis=-1)
        return np.where(counts, sums / np.maximum(counts, 1), np.nan)

    def stays_below(self, level: float) -> int | None:
        """The first step from which the smoothed loss stays below the level."""
        known = np.flatnonzero(~np.isnan(self.smooth))
        high = np.flatnonzero(self.smooth[known] >= level)
        after = known[high[-1] + 1 :] if len(high) else known
        return int(self.steps[after[0]]) if len(after) else None

    def points(self, kept: Int[Array, " point"]) -> list[float | None]:
        """The smoothed losses at some of the steps, to six digits."""
        return [None if math.isnan(x) else float(f"{x:.6g}") for x in self.smooth[kept]]


def token_curves(metrics: list[StepRecord], names: list[str]) -> dict[str, LossCurve]:
    """The curve of each answer token on all questions."""
    steps = np.array([record.step for record in metrics])
    losses = np.array([record.digit_loss for record in metrics])
    batch = np.array([_batch(record) for record in metrics])
    return {name: LossCurve(steps, losses[:, i], batch) for i, name in enumerate(names)}


def _batch(record: StepRecord) -> int:
    """Questions of a step. A sign belongs to no task; each digit of each question to one."""
    return max([1, *map(sum, zip(*record.task_count.values(), strict=True))])


def task_curves(metrics: list[StepRecord], names: list[str]) -> dict[tuple[str, Task], LossCurve]:
    """The curve of each answer token on the questions of each task."""
    steps = np.array([record.step for record in metrics])
    no_loss, no_count = [None] * len(names), [0] * len(names)
    curves: dict[tuple[str, Task], LossCurve] = {}
    for task in Task:
        losses = np.array([r.task_loss.get(task.name, no_loss) for r in metrics], dtype=float)
        counts = np.array([r.task_count.get(task.name, no_count) for r in metrics])
        for i, name in enumerate(names):
            curves[name, task] = LossCurve(steps, losses[:, i], counts[:, i])
    return curves
