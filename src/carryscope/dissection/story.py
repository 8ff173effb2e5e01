"""The story a training tells: what was learnt, when, and in which order.

In: the metrics of a run. Out: a `TrainingStory`: smoothed curves, the step at which each
(answer digit, task) was learnt, the paper's three phases, how far UC1 lags behind BA, and the
prediction of the mathematical framework beside it. `A3 UC1` is the answer digit A3 on
questions of class UC1, such as 00800+00400=001200.

All losses are those of the training batches: teacher-forced, and on the recipe's own mix of
questions, which may change on the way. So an order found here belongs to a recipe as much as
to a model: `fast-5`, say, starts its heads one by one and shows many nines early.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from jaxtyping import Float, Int
from numpy.lib.stride_tricks import sliding_window_view

from carryscope.errors import CallError
from carryscope.evidence import Share
from carryscope.task.columns import Task
from carryscope.task.framework import predicted_order, task_shares
from carryscope.task.questions import Array
from carryscope.training.losses import StepRecord
from carryscope.training.summary import LAST_STEPS

WINDOW = 51
"""Steps averaged for a smoothed loss, half of them before and half after. A batch of 64 has
about three questions of class US9 for a digit, too few for a loss; 51 batches have 150."""

WINDOW_OF_RUN = 20
"""A window is at most one part in so many of a run, so that short runs keep their shape."""

CURVE_POINTS = 100
"""Points kept of each curve: as many as a small picture can show."""

LEARNT_LOSS = math.log(2) / 2
"""A pair is learnt at the step from which its smoothed loss stays below this, 0.35 nats, to the
end. Guessing a digit costs ln 10 = 2.30; knowing all but whether a carry arrives costs ln 2 =
0.69, and so does guessing the highest digit. Half of that can only be had by using carries."""

DISCOVERY_BELOW, CLEAN_UP_BELOW = 0.9, 0.1
"""Phase 2 (algorithm discovery) is the fall from 90 % to 10 % of the early loss, as one measures
the fall time of a pulse; phase 1 (memorisation) is before it, phase 3 (clean-up) after it. A
boundary is the step from which the smoothed loss stays below that level to the end."""


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
    final_loss: float | None
    """Mean of the last 100 steps, here and below."""
    early_loss: float | None
    """What its phases start from: the first smoothed loss, but at most that of guessing. (A
    model starts above it, as it first has to learn that answers are made of digits.)"""
    discovery_from: int | None
    """First step of phase 2; null if the loss never fell."""
    clean_up_from: int | None
    """First step of phase 3; null if the training ended before."""


class PairStory(msgspec.Struct, frozen=True, kw_only=True):
    """One answer digit on the questions of one task class."""

    digit: str
    task: str
    share: float
    """Of uniform questions, by the framework; training may have shown them more often."""
    learnt_at: int | None
    final_loss: float | None
    final_questions: int
    """Questions behind the final loss."""
    questions: int
    """Questions of the whole training."""

    @property
    def name(self) -> str:
        return f"{self.digit} {self.task}"


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """How UC1 of a digit trails its BA. At the highest digit these are just "1" and "0"."""

    digit: str
    steps: int | None
    """From BA learnt to UC1 learnt; null unless both were."""
    smoothed_above: float | None
    """Share of the steps of phase 2 in which the smoothed loss of UC1 was above that of BA. It
    has no interval: neighbouring smoothed losses share most of their questions."""
    batches_above: Share
    """The same for the bare losses of each batch. Batches are drawn apart from each other, so
    the interval is fair to their noise; it says nothing about another training."""


class RankAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """Kendall's tau-b between two orders: 1 the same, 0 unrelated, -1 reversed.

    Over a handful of items it is weak evidence: six items in random order reach 0.6 or more,
    either way, about once in seven times.
    """

    tau: float | None
    """Null if one of the orders has nothing but ties."""
    items: int
    comparisons: int
    """Pairs of items that neither order ties: what tau rests on."""

    @classmethod
    def measured(cls, first: Sequence[Any], second: Sequence[Any]) -> RankAgreement:
        """The agreement of two rankings of the same items; equal values are ties."""
        pairs = [(i, j) for j in range(len(first)) for i in range(j)]
        signs = [(_sign(first[i], first[j]), _sign(second[i], second[j])) for i, j in pairs]
        untied = math.prod(sum(pair[side] != 0 for pair in signs) for side in (0, 1))
        score = sum(a * b for a, b in signs)
        return cls(
            tau=score / math.sqrt(untied) if untied else None,
            items=len(first),
            comparisons=sum(a * b != 0 for a, b in signs),
        )


def _sign(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


class PredictedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A square of the paper's framework figure (see `task.framework.Discovery`)."""

    name: str
    digit: str
    task: str
    depth: int
    share: float
    accuracy: float
    reads: list[str]
    needs: list[str]
    """Names of other squares."""


class TrainingStory(msgspec.Struct, frozen=True, kw_only=True):
    """What the metrics of one training say, and what the framework had predicted."""

    steps: int
    learnt_loss: float
    curves: Curves
    digits: list[DigitStory]
    """In the order the model writes them, a sign left out."""
    pairs: list[PairStory]
    observed_order: list[str]
    """The pairs that were learnt, first to last."""
    predicted_order: list[str]
    """All pairs by their share of uniform questions, larger first: the framework's rule. Among
    digits shares differ little (A3 BA 50.05 %, A4 BA 50.005 %), so there it says little."""
    pair_agreement: RankAgreement
    """Between these orders. Pairs never learnt are tied behind all others."""
    digit_agreement: RankAgreement
    """The same for digits: the more BA alone unlocks, the sooner. That is A0 first, An last."""
    lags: list[Lag]
    lagging: Share
    """Digits whose UC1 was learnt later than their BA, of those where either was learnt."""
    framework: list[PredictedTask]
    """The framework's own squares, finer than the pairs, in their predicted order."""

    @property
    def statements(self) -> list[str]:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class _Curve:
    """The losses of one digit, or of one pair, over all steps."""

    steps: Int[Array, " step"]
    losses: Float[Array, " step"]
    """0 where the batch had no case."""
    counts: Float[Array, " step"]
    smooth: Float[Array, " step"]
    """Not a number where the window had no case."""
