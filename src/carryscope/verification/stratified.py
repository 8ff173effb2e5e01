"""One weighted sample with questions of every stratum, for comparing a model with algorithms.

In: a number of digits and a generator. Out: a `WeightedSample`. The weights of its questions turn
counts into probabilities over all questions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from carryscope.core.evidence import wilson
from carryscope.task.columns import Columns
from carryscope.task.operation import Array
from carryscope.task.questions import Questions
from carryscope.verification.estimate import Rate, weighted_rate
from carryscope.verification.partition import Partition, partition

FLOOR = 40
"""Questions in every stratum, however rare: 9,720 for five digits."""

SHARED = 30_000
"""Further questions, distributed by probability."""


class WeightedShare(Rate, frozen=True):
    """A probability over the questions that meet a condition, with its 95 % interval."""

    of: int
    """Questions of the sample that meet the condition."""


@dataclass(frozen=True, eq=False)
class WeightedSample:
    """Questions, stratum by stratum."""

    partition: Partition
    questions: Questions
    stratum: Int[Array, " batch"]

    @classmethod
    def draw(
        cls, generator: np.random.Generator, digits: int, shared: int | None = None
    ) -> WeightedSample:
        """Some questions of every stratum, and more of the common ones."""
        strata = partition(digits)
        more = SHARED if shared is None else shared
        counts = FLOOR + np.rint(strata.weights * more).astype(np.int64)
        return cls(strata, *strata.draw_each(generator, counts))

    def __len__(self) -> int:
        return len(self.questions)

    @cached_property
    def columns(self) -> Columns:
        return Columns.of(self.questions)

    @cached_property
    def asked(self) -> Int[Array, " stratum"]:
        """Questions in each stratum."""
        return self.count(np.ones(len(self), dtype=bool))

    @cached_property
    def weight(self) -> Float[Array, " batch"]:
        """The weight of each question. The weights add up to 1."""
        return (self.partition.weights / self.asked)[self.stratum]

    def count(self, hits: Bool[Array, " batch"]) -> Int[Array, " stratum"]:
        """Hits in each stratum."""
        return np.bincount(self.stratum[hits], minlength=len(self.partition))

    def rate(self, hits: Bool[Array, " batch"]) -> Rate:
        """The probability of a hit over all questions."""
        rate = weighted_rate(self.partition.weights, self.asked, self.count(hits))
        return Rate(min(1.0, rate.estimate), rate.low, rate.high)

    def rate_of_not(self, misses: Bool[Array, " batch"]) -> Rate:
        """The probability of no miss. If misses are rare, their interval is the better one."""
        rate = self.rate(misses)
        return Rate(1 - rate.estimate, 1 - rate.high, 1 - rate.low)

    def share(self, hits: Bool[Array, "batch *"], among: Array) -> WeightedShare | None:
        """The probability of a hit among some questions, or digits; null if there are none.

        The interval is Wilson's with Kish's effective sample size: the number of questions of
        equal weight that would vary as much. Digits of one question count as one observation,
        because they may fail together.
        """
        here = among.reshape(len(self), -1)
        hit = here & hits.reshape(len(self), -1)
        weight, total = self.weight * here.sum(1), self.weight * hit.sum(1)
        if not here.any():
            return None
        share = min(1.0, float(total.sum() / weight.sum()))
        low, high = wilson(share, float(weight.sum() ** 2 / (weight**2).sum()))
        return WeightedShare(share, min(low, share), max(high, share), int(here.sum()))

    def difference(self, first: Bool[Array, " batch"], second: Bool[Array, " batch"]) -> Rate:
        """How much likelier the first is than the second, question by question.

        Only questions where one hits and the other misses count. The intervals of these two cases
        are combined by Zou and Donner's rule (2008), which stays conservative.
        """
        gain, loss = self.rate(first & ~second), self.rate(second & ~first)
        more = gain.estimate - loss.estimate
        below = math.hypot(gain.estimate - gain.low, loss.high - loss.estimate)
        above = math.hypot(gain.high - gain.estimate, loss.estimate - loss.low)
        return Rate(more, more - below, more + above)
