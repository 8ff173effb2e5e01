"""Stratified sampling that goes where the uncertainty is.

In: a judge and a partition. Out: a `Tally`: per stratum, how many questions were asked and what
went wrong, and failing questions to show.

A *pilot* of two rounds finds out where failures are: every stratum is asked a few questions and
the common ones more, then those where something failed. The *trial* shares its questions out
accordingly, in proportion to (probability) x (standard deviation of failing), which makes the
interval of the sum shortest; a tenth goes by probability alone, so that nothing is out of sight.

The pilot's answers are not counted. Whoever asks more where something failed, and then counts
those very failures, is biased: a stratum that looked bad by chance is asked again and corrected,
one that looked good by chance is not. Given the pilot, the trial's shares are fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from carryscope.core.errors import CallError
from carryscope.task.columns import Columns
from carryscope.task.operation import Array
from carryscope.task.questions import Questions
from carryscope.verification.estimate import Rate, weighted_rate
from carryscope.verification.judging import Judge
from carryscope.verification.partition import Partition

FLOOR = 24
"""Questions that the pilot asks in every stratum, however rare."""

PILOT = 12_000
"""Questions of each round of the pilot that are shared out; at most a quarter of the budget."""

BY_PROBABILITY = 0.1
"""The share of the trial's questions that goes to strata by their probability alone."""

LEAST = 8
"""Questions of the trial in every stratum."""

GROWTH = 0.3
"""Each later round asks so much of what was asked before: few rounds, little overshoot."""

KEPT = 32
"""Failing questions kept for each stratum."""


@dataclass(eq=False)
class Tally:
    """What was asked and what went wrong, by stratum. Filled round by round."""

    partition: Partition
    asked: Int[Array, " stratum"]
    failed: Int[Array, " stratum"]
    forced: Int[Array, "stratum answer"]
    """Wrong answer tokens, teacher-forced."""
    free: Int[Array, "stratum answer"]
    """Wrong answer tokens, free-running."""
    case_asked: Int[Array, "stratum digit depth carrying"]
    """Answer digits by look-ahead depth, quiet and carrying."""
    case_wrong: Int[Array, "stratum digit depth carrying"]
    """Those that were wrong, teacher-forced."""
    failing: dict[int, Questions] = field(default_factory=dict)
    pilot: int = 0
    """Questions that only told where to look."""

    @classmethod
    def empty(cls, partition: Partition, answers: int) -> Tally:
        strata, digits = len(partition), partition.digits + 1
        by_answer = (strata, answers)
        by_case = (strata, digits, digits, 2)
        return cls(
            partition,
            np.zeros(strata, dtype=np.int64),
            np.zeros(strata, dtype=np.int64),
            np.zeros(by_answer, dtype=np.int64),
            np.zeros(by_answer, dtype=np.int64),
            np.zeros(by_case, dtype=np.int64),
            np.zeros(by_case, dtype=np.int64),
        )

    @property
    def evaluated(self) -> int:
        """All questions that were asked, those of the pilot too."""
        return int(self.asked.sum()) + self.pilot

    @property
    def failure(self) -> Rate:
        """The chance of a wrong answer over all questions."""
        return weighted_rate(self.partition.weights, self.asked, self.failed)

    def ask(self, judge: Judge, questions: Questions, stratum: Int[Array, " batch"]) -> None:
        """Put questions to the judge and count."""
        mistakes = judge(questions)
        failed = mistakes.failed
        np.add.at(self.asked, stratum, 1)
        np.add.at(self.failed, stratum, failed)
        np.add.at(self.forced, stratum, mistakes.teacher_forced)
        np.add.at(self.free, stratum, mistakes.free_running)
        self._count_cases(questions, stratum, mistakes.teacher_forced)
        for s in np.unique(stratum[failed]):
            new = questions[failed & (stratum == s)]
            kept = [self.failing[s], new] if s in self.failing else [new]
            self.failing[int(s)] = Questions.joined(kept)[:KEPT]

    def _count_cases(self, questions: Questions, stratum: Array, wrong: Array) -> None:
        columns = Columns.of(questions)
        shape = self.case_asked.shape
        for k in range(columns.digits + 1):
            place = (stratum, columns.look_ahead[:, k], columns.carrying[:, k].astype(np.int64))
            flat = np.ravel_multi_index(place, (shape[0], shape[2], shape[3]))
            size = shape[0] * shape[2] * shape[3]
            missed = flat[wrong[:, wrong.shape[1] - 1 - k]]
            for counts, cases in ((self.case_asked, flat), (self.case_wrong, missed)):
                found = np.bincount(cases, minlength=size).reshape(shape[0], shape[2], shape[3])
                counts[:, k] += found


