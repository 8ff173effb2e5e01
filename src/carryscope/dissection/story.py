"""How a training went: what was learnt, when, and in which order.

In: the metrics of a run. Out: a `TrainingStory`: smoothed curves, the step at which each
(answer digit, task) was learnt, and the paper's three phases. `A3 UC1` is the answer digit A3 on
questions of class UC1, such as 00800+00400=001200.

All losses are those of the training batches: teacher-forced, on the recipe's own mix of
questions, which may change during training. So an order found here belongs to a recipe as much
as to a model. `fast-5`, for example, starts its heads one by one and shows many nines early.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np
from jaxtyping import Float, Int
from numpy.lib.stride_tricks import sliding_window_view

from carryscope.core.errors import CallError
from carryscope.core.words import listed
from carryscope.task.operation import BASE, Array
from carryscope.task.tokens import Format
from carryscope.training.losses import StepRecord

WINDOW = 51
"""Steps averaged for a smoothed loss, centred. A batch of 64 has about three questions of class
US9 for a digit, too few for a loss. 51 batches have 150."""

WINDOW_OF_RUN = 20
"""A window is at most one part in so many of a run, so that short runs keep their shape."""

CURVE_POINTS = 100
"""Points kept of each curve: as many as a small picture can show."""

LEARNT_LOSS = math.log(2) / 2
"""A pair is learnt at the step from which its smoothed loss stays below this, 0.35 nats. Guessing
a digit costs ln 10 = 2.30. Knowing all but the carry costs ln 2 = 0.69, and so does guessing the
highest digit. Over all questions of a digit, half of that takes using carries. On BA alone it
can also be reached by betting that none arrives."""

DISCOVERY_BELOW, CLEAN_UP_BELOW = 0.9, 0.1
"""Phase 2 (algorithm discovery) is the fall from 90 % to 10 % of the early loss, like the fall
time of a pulse. The early loss is the first smoothed loss, but at most that of guessing. Phase 1
(memorisation) is before it, phase 3 (clean-up) after it. A boundary is
the step from which the smoothed loss stays below that level to the end."""


@dataclass(frozen=True, eq=False)
class LossCurve:
    """The losses of an answer token, on all questions or on those of one task.

    Batches are weighed by their questions: three of class US9 count less than sixty of BA.
    """

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


def loss_curves(
    metrics: list[StepRecord], layout: Format
) -> dict[tuple[str, str | None], LossCurve]:
    """The curve of each answer token, on the questions of each task and (None) on all."""
    names = layout.answer_names
    no_loss: list[float | None] = [None] * len(names)
    no_count = [0] * len(names)
    # A sign belongs to no task; each digit of each question to one.
    sizes = [max([1, *map(sum, zip(*r.task_count.values(), strict=True))]) for r in metrics]
    losses: dict[str | None, list[list[float | None]]] = {None: [[*r.digit_loss] for r in metrics]}
    counts: dict[str | None, list[list[int]]] = {None: [[size] * len(names) for size in sizes]}
    for task in layout.operation.classes:
        losses[task] = [r.task_loss.get(task, no_loss) for r in metrics]
        counts[task] = [r.task_count.get(task, no_count) for r in metrics]
    steps = np.array([record.step for record in metrics])
    return {
        (name, task): LossCurve(steps, loss, count)
        for task in losses
        for name, loss, count in zip(
            names, np.array(losses[task], dtype=float).T, np.array(counts[task]).T, strict=True
        )
    }


class Curves(msgspec.Struct, frozen=True, kw_only=True):
    """Smoothed losses at some of the steps; each batch weighs as many questions as it had."""

    window: int
    """Steps averaged for each point, fewer at both ends of the run."""
    steps: list[int]
    digit_loss: dict[str, list[float | None]]
    """By answer token, the sign included where there is one."""
    task_loss: dict[str, dict[str, list[float | None]]]
    """By answer digit and task; null where the window had no case."""


class DigitStory(msgspec.Struct, frozen=True, kw_only=True):
    """One answer digit over all its questions."""

    digit: str
    learnt_at: int | None
    discovery_from: int | None
    """First step of phase 2; null if the loss never fell."""
    clean_up_from: int | None
    """First step of phase 3; null if the training ended before."""


class PairStory(msgspec.Struct, frozen=True, kw_only=True):
    """One answer digit on the questions of one task class."""

    digit: str
    task: str
    learnt_at: int | None


class TrainingStory(msgspec.Struct, frozen=True, kw_only=True):
    """What the metrics of one training show."""

    steps: int
    learnt_loss: float
    """The threshold below which a loss counts as learnt."""
    curves: Curves
    digits: list[DigitStory]
    """In the order the model writes them, without a sign that is always the same."""
    pairs: list[PairStory]
    statements: list[str]
    """The story in a few sentences."""

    @property
    def statement(self) -> str:
        return " ".join(self.statements)


def training_story(metrics: list[StepRecord], layout: Format) -> TrainingStory:
    """The story of a training, from one record per step and the layout of its questions."""
    if not metrics:
        raise CallError("A training story needs at least one step. Got none.")
    curves, names = loss_curves(metrics, layout), layout.answer_names
    pairs = {pair: curves[pair] for pair in _pairs(layout)}
    told = names if layout.operation.signed else names[layout.signs :]
    story = TrainingStory(
        steps=len(metrics),
        learnt_loss=LEARNT_LOSS,
        curves=_thinned({name: curves[name, None] for name in names}, pairs),
        digits=[_digit_story(name, curves[name, None], layout) for name in told],
        pairs=[
            PairStory(digit=digit, task=task, learnt_at=curve.stays_below(LEARNT_LOSS))
            for (digit, task), curve in pairs.items()
        ],
        statements=[],
    )
    said = [sentence for sentence in (_digits(story), *_tasks(story, layout)) if sentence]
    return msgspec.structs.replace(story, statements=said)


def _pairs(layout: Format) -> list[tuple[str, str]]:
    """The tasks of each digit. No carry arrives at A0; A_n has no column that passes one on.

    No borrow arrives at A_n, since the smaller number is taken from the larger one.
    """
    every = range(layout.digits + 1)
    digits_of: dict[str, range] = {}
    for one in layout.operation.each_part:
        top = range(1, layout.digits + 1 - one.signed)
        digits_of |= zip(one.subtasks.classes, (every, top, top[:-1]), strict=True)
    return [(f"A{k}", task) for k in every for task, at in digits_of.items() if k in at]


def _digit_story(name: str, curve: LossCurve, layout: Format) -> DigitStory:
    # A model starts above guessing, because it first learns that answers are made of digits.
    two_values = name in layout.answer_names[: -layout.digits]
    guessing = math.log(2 if two_values else BASE)
    early = min(guessing, float(curve.smooth[0]))
    return DigitStory(
        digit=name,
        learnt_at=curve.stays_below(LEARNT_LOSS),
        discovery_from=curve.stays_below(DISCOVERY_BELOW * early),
        clean_up_from=curve.stays_below(CLEAN_UP_BELOW * early),
    )


def _thinned(tokens: dict[str, LossCurve], pairs: dict[tuple[str, str], LossCurve]) -> Curves:
    """The curves at few enough steps to draw."""
    first = next(iter(tokens.values()))
    total = len(first.steps)
    kept = np.linspace(0, total - 1, min(total, CURVE_POINTS)).round().astype(int)
    by_task: dict[str, dict[str, list[float | None]]] = {}
    for (name, task), curve in pairs.items():
        by_task.setdefault(name, {})[task] = curve.points(kept)
    return Curves(
        window=2 * first.reach + 1,
        steps=first.steps[kept].tolist(),
        digit_loss={name: curve.points(kept) for name, curve in tokens.items()},
        task_loss=by_task,
    )


def _digits(story: TrainingStory) -> str:
    learnt = sorted((d for d in story.digits if d.learnt_at), key=lambda d: d.learnt_at or 0)
    if not learnt:
        return f"No answer digit was learnt (loss below {LEARNT_LOSS:.2f}) by step {story.steps:,}."
    said = f"{learnt[0].digit} was learnt first, at step {learnt[0].learnt_at:,}"
    if len(learnt) > 1:
        said += f", {learnt[-1].digit} last, at step {learnt[-1].learnt_at:,}"
    never = [digit.digit for digit in story.digits if not digit.learnt_at]
    return f"{said}. Never learnt: {listed(never)}." if never else f"{said}."


def _tasks(story: TrainingStory, layout: Format) -> list[str]:
    """Whether tasks came in the framework's order: BA, then UC1, then US9."""
    when = {(pair.digit, pair.task): pair.learnt_at or math.inf for pair in story.pairs}
    return [_order(when, *one.subtasks.classes) for one in layout.operation.each_part]


def _order(when: dict[tuple[str, str], int | float], base: str, carry: str, nine: str) -> str:
    lags = [when[d, carry] - when[d, base] for d, task in when if task == carry]
    known = [lag for lag in lags if not math.isnan(lag)]  # infinity less infinity: neither learnt
    early = [d for d, task in when if task == nine and when[d, nine] < when[d, carry]]
    said = []
    if known:
        later = sum(lag > 0 for lag in known)
        said.append(f"{carry} was learnt after {base} in {later} of {len(known)} digits.")
    if early:
        said.append(f"{nine} was learnt before {carry} in {listed(early)}.")
    return " ".join(said)
