"""Failure rates over all questions from stratified samples, with intervals for rare failures.

In: for each stratum its probability, how many questions were tested and how many failed. Out:
`Rate`.

The estimate is a weighted sum of counts, sum c_s k_s with c_s = w_s / n_s. Its interval is the
gamma interval of Fay and Feuer (1997) for such sums. It is exact if all weights are equal, and
conservative otherwise. The upper end allows for one more failure in the stratum where a single
failure weighs most. So a model that never fails in the sample gets an upper bound above 0.
"""

from __future__ import annotations

import msgspec
from jaxtyping import Float, Int

from carryscope.core.evidence import TINY
from carryscope.task.operation import Array

TAIL = 0.025
"""Each tail of a 95 % interval."""


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