def hold_trial(
    judge: Judge,
    partition: Partition,
    answers: int,
    generator: np.random.Generator,
    *,
    width: float,
    budget: int,
    on_round: Callable[[Tally], bool | None] = lambda _: None,
) -> Tally:
    """Ask until the interval is narrow enough, relative to the estimate, or the budget is spent.

    `on_round` hears of every round and may end the trial by returning True: what was asked so
    far stands.
    """
    least = 4 * len(partition)
    if budget < least:
        raise CallError(f"budget must be at least {least:,} for {len(partition)} strata.")
    pilot = _pilot(judge, partition, answers, generator, budget)
    tally = Tally.empty(partition, answers)
    tally.pilot, tally.failing = pilot.evaluated, pilot.failing
    shares = _shares(pilot)
    size, enough = min(PILOT, budget - tally.evaluated), False
    while not enough and size > 0:
        floor = min(LEAST, size // len(partition))
        total = int(tally.asked.sum()) + size
        wanted = np.maximum(np.floor(shares * total), floor).astype(np.int64)
        counts = _at_most(size, wanted - tally.asked)
        if not counts.any():
            break
        _ask_round(tally, judge, generator, counts)
        narrow = tally.failure.relative_width <= width
        enough = bool(on_round(tally)) or narrow
        size = min(int(GROWTH * tally.evaluated) + 1, budget - tally.evaluated)
    return tally


def _pilot(
    judge: Judge,
    partition: Partition,
    answers: int,
    generator: np.random.Generator,
    budget: int,
) -> Tally:
    """Where failures are: a round by probability, then one by what that found."""
    tally = Tally.empty(partition, answers)
    shared = min(PILOT, budget // 4)
    floor = min(FLOOR, budget // (4 * len(partition)))
    by_chance = np.floor(partition.weights * (shared - floor * len(partition)))
    first = floor + np.maximum(by_chance, 0).astype(np.int64)
    _ask_round(tally, judge, generator, _at_most(shared, first))
    second = np.floor(_shares(tally) * shared).astype(np.int64)
    _ask_round(tally, judge, generator, second)
    return tally


def _at_most(size: int, counts: Int[Array, " stratum"]) -> Int[Array, " stratum"]:
    """The counts, cut down evenly if they are more than may be asked."""
    counts = np.maximum(counts, 0)
    over = counts.sum() / size
    return np.floor(counts / over).astype(np.int64) if over > 1 else counts


def _ask_round(
    tally: Tally, judge: Judge, generator: np.random.Generator, counts: Int[Array, " stratum"]
) -> None:
    chosen = np.flatnonzero(counts)
    drawn = [tally.partition.draw(generator, int(s), int(counts[s])) for s in chosen]
    if drawn:
        tally.ask(judge, Questions.joined(drawn), np.repeat(chosen, counts[chosen]))


def _shares(pilot: Tally) -> Float[Array, " stratum"]:
    """How questions are shared out, given what the pilot saw.

    The chance of failing is taken a little above what was seen: where nothing failed in a few
    questions, something still may.
    """
    weights = pilot.partition.weights
    chance = (pilot.failed + 0.5) / (pilot.asked + 1)
    spread = weights * np.sqrt(chance * (1 - chance))
    by_spread: Array = (1 - BY_PROBABILITY) * spread / spread.sum()
    return by_spread + BY_PROBABILITY * weights
