"""One sample of questions on which everything is compared: every stratum is in it.

In: a number of digits and a generator. Out: a `Sample`, whose questions have weights, so that
what is counted in it can be stated as a probability over all questions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np
from jaxtyping import Bool, Float, Int

from carryscope.core.evidence import Z_95
from carryscope.task.columns import Columns
from carryscope.task.operation import Array
from carryscope.task.questions import Questions
from carryscope.verification.estimate import Rate, weighted_rate
from carryscope.verification.partition import Partition, partition

FLOOR = 40
"""Questions in every stratum, however rare: 9,720 for five digits."""

SHARED = 30_000
"""Questions shared out by probability, on top."""


class WeightedShare(msgspec.Struct, frozen=True):
    """A probability over those uniform questions that fulfil a condition, with a 95 % interval."""

    estimate: float
    low: float
    high: float
    of: int
    """Questions of the sample that fulfil the condition."""


class Difference(msgspec.Struct, frozen=True):
    """The difference of two probabilities over all questions, with its 95 % interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Sample:
    """Questions, stratum by stratum."""

    partition: Partition
    questions: Questions
    stratum: Int[Array, " batch"]

    @classmethod
    def draw(cls, generator: np.random.Generator, digits: int) -> Sample:
        """Some questions of every stratum, and more of the common ones."""
        strata = partition(digits)
        counts = FLOOR + np.rint(strata.weights * SHARED).astype(np.int64)
        drawn = [strata.draw(generator, s, int(count)) for s, count in enumerate(counts)]
        return cls(strata, Questions.joined(drawn), np.repeat(np.arange(len(strata)), counts))

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
        """What each question stands for; the weights of all add up to 1."""
        return (self.partition.weights / self.asked)[self.stratum]

    def count(self, hits: Bool[Array, " batch"]) -> Int[Array, " stratum"]:
        """Hits in each stratum."""
        return np.bincount(self.stratum[hits], minlength=len(self.partition))

    def rate(self, hits: Bool[Array, " batch"]) -> Rate:
        """The probability of a hit over all questions."""
        rate = weighted_rate(self.partition.weights, self.asked, self.count(hits))
        return Rate(min(1.0, rate.estimate), rate.low, rate.high)

    def rate_of_not(self, misses: Bool[Array, " batch"]) -> Rate:
        """The probability of no miss, for misses that are rare: theirs is the better interval."""
        rate = self.rate(misses)
        return Rate(1 - rate.estimate, 1 - rate.high, 1 - rate.low)

    def share(
        self, hits: Bool[Array, " batch"], among: Bool[Array, " batch"]
    ) -> WeightedShare | None:
        """The probability of a hit among some questions; null if there are none of them.

        The interval is Wilson's for as many questions of equal weight as would vary alike
        (Kish's effective size), so that it never claims certainty.
        """
        weight, hit = self.weight[among], hits[among]
        if not len(weight):
            return None
        share = min(1.0, float(weight[hit].sum() / weight.sum()))
        size = float(weight.sum() ** 2 / (weight**2).sum())
        spread = Z_95**2 / size
        middle = (share + spread / 2) / (1 + spread)
        reach = Z_95 * math.sqrt(share * (1 - share) / size + spread / (4 * size)) / (1 + spread)
        low, high = max(0.0, middle - reach), min(1.0, middle + reach)
        return WeightedShare(share, min(low, share), max(high, share), len(weight))

    def difference(self, first: Bool[Array, " batch"], second: Bool[Array, " batch"]) -> Difference:
        """How much likelier the first is than the second, question by question.

        Where both hit or both miss, a question does not count. The intervals of the two other
        cases are put together by Zou and Donner's rule (2008), which keeps their caution.
        """
        gain, loss = self.rate(first & ~second), self.rate(second & ~first)
        more = gain.estimate - loss.estimate
        below = math.hypot(gain.estimate - gain.low, loss.high - loss.estimate)
        above = math.hypot(gain.high - gain.estimate, loss.estimate - loss.low)
        return Difference(more, more - below, more + above)
