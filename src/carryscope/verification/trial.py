"""Stratified sampling that goes where the uncertainty is.

In: a judge and a partition. Out: a `Tally`: per stratum, how many questions were asked and what
went wrong, and failing questions to show.

A first round asks every stratum a few questions and the common ones more. Then, round by
round, questions go to strata in proportion to (probability) x (standard deviation of failing),
which is what makes the interval of the sum shortest for a given number of questions.

Whoever asks more where something failed, and then counts those very failures, ends up too low:
a stratum that looked bad by chance is asked again and corrected, one that looked good by chance
is not. So every stratum is sampled in two halves, and each half is shared out by what was seen
in the other: given its size, a half knows nothing of its own failures.
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
    """What was asked and what went wrong. Filled round by round.

    A *cell* is one half of one stratum: cells 0 .. S-1 are the first halves, S .. 2S-1 the
    second.
    """

    partition: Partition
    asked: Int[Array, " cell"]
    failed: Int[Array, " cell"]
    forced: Int[Array, "cell answer"]
    """Wrong answer tokens, teacher-forced."""
    free: Int[Array, "cell answer"]
    """Wrong answer tokens, free-running."""
    case_asked: Int[Array, "cell digit depth carrying"]
    """Answer digits by look-ahead depth, quiet and carrying."""
    case_wrong: Int[Array, "cell digit depth carrying"]
    """Those that were wrong, teacher-forced."""
    failing: dict[int, Questions] = field(default_factory=dict)

    @classmethod
    def empty(cls, partition: Partition, answers: int) -> Tally:
        cells, digits = 2 * len(partition), partition.digits + 1
        by_answer = (cells, answers)
        by_case = (cells, digits, digits, 2)
        return cls(
            partition,
            np.zeros(cells, dtype=np.int64),
            np.zeros(cells, dtype=np.int64),
            np.zeros(by_answer, dtype=np.int64),
            np.zeros(by_answer, dtype=np.int64),
            np.zeros(by_case, dtype=np.int64),
            np.zeros(by_case, dtype=np.int64),
        )

    @property
    def evaluated(self) -> int:
        return int(self.asked.sum())

    @property
    def weights(self) -> Float[Array, " cell"]:
        """The share of each cell in the estimate: half of its stratum's probability."""
        return np.tile(self.partition.weights / 2, 2)

    @property
    def failure(self) -> Rate:
        """The chance of a wrong answer over all questions."""
        return weighted_rate(self.weights, self.asked, self.failed)

    def by_stratum(self, counts: Int[Array, cell * rest]) -> Int[Array, stratum * rest]:
        """Both halves together."""
        both: Array = counts.reshape(2, len(self.partition), *counts.shape[1:]).sum(axis=0)
        return both

    def ask(self, judge: Judge, questions: Questions, cell: Int[Array, " batch"]) -> None:
        """Put questions to the judge and count."""
        mistakes = judge(questions)
        failed = mistakes.failed
        np.add.at(self.asked, cell, 1)
        np.add.at(self.failed, cell, failed)
        np.add.at(self.forced, cell, mistakes.teacher_forced)
        np.add.at(self.free, cell, mistakes.free_running)
        self._count_cases(questions, cell, mistakes.teacher_forced)
        stratum = cell % len(self.partition)
        for s in np.unique(stratum[failed]):
            new = questions[failed & (stratum == s)]
            kept = [self.failing[s], new] if s in self.failing else [new]
            self.failing[int(s)] = Questions.joined(kept)[:KEPT]

    def _count_cases(self, questions: Questions, cell: Array, wrong: Array) -> None:
        columns = Columns.of(questions)
        shape = self.case_asked.shape
        for k in range(columns.digits + 1):
            place = (cell, columns.look_ahead[:, k], columns.carrying[:, k].astype(np.int64))
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
    tally = Tally.empty(partition, answers)
    floor = min(FLOOR, max(1, budget // len(partition)))
    first = np.ceil(tally.weights * min(FIRST_ROUND, budget)).astype(np.int64)
    _ask_round(tally, judge, generator, np.maximum(first, floor // 2 + 1))
    enough = on_round(tally)
    while not enough and tally.evaluated < budget and tally.failure.relative_width > width:
        size = min(int(GROWTH * tally.evaluated) + 1, budget - tally.evaluated)
        _ask_round(tally, judge, generator, _shares(tally, size))
        enough = on_round(tally)
    return tally


def _ask_round(
    tally: Tally, judge: Judge, generator: np.random.Generator, counts: Int[Array, " cell"]
) -> None:
    chosen = np.flatnonzero(counts)
    strata = len(tally.partition)
    drawn = [tally.partition.draw(generator, int(c) % strata, int(counts[c])) for c in chosen]
    tally.ask(judge, Questions.joined(drawn), np.repeat(chosen, counts[chosen]))


def _shares(tally: Tally, size: int) -> Int[Array, " cell"]:
    """How the next questions are shared out: to where they narrow the interval most.

    A cell's chance of failing is that of its stratum's other half, taken a little above what
    was seen, so that strata in which nothing failed yet go on being asked, the likelier ones
    more.
    """
    chance = np.roll((tally.failed + 0.5) / (tally.asked + 1), len(tally.partition))
    spread: Float[Array, " cell"] = tally.weights * np.sqrt(chance * (1 - chance))
    wanted = spread / spread.sum() * (tally.evaluated + size)
    lacking = np.maximum(wanted - tally.asked, 0)
    counts: Int[Array, " cell"] = np.floor(lacking / lacking.sum() * size).astype(np.int64)
    counts[np.argsort(-lacking)[: size - int(counts.sum())]] += 1
    return counts
