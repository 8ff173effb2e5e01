"""Rates over all questions from stratified samples, with intervals that hold for rare failures.

In: for each stratum its probability, how many questions were asked and how many failed. Out:
`Rate`.

The estimate is a weighted sum of counts, sum c_s k_s with c_s = w_s / n_s. Its interval is the
gamma interval of Fay and Feuer (1997) for such sums: exact if all weights are equal, and with
unequal ones known to err on the side of caution. The upper end allows for one more failure in
the stratum where a single one weighs most, so that strata in which nothing failed still count:
a model that never fails in the sample gets an upper bound above 0.
"""

from __future__ import annotations

import msgspec
import numpy as np
import torch
from jaxtyping import Float, Int

from carryscope.task.operation import Array

TAIL = 0.025
"""Each tail of a 95 % interval."""


class Rate(msgspec.Struct, frozen=True):
    """A probability over all questions, with its 95 % interval."""

    estimate: float
    low: float
    high: float

    @property
    def relative_width(self) -> float:
        """The width of the interval in units of the estimate; infinite if nothing was found."""
        return (self.high - self.low) / self.estimate if self.estimate else float("inf")

    @classmethod
    def exactly(cls, count: int, of: int) -> Rate:
        """A share that was counted over all there is."""
        return cls(count / of, count / of, count / of)


def weighted_rate(
    weight: Float[Array, " stratum"],
    asked: Int[Array, " stratum"],
    failed: Int[Array, " stratum"],
) -> Rate:
    """The rate and its interval. A stratum in which nothing was asked may hide any failure."""
    seen = asked > 0
    unseen = float(weight[~seen].sum())
    each = weight[seen] / asked[seen]
    total = float((each * failed[seen]).sum())
    if not seen.any():
        return Rate(0.0, 0.0, min(1.0, unseen))
    # A count of k failures in n questions varies by k (1 - k/n); n + 1 keeps a stratum in which
    # every question failed from claiming certainty.
    variance = float((each**2 * failed[seen] * (1 - failed[seen] / (asked[seen] + 1))).sum())
    most = float(each.max())
    low = _gamma_quantile(TAIL, total, variance)
    high = _gamma_quantile(1 - TAIL, total + most, variance + most**2)
    return Rate(total, min(low, total), min(1.0, max(high, total) + unseen))


def _gamma_quantile(probability: float, mean: float, variance: float) -> float:
    """The quantile of the gamma distribution with this mean and variance, by bisection."""
    if mean <= 0 or variance <= 0:
        return max(mean, 0.0)
    shape, scale = mean**2 / variance, variance / mean
    low, high = 0.0, shape + 40 * (np.sqrt(shape) + 1)
    at = torch.tensor([shape], dtype=torch.float64)
    for _ in range(100):
        middle = (low + high) / 2
        below = torch.special.gammainc(at, torch.tensor([middle], dtype=torch.float64))
        low, high = (middle, high) if float(below) < probability else (low, middle)
    return float(scale * (low + high) / 2)
