"""Stratified sampling that goes where the uncertainty is.

In: a judge and a partition. Out: a `Tally`: per stratum, how many questions were asked and what
went wrong, and failing questions to show.

A first round asks every stratum a few questions and the common ones more. Then, round by
round, questions go to strata in proportion to (probability) x (standard deviation of failing),
which is what makes the interval of the sum shortest for a given number of questions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from carryscope.task.columns import Columns
from carryscope.task.questions import Array, Questions
from carryscope.verification.estimate import Rate, weighted_rate
from carryscope.verification.judging import Judge
from carryscope.verification.partition import Partition

FLOOR = 24
"""Questions asked in every stratum, however rare."""

FIRST_ROUND = 20_000
"""Questions shared out by probability in the first round."""

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
        return int(self.asked.sum())

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
    on_round: Callable[[Tally], object] = lambda _: None,
) -> Tally:
    """Ask until the interval is narrow enough, relative to the estimate, or the budget is spent."""
    tally = Tally.empty(partition, answers)
    floor = min(FLOOR, max(1, budget // len(partition)))
    first = np.ceil(partition.weights * min(FIRST_ROUND, budget)).astype(np.int64)
    _ask_round(tally, judge, generator, np.maximum(first, floor))
    on_round(tally)
    while tally.evaluated < budget and tally.failure.relative_width > width:
        size = min(int(GROWTH * tally.evaluated) + 1, budget - tally.evaluated)
        _ask_round(tally, judge, generator, _shares(tally, size))
        on_round(tally)
    return tally


def _ask_round(
    tally: Tally, judge: Judge, generator: np.random.Generator, counts: Int[Array, " stratum"]
) -> None:
    chosen = np.flatnonzero(counts)
    drawn = [tally.partition.draw(generator, int(s), int(counts[s])) for s in chosen]
    tally.ask(judge, Questions.joined(drawn), np.repeat(chosen, counts[chosen]))


def _shares(tally: Tally, size: int) -> Int[Array, " stratum"]:
    """How the next questions are shared out: to where they narrow the interval most.

    The chance of failing is taken a little above what was seen, so that strata in which
    nothing failed yet go on being asked, the likelier ones more.
    """
    chance = (tally.failed + 0.5) / (tally.asked + 1)
    spread: Float[Array, " stratum"] = tally.partition.weights * np.sqrt(chance * (1 - chance))
    wanted = spread / spread.sum() * (tally.evaluated + size)
    lacking = np.maximum(wanted - tally.asked, 0)
    counts: Int[Array, " stratum"] = np.floor(lacking / lacking.sum() * size).astype(np.int64)
    counts[np.argsort(-lacking)[: size - int(counts.sum())]] += 1
    return counts
