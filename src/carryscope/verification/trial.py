"""Stratified sampling that puts most questions where the uncertainty is.

In: a judge, which marks wrong answer tokens, and a partition. Out: a `Tally`. For few digits every
question is tested instead. A judge is a function, so the estimators can be tested on predictors
whose failure rate is known.

A *pilot* of two rounds finds out where failures are. It tests a few questions of every stratum
and more of the common ones, then more where something failed. The *trial* distributes its
questions in proportion to (probability) x (standard deviation of failing), which makes the
interval of the sum shortest. A tenth goes by probability alone, so that no stratum is neglected.

The pilot's answers are not counted, because that would be biased: a stratum that looked bad by
chance is tested again and corrected, one that looked good by chance is not. Given the pilot, the
trial's shares are fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from jaxtyping import Bool, Float, Int

from carryscope.core.errors import CallError
from carryscope.core.progress import Advance, Stopped, unheard
from carryscope.core.words import percent
from carryscope.model.prediction import answer
from carryscope.model.transformer import Transformer
from carryscope.task.columns import Columns
from carryscope.task.operation import BASE, PAIRS, Array
from carryscope.task.questions import Questions
from carryscope.verification.estimate import Rate, weighted_rate
from carryscope.verification.partition import Partition

FLOOR = 24
"""Questions of the pilot in every stratum, however rare."""

PILOT = 12_000
"""Questions of each round of the pilot; at most a quarter of the budget."""

BY_PROBABILITY = 0.1
"""The share of the trial's questions that goes to strata by their probability alone."""

LEAST = 8
"""Questions of the trial in every stratum."""

GROWTH = 0.3
"""The size of a later round relative to all before it: few rounds, little overshoot."""

AT_ONCE = 20_000
"""Questions between two reports of progress, if every question is tested."""

KEPT = 32
"""Failing questions kept for each stratum."""


Judge = Callable[[Questions], Bool[Array, "batch answer"]]
"""Says which answer tokens are wrong, teacher-forced, in the order in which they are written.

A question with a wrong token is answered wrong free-running too: up to the first wrong token the
model reads the same.
"""


def judge_of(model: Transformer) -> Judge:
    """The judge of a model."""
    return lambda questions: ~answer(model, questions, free_running=False).right


class Tally:
    """How many questions were tested and what went wrong, by stratum. It fills round by round."""

    def __init__(
        self, judge: Judge, partition: Partition, answers: int, *, exhaustive: bool = False
    ) -> None:
        strata, digits = len(partition), partition.digits + 1
        places = digits + partition.operation.signed
        self.judge, self.partition, self.exhaustive = judge, partition, exhaustive
        self.asked: Int[Array, " stratum"] = np.zeros(strata, dtype=np.int64)
        self.failed = np.zeros_like(self.asked)
        self.wrong: Int[Array, "stratum answer"] = np.zeros((strata, answers), dtype=np.int64)
        """Wrong answer tokens."""
        self.case_asked: Int[Array, "stratum digit depth carrying"]
        """Answer digits by look-ahead, above them the sign of a difference; `case_wrong` are the
        wrong ones."""
        self.case_asked = np.zeros((strata, places, digits, 2), dtype=np.int64)
        self.case_wrong = np.zeros_like(self.case_asked)
        self.failing: dict[int, Questions] = {}
        """Failing questions of each stratum."""
        self.pilot = 0
        """Questions that only showed where failures are."""

    @property
    def evaluated(self) -> int:
        """All questions tested, those of the pilot included."""
        return int(self.asked.sum()) + self.pilot

    @property
    def failure(self) -> Rate:
        """The chance of a wrong answer over all questions."""
        return self.rate(self.failed)

    def rate(self, counts: Int[Array, " stratum"]) -> Rate:
        """The chance over all questions of what was counted in each stratum."""
        if self.exhaustive:
            return Rate.exactly(int(counts.sum()), self.evaluated)
        return weighted_rate(self.partition.weights, self.asked, counts)

    def draw(self, generator: np.random.Generator, counts: Int[Array, " stratum"]) -> None:
        """Test so many questions of each stratum."""
        self.ask(*self.partition.draw_each(generator, counts))

    def ask(self, questions: Questions, stratum: Int[Array, " batch"]) -> None:
        """Test questions of these strata and count."""
        wrong = self.judge(questions)
        failed = wrong.any(axis=1)
        np.add.at(self.asked, stratum, 1)
        np.add.at(self.failed, stratum, failed)
        np.add.at(self.wrong, stratum, wrong)
        columns, digits = Columns.of(questions), np.arange(self.partition.digits + 1)
        from_units = wrong[:, ::-1]
        case = (stratum[:, None], digits, columns.look_ahead, columns.carry_in.astype(np.int64))
        np.add.at(self.case_asked, case, 1)
        np.add.at(self.case_wrong, case, from_units[:, digits])
        if columns.negative is not None:
            of_sign = (stratum, columns.sign_look_ahead, columns.negative.astype(np.int64))
            here = tuple(each[columns.signed] for each in of_sign)
            np.add.at(self.case_asked[:, -1], here, 1)
            np.add.at(self.case_wrong[:, -1], here, from_units[columns.signed, -1])
        for s in np.unique(stratum[failed]):
            new = questions[failed & (stratum == s)]
            kept = [self.failing[s], new] if s in self.failing else [new]
            self.failing[int(s)] = Questions.joined(kept)[:KEPT]


