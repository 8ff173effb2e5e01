"""Who is tested, and what went wrong: a judge marks wrong answer tokens, a tally counts them.

A judge is a function. So the estimators can be tested on predictors whose failure rate is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from carryscope.model.prediction import answer_both
from carryscope.model.transformer import Transformer
from carryscope.task.columns import Columns
from carryscope.task.operation import Array
from carryscope.task.questions import Questions
from carryscope.verification.estimate import Rate, weighted_rate
from carryscope.verification.partition import Partition

KEPT = 32
"""Failing questions kept for each stratum."""


class Mistakes(NamedTuple):
    """Which answer tokens are wrong, in the order in which the model writes them."""

    teacher_forced: Bool[Array, "batch answer"]
    free_running: Bool[Array, "batch answer"]

    @property
    def failed(self) -> Bool[Array, " batch"]:
        """Questions with a wrong answer.

        Teacher-forced and free-running agree here. Up to the first wrong token the model reads
        the same tokens, so either both answers have one or neither has.
        """
        return np.asarray(self.teacher_forced.any(axis=1))


Judge = Callable[[Questions], Mistakes]


def judge_of(model: Transformer) -> Judge:
    """The judge of a model."""

    def judge(questions: Questions) -> Mistakes:
        forced, free = answer_both(model, questions)
        return Mistakes(~forced.right, ~free.right)

    return judge


class Tally:
    """How many questions were tested and what went wrong, by stratum. It fills round by round."""

    def __init__(self, partition: Partition, answers: int) -> None:
        strata, digits = len(partition), partition.digits + 1
        self.partition = partition
        self.asked: Int[Array, " stratum"] = np.zeros(strata, dtype=np.int64)
        self.failed = np.zeros_like(self.asked)
        self.forced: Int[Array, "stratum answer"] = np.zeros((strata, answers), dtype=np.int64)
        """Wrong answer tokens, teacher-forced; `free` are those free-running."""
        self.free = np.zeros_like(self.forced)
        self.case_asked: Int[Array, "stratum digit depth carrying"]
        """Answer digits by look-ahead; `case_wrong` are the wrong ones, teacher-forced."""
        self.case_asked = np.zeros((strata, digits, digits, 2), dtype=np.int64)
        self.case_wrong = np.zeros_like(self.case_asked)
        self.failing: dict[int, Questions] = {}
        """Failing questions of each stratum."""
        self.pilot = 0
        """Questions that only showed where failures are."""
        self.exhaustive = False
        """Whether every question there is was tested."""

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

    def ask(self, judge: Judge, questions: Questions, stratum: Int[Array, " batch"]) -> None:
        """Test questions of these strata and count."""
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
        strata, _, *case = self.case_asked.shape
        shape = (strata, *case)
        for k in range(columns.digits + 1):
            place = (stratum, columns.look_ahead[:, k], columns.carry_in[:, k].astype(np.int64))
            flat = np.ravel_multi_index(place, shape)
            missed = flat[wrong[:, wrong.shape[1] - 1 - k]]
            for counts, cases in ((self.case_asked, flat), (self.case_wrong, missed)):
                found = np.bincount(cases, minlength=int(np.prod(shape)))
                counts[:, k] += found.reshape(shape)
