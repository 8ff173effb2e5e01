"""How a training went: what was learnt, when, and in which order.

In: the metrics of a run. Out: a `TrainingStory`: smoothed curves, the step at which each
(answer digit, task) was learnt, the paper's three phases, how far UC1 lags behind BA, and the
order that the mathematical framework predicts. `A3 UC1` is the answer digit A3 on questions of
class UC1, such as 00800+00400=001200.

All losses are those of the training batches: teacher-forced, on the recipe's own mix of
questions, which may change during training. So an order found here belongs to a recipe as much
as to a model. `fast-5`, for example, starts its heads one by one and shows many nines early.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from carryscope.core.errors import CallError
from carryscope.core.evidence import Share
from carryscope.core.words import listed
from carryscope.dissection.loss_curve import LossCurve, task_curves, token_curves
from carryscope.task.columns import Task
from carryscope.task.framework import RankAgreement, task_shares
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
    final_loss: float | None
    """Mean of the last 100 steps, here and below."""
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
    questions: int
    """Questions of the whole training."""

    @property
    def name(self) -> str:
        return f"{self.digit} {self.task}"


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """How UC1 of a digit trails its BA. At the highest digit these are just "1" and "0".

    A lag need not mean two algorithms. A model that cannot see yet whether a carry arrives does
    well to bet on the commoner case, BA. That also puts UC1 behind.
    """

    digit: str
    later: bool | None
    """Whether UC1 was learnt after BA, or only BA was; null if neither was."""
    steps: int | None
    """From BA learnt to UC1 learnt; null unless both were."""
    batches_above: Share
    """Batches of phase 2 in which the loss of UC1 was above that of BA. Batches are drawn
    independently, so the interval covers their noise. It says nothing about another training."""


class TrainingStory(msgspec.Struct, frozen=True, kw_only=True):
    """What the metrics of one training show, next to what the framework predicts."""

    steps: int
    learnt_loss: float
    """The threshold below which a loss counts as learnt."""
    curves: Curves
    digits: list[DigitStory]
    """In the order the model writes them, without a sign."""
    pairs: list[PairStory]
    observed_order: list[str]
    """The pairs that were learnt, first to last."""
    predicted_order: list[str]
    """All pairs by their share of uniform questions, larger first: the framework's rule. Between
    digits the shares differ little (A3 BA 50.05 %, A4 BA 50.005 %), so there it says little."""
    pair_agreement: RankAgreement
    """Between these orders. Pairs never learnt are tied behind all others."""
    lags: list[Lag]
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
    shares = {(f"A{k}", task): share for (k, task), share in task_shares(digits).items()}
    tokens = token_curves(metrics, answer_names)
    curves = {p: curve for p, curve in task_curves(metrics, answer_names).items() if p in shares}
    stories = [_digit_story(name, tokens[name], digits) for name in answer_names[-digits - 1 :]]
    pairs = {pair: _pair_story(*pair, curves[pair], float(shares[pair])) for pair in shares}
    seen = [pair for pair in shares if pairs[pair].questions]
    story = TrainingStory(
        steps=len(metrics),
        learnt_loss=LEARNT_LOSS,
        curves=_thinned(tokens, curves),
        digits=stories,
        pairs=list(pairs.values()),
        observed_order=[pair.name for pair in sorted(pairs.values(), key=_when) if pair.learnt_at],
        predicted_order=[pairs[p].name for p in sorted(shares, key=lambda p: -shares[p])],
        pair_agreement=RankAgreement.measured(
            [_when(pairs[pair]) for pair in seen], [-shares[pair] for pair in seen]
        ),
        lags=[_lag(story, curves) for story in stories if (story.digit, Task.UC1) in curves],
        statements=[],
    )
    sentences = (_digits, _order, _early_nines, _lags, _phases)
    return msgspec.structs.replace(story, statements=[s for of in sentences if (s := of(story))])


def _when(story: DigitStory | PairStory) -> float:
    """The step at which it was learnt; never is last."""
    return float(story.learnt_at or math.inf)


def _digit_story(name: str, curve: LossCurve, digits: int) -> DigitStory:
    # A model starts above guessing, because it first learns that answers are made of digits.
    guessing = math.log(2 if name == f"A{digits}" else BASE)
    early = min(guessing, float(curve.smooth[0]))
    return DigitStory(
        digit=name,
        learnt_at=curve.stays_below(LEARNT_LOSS),
        final_loss=curve.final,
        discovery_from=curve.stays_below(DISCOVERY_BELOW * early),
        clean_up_from=curve.stays_below(CLEAN_UP_BELOW * early),
    )


def _pair_story(digit: str, task: Task, curve: LossCurve, share: float) -> PairStory:
    return PairStory(
        digit=digit,
        task=task.name,
        share=share,
        learnt_at=curve.stays_below(LEARNT_LOSS),
        final_loss=curve.final,
        questions=int(curve.counts.sum()),
    )


def _lag(story: DigitStory, curves: dict[tuple[str, Task], LossCurve]) -> Lag:
    base, carry = curves[story.digit, Task.BA], curves[story.digit, Task.UC1]
    ba, uc1 = base.stays_below(LEARNT_LOSS), carry.stays_below(LEARNT_LOSS)
    begin, end = story.discovery_from or math.inf, story.clean_up_from or math.inf
    phase_2 = (base.steps >= begin) & (base.steps < end)
    bare = (carry.losses - base.losses)[phase_2]
    return Lag(
        digit=story.digit,
        later=(ba or math.inf) < (uc1 or math.inf) if ba or uc1 else None,
        steps=None if ba is None or uc1 is None else uc1 - ba,
        batches_above=Share.of_hits(bare[~np.isnan(bare)] > 0),
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
    learnt = sorted((d for d in story.digits if d.learnt_at), key=_when)
    if not learnt:
        return f"No answer digit was learnt (loss below {LEARNT_LOSS:.2f}) by step {story.steps:,}."
    said = f"{learnt[0].digit} was learnt first, at step {learnt[0].learnt_at:,}"
    if len(learnt) > 1:
        said += f", {learnt[-1].digit} last, at step {learnt[-1].learnt_at:,}"
    never = [digit.digit for digit in story.digits if not digit.learnt_at]
    return f"{said}. Never learnt: {listed(never)}." if never else f"{said}."


def _order(story: TrainingStory) -> str:
    found = story.pair_agreement
    if found.tau is None:
        return ""
    return (
        f"Kendall's tau between the observed order and the framework's is {found.tau:.2f} for "
        f"{found.items} (digit, task) pairs. With so few, this is weak evidence."
    )


def _early_nines(story: TrainingStory) -> str:
    when = {(pair.digit, pair.task): _when(pair) for pair in story.pairs}
    nine, carry = Task.US9.name, Task.UC1.name
    early = [d for d, task in when if task == nine and when[d, nine] < when[d, carry]]
    if not early:
        return ""
    return f"{nine} was learnt before {carry} in {listed(early)}, against the framework's order."


def _lags(story: TrainingStory) -> str:
    later = [lag.later for lag in story.lags if lag.later is not None]
    if not later:
        return ""
    steps = [lag.steps for lag in story.lags if lag.steps is not None]
    by = f", by {min(steps):,} to {max(steps):,} steps" if steps else ""
    return f"UC1 was learnt after BA in {sum(later)} of {len(later)} digits{by}."


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
