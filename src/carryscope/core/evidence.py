"""Numbers with the count of questions behind them and a 95 % interval; and findings."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from importlib import import_module
from statistics import fmean, stdev
from typing import Any

import msgspec

TINY = 1e-9
"""By how much rounding may move the end of an interval."""

Z_95 = 1.959963984540054
"""The normal quantile of a two-sided 95 % interval."""


def wilson(share: float, size: float) -> tuple[float, float]:
    """The 95 % Wilson interval of a share of `size` questions. It never claims certainty."""
    spread = Z_95**2 / size
    middle = share + spread / 2
    reach = Z_95 * math.sqrt(share * (1 - share) / size + spread / (4 * size))
    low, high = (middle - reach) / (1 + spread), (middle + reach) / (1 + spread)
    return max(0.0, low), min(1.0, high)


class Share(msgspec.Struct, frozen=True):
    """A share of questions, with its Wilson interval."""

    count: int
    of: int
    low: float
    high: float

    def __post_init__(self) -> None:
        if not (0 <= self.count <= self.of and -TINY <= self.low <= self.high <= 1 + TINY):
            raise ValueError("a share must be a part of a whole, with an interval from 0 to 1")

    @property
    def estimate(self) -> float:
        """The share itself; NaN if it is a share of no questions."""
        return self.count / self.of if self.of else math.nan

    @classmethod
    def of_hits(cls, hits: Any) -> Share:
        """The share of true values in a Boolean array."""
        return cls.measured(int(hits.sum()), len(hits))

    @classmethod
    def measured(cls, count: int, of: int) -> Share:
        """A share with its 95 % Wilson interval."""
        low, high = wilson(count / of, float(of)) if of else (0.0, 1.0)
        return cls(count, of, low, high)


class Mean(msgspec.Struct, frozen=True):
    """A mean with its 95 % interval, by the normal approximation."""

    estimate: float
    of: int
    low: float
    high: float

    def __post_init__(self) -> None:
        if not (self.of >= 0 and self.low - TINY <= self.estimate <= self.high + TINY):
            raise ValueError("a mean must lie in its interval")

    @classmethod
    def measured(cls, values: Sequence[float]) -> Mean:
        """The mean of at least two numbers."""
        mean = fmean(values)
        reach = Z_95 * stdev(values) / math.sqrt(len(values))
        return cls(mean, len(values), mean - reach, mean + reach)

    @classmethod
    def of_batches(cls, values: Sequence[float], size: int) -> Mean:
        """The mean of values that were drawn in batches of this size.

        Values of one batch are alike, so the interval is computed over batches. An interval over
        single values would be too narrow.
        """
        batches = [values[begin : begin + size] for begin in range(0, len(values), size)]
        whole = cls.measured([fmean(batch) for batch in batches])
        return cls(fmean(values), len(values), whole.low, whole.high)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage found: a record that shows itself, in a notebook as the report does."""

    def __repr__(self) -> str:
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        told = [f"{name}={_SHORT.repr(value)}" for name, value in fields.items() if _plain(value)]
        return f"{type(self).__name__}({', '.join(told)})"

    def _repr_html_(self) -> str:
        # The report is a later room: it is found by its name, when a notebook asks for it.
        shown: str = import_module("carryscope.report.page").notebook(self)
        return shown


_SHORT = reprlib.Repr()
_SHORT.maxstring, _SHORT.maxother = 60, 100


def _plain(value: Any) -> bool:
    """Whether a field is short enough to stand in the text of a finding."""
    return isinstance(value, str | int | float | Share | Mean)
