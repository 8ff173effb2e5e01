"""Probabilities over all questions from stratified samples, with intervals for rare events.

In: for each stratum its probability, how many questions were tested and how many hit. Out: `Rate`.
A `WeightedSample` has questions of every stratum, for comparing a model with algorithms.

The estimate is a weighted sum of counts, sum c_s k_s with c_s = w_s / n_s. Its interval is the
gamma interval of Fay and Feuer (1997) for such sums. It is exact if all weights are equal, and
conservative otherwise. The upper end allows for one more hit in the stratum where a single one
weighs most. So a model that never fails in the sample gets an upper bound above 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np
from jaxtyping import Bool, Float, Int

from carryscope.core.evidence import TINY, wilson
from carryscope.task.columns import Columns
from carryscope.task.operation import ADD, Array, Operation
from carryscope.task.questions import Questions
from carryscope.verification.partition import Partition, partition

TAIL = 0.025
"""Each tail of a 95 % interval."""

FLOOR = 40
"""Questions in every stratum, however rare: 9,720 for five digits."""

SHARED = 30_000
"""Further questions, distributed by probability."""


class Rate(msgspec.Struct, frozen=True):
    """A probability over all questions, or a difference of two, with its 95 % interval."""

    estimate: float
    low: float
    high: float

    def __post_init__(self) -> None:
        inside = self.low - TINY <= self.estimate <= self.high + TINY
        if not (inside and self.low >= -1 - TINY and self.high <= 1 + TINY):
            raise ValueError("a rate must lie in its interval, from -1 to 1")

    @property
    def relative_width(self) -> float:
        """The width of the interval divided by the estimate; infinite if the estimate is 0."""
        return (self.high - self.low) / self.estimate if self.estimate else float("inf")

    @classmethod
    def exactly(cls, count: int, of: int) -> Rate:
        """A share counted over every question there is."""
        return cls(count / of, count / of, count / of)


class WeightedShare(Rate, frozen=True):
    """A probability over the questions that meet a condition, with its 95 % interval."""

    of: int
    """Questions of the sample that meet the condition."""


def weighted_rate(
    weight: Float[Array, " stratum"],
    asked: Int[Array, " stratum"],
    failed: Int[Array, " stratum"],
) -> Rate:
    """The rate and its interval. Every question of an untested stratum may fail."""
    seen = asked > 0
    unseen = float(weight[~seen].sum())
    each = weight[seen] / asked[seen]
    total = float((each * failed[seen]).sum())
    if not seen.any():
        return Rate(0.0, 0.0, min(1.0, unseen))
    # A count of k failures in n questions varies by k (1 - k/n). With n + 1 a stratum in which
    # every question failed still has some variance.
    variance = float((each**2 * failed[seen] * (1 - failed[seen] / (asked[seen] + 1))).sum())
    most = float(each.max())
    low = _gamma_quantile(TAIL, total, variance)
    high = _gamma_quantile(1 - TAIL, total + most, variance + most**2)
    return Rate(total, min(low, total), min(1.0, max(high, total) + unseen))


def _gamma_quantile(probability: float, mean: float, variance: float) -> float:
    """The quantile of the gamma distribution with this mean and variance."""
    from scipy.special import gammaincinv  # type: ignore[import-untyped]  # slow to import

    if mean <= 0 or variance <= 0:
        return max(mean, 0.0)
    return float(variance / mean * gammaincinv(mean**2 / variance, probability))


@dataclass(frozen=True, eq=False)
class WeightedSample:
    """Questions, stratum by stratum."""

    partition: Partition
    questions: Questions
    stratum: Int[Array, " batch"]

    @classmethod
    def draw(
        cls,
        generator: np.random.Generator,
        digits: int,
        shared: int | None = None,
        operation: Operation = ADD,
    ) -> WeightedSample:
        """Some questions of every stratum, and more of the common ones."""
        strata = partition(digits, operation)
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