def ask_everything(
    judge: Judge, partition: Partition, answers: int, advance: Advance = unheard
) -> Tally:
    """The tally of all 10^(2n) questions. Half of them are no sample, so `Stopped` passes."""
    tally = Tally(judge, partition, answers, exhaustive=True)
    digits, total = partition.digits, PAIRS**partition.digits
    numbers = np.arange(BASE**digits)
    every = (numbers[:, None] // BASE ** np.arange(digits) % BASE).astype(np.int8)
    for one, start in product(partition.operation.each_part, range(0, total, AT_ONCE)):
        index = np.arange(start, min(start + AT_ONCE, total))
        first, second = every[index // len(every)], every[index % len(every)]
        questions = Questions(first, second, one)
        tally.ask(questions, partition.of(questions))
        advance(len(index))
    return tally


def hold_trial(
    judge: Judge,
    partition: Partition,
    answers: int,
    generator: np.random.Generator,
    *,
    width: float,
    budget: int,
    advance: Advance = unheard,
) -> Tally:
    """Test until the interval is narrow enough, relative to the estimate, or the budget is spent.

    `Stopped` from `advance` ends the trial. The answers so far count.
    """
    least = 4 * len(partition)
    if budget < least:
        raise CallError(
            f"budget must be at least {least:,} for {len(partition)} strata. Got {budget:,}."
        )
    pilot, tally = (Tally(judge, partition, answers) for _ in range(2))
    _run_pilot(pilot, generator, budget)
    tally.pilot, tally.failing = pilot.evaluated, pilot.failing
    shares, reported = _shares(pilot), 0
    size, enough = min(PILOT, budget - tally.evaluated), False
    while not enough and size > 0:
        floor = min(LEAST, size // len(partition))
        total = int(tally.asked.sum()) + size
        wanted = np.maximum(np.floor(shares * total), floor).astype(np.int64)
        counts = _at_most(size, wanted - tally.asked)
        if not counts.any():
            break
        tally.draw(generator, counts)
        rate = tally.failure
        enough = rate.relative_width <= width
        wrong = f"{percent(rate.estimate)} wrong, interval ± {percent(rate.relative_width / 2)}"
        try:
            advance(tally.evaluated - reported, wrong if rate.estimate else "no failure so far")
        except Stopped:
            break
        reported = tally.evaluated
        size = min(int(GROWTH * tally.evaluated) + 1, budget - tally.evaluated)
    return tally


def _run_pilot(pilot: Tally, generator: np.random.Generator, budget: int) -> None:
    """The pilot: one round by probability, then one by what the first found."""
    strata, shared = len(pilot.partition), min(PILOT, budget // 4)
    floor = min(FLOOR, budget // (4 * strata))
    by_chance = np.floor(pilot.partition.weights * (shared - floor * strata))
    first = floor + np.maximum(by_chance, 0).astype(np.int64)
    pilot.draw(generator, _at_most(shared, first))
    second = np.floor(_shares(pilot) * shared).astype(np.int64)
    if second.any():
        pilot.draw(generator, second)


def _at_most(size: int, counts: Int[Array, " stratum"]) -> Int[Array, " stratum"]:
    """The counts, reduced evenly if there are more than `size` questions."""
    counts = np.maximum(counts, 0)
    over = counts.sum() / size
    return np.floor(counts / over).astype(np.int64) if over > 1 else counts


def _shares(pilot: Tally) -> Float[Array, " stratum"]:
    """The share of the trial's questions that each stratum gets.

    The assumed failure rate lies a little above the observed one. Where nothing failed in a few
    questions, something still may.
    """
    weights = pilot.partition.weights
    chance = (pilot.failed + 0.5) / (pilot.asked + 1)
    spread = weights * np.sqrt(chance * (1 - chance))
    by_spread: Array = (1 - BY_PROBABILITY) * spread / spread.sum()
    return by_spread + BY_PROBABILITY * weights
