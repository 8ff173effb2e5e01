"""Numbers from the losses of a training, step by step.

In: one `StepRecord` per step. Out: when digits and tasks are learnt within the steps that the
paper's figures show, and the values of single batches, which are what its tables print.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

import numpy as np

from carryscope.dissection.loss_curve import LossCurve, task_curves, token_curves
from carryscope.dissection.story import LEARNT_LOSS
from carryscope.task.columns import Task
from carryscope.task.operation import BASE
from carryscope.task.tokens import Format
from carryscope.training.losses import StepRecord
from carryscope.training.summary import LAST_STEPS

SHOWN = 1500
"""Steps that the paper's loss curves show."""

HALF_OF_GUESSING = math.log(BASE) / 2
"""A digit counts as learnt where its loss stays below half of what guessing costs."""


def learnt(curve: LossCurve, level: float = HALF_OF_GUESSING) -> int:
    """The step from which a smoothed loss stays below a level; never counts as the last step."""
    return curve.stays_below(level) or int(curve.steps[-1])


def highest_lead(metrics: Sequence[StepRecord], layout: Format) -> float:
    """Steps from the highest digit, which is 0 or 1, being learnt to the next digit."""
    found = token_curves(list(metrics[:SHOWN]), layout.answer_names)
    first = learnt(found.pop(f"A{layout.digits}"), math.log(2) / 2)
    return min(learnt(found[f"A{k}"]) for k in range(layout.digits)) - first


def uc1_lag(metrics: Sequence[StepRecord], layout: Format) -> float:
    """Steps from BA to UC1, in the digit of A1 to A3 where it is least."""
    found = task_curves(list(metrics[:SHOWN]), layout.answer_names)
    return min(
        learnt(found[f"A{k}", Task.UC1]) - learnt(found[f"A{k}", Task.BA]) for k in (1, 2, 3)
    )


def top_column_lead(metrics: Sequence[StepRecord], layout: Format) -> float:
    """How much less loss the highest column's digit has than those below, in its worst task."""
    found = task_curves(list(metrics[:SHOWN]), layout.answer_names)

    def mean(k: int, task: Task) -> float:
        curve = found[f"A{k}", task]
        return float(np.nansum(curve.losses * curve.counts) / curve.counts.sum())

    top = layout.digits - 1
    return min(fmean(mean(k, task) for k in range(1, top)) - mean(top, task) for task in Task)


def steps_to_learn(metrics: Sequence[StepRecord]) -> float:
    """The step from which the loss over all digits stays below half of ln 2."""
    steps = np.array([record.step for record in metrics])
    losses = np.array([record.loss for record in metrics])
    return learnt(LossCurve(steps, losses, np.ones_like(steps)), LEARNT_LOSS)


def last_batches(metrics: Sequence[StepRecord], layout: Format) -> dict[str, list[float]]:
    """The losses of each of the last 100 batches, and the mix of tasks over all of them."""
    last = metrics[-LAST_STEPS:]
    found = {"loss": [record.loss for record in last]}
    if layout.digits == 5:
        for i, name in enumerate(layout.answer_names):
            found[f"loss of {name}"] = [record.digit_loss[i] for record in last]
        for task in Task:
            found[f"loss on {task.name}"] = [_task_loss(record, task, layout) for record in last]
            found[f"share of {task.name}"] = [_share(metrics, task, layout)]
    return found


def _task_loss(record: StepRecord, task: Task, layout: Format) -> float:
    """The mean over the digits that have a column, each by the questions of the task it has."""
    losses = [loss for loss in record.task_loss[task.name][-layout.digits :] if loss is not None]
    return fmean(losses) if losses else 0.0


def _share(metrics: Sequence[StepRecord], task: Task, layout: Format) -> float:
    """How many of all digits that were trained on were of a task."""
    counts = [np.array(list(record.task_count.values()))[:, -layout.digits :] for record in metrics]
    total = np.sum(counts, axis=0).sum(axis=1)
    return float(total[list(metrics[0].task_count).index(task.name)] / total.sum())
