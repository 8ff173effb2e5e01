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

import msgspec
import numpy as np

from carryscope.core.errors import CallError
from carryscope.core.words import listed
from carryscope.dissection.loss_curve import LossCurve, task_curves, token_curves
from carryscope.task.columns import Task
from carryscope.task.operation import BASE
from carryscope.training.losses import StepRecord

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
    """In the order the model writes them, without a sign."""
    pairs: list[PairStory]
    statements: list[str]
    """The story in a few sentences."""

    @property
    def statement(self) -> str:
        return " ".join(self.statements)


def training_story(
    metrics: list[StepRecord], digits: int, answer_names: list[str]
) -> TrainingStory:
    """The story of a training, from one record per step and the names of the answer tokens."""
    if not metrics:
        raise CallError("A training story needs at least one step. Got none.")
    tokens, tasks = token_curves(metrics, answer_names), task_curves(metrics, answer_names)
    curves = {pair: tasks[pair] for pair in _pairs(digits)}
    story = TrainingStory(
        steps=len(metrics),
        learnt_loss=LEARNT_LOSS,
        curves=_thinned(tokens, curves),
        digits=[_digit_story(name, tokens[name], digits) for name in answer_names[-digits - 1 :]],
        pairs=[
            PairStory(digit=digit, task=task.name, learnt_at=curve.stays_below(LEARNT_LOSS))
            for (digit, task), curve in curves.items()
        ],
        statements=[],
    )
    sentences = (_digits, _tasks, _phases)
    return msgspec.structs.replace(story, statements=[s for of in sentences if (s := of(story))])


def _pairs(digits: int) -> list[tuple[str, Task]]:
    """The tasks of each digit. No carry arrives at A0; A_n has no column that passes one on."""
    top = range(1, digits + 1)
    digits_of = {Task.BA: range(digits + 1), Task.UC1: top, Task.US9: top[:-1]}
    return [(f"A{k}", task) for k in range(digits + 1) for task in Task if k in digits_of[task]]


def _digit_story(name: str, curve: LossCurve, digits: int) -> DigitStory:
    # A model starts above guessing, because it first learns that answers are made of digits.
    guessing = math.log(2 if name == f"A{digits}" else BASE)
    early = min(guessing, float(curve.smooth[0]))
    return DigitStory(
        digit=name,
        learnt_at=curve.stays_below(LEARNT_LOSS),
        discovery_from=curve.stays_below(DISCOVERY_BELOW * early),
        clean_up_from=curve.stays_below(CLEAN_UP_BELOW * early),
    )


def _thinned(tokens: dict[str, LossCurve], pairs: dict[tuple[str, Task], LossCurve]) -> Curves:
    """The curves at few enough steps to draw."""
    first = next(iter(tokens.values()))
    total = len(first.steps)
    kept = np.linspace(0, total - 1, min(total, CURVE_POINTS)).round().astype(int)
    by_task: dict[str, dict[str, list[float | None]]] = {}
    for (name, task), curve in pairs.items():
        by_task.setdefault(name, {})[task.name] = curve.points(kept)
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


def _tasks(story: TrainingStory) -> str:
    """Whether tasks came in the framework's order: BA, then UC1, then US9."""
    when = {(pair.digit, pair.task): pair.learnt_at or math.inf for pair in story.pairs}
    base, carry, nine = (task.name for task in (Task.BA, Task.UC1, Task.US9))
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


def _phases(story: TrainingStory) -> str:
    spans = {
        d.digit: d.clean_up_from - d.discovery_from
        for d in story.digits
        if d.clean_up_from and d.discovery_from
    }
    if not spans:
        return "No digit's loss fell from 90 % to 10 % of its early level."
    short, long = min(spans, key=spans.__getitem__), max(spans, key=spans.__getitem__)
    return (
        f"{len(spans)} of {len(story.digits)} digits went through all three phases. Discovery was "
        f"shortest in {short} ({spans[short]:,} steps) and longest in {long} ({spans[long]:,})."
    )
