"""Numbers with what is behind them (how many questions, a 95 % interval), and findings."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from importlib import import_module
from statistics import fmean, stdev
from typing import Any

import msgspec

Z_95 = 1.959963984540054
"""The normal quantile of a two-sided 95 % interval."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage found: a record that shows itself, in a notebook as the report does."""

    def __repr__(self) -> str:
        fields = [f"{name}={_short(getattr(self, name))}" for name in self.__struct_fields__]
        return f"{type(self).__name__}({', '.join(fields)})"

    def _repr_html_(self) -> str:
        # The report is a later room: it is found by its name, when a notebook asks for it.
        parts = import_module("carryscope.report.findings").parts_of(self)
        shown: str = import_module("carryscope.report.page").fragment(parts)
        return shown


def _short(value: Any) -> str:
    """A field in a few words: of a list its length, of a record its type."""
    if isinstance(value, list | dict | tuple):
        return f"<{len(value)} items>" if value else repr(value)
    if isinstance(value, msgspec.Struct) and len(repr(value)) > LONGEST_FIELD:
        return f"<{type(value).__name__}>"
    return _SHORTENED.repr(value) if isinstance(value, str) else repr(value)


LONGEST_FIELD = 80
"""Characters of a field in the text that stands for a finding."""

_SHORTENED = reprlib.Repr()
_SHORTENED.maxstring = LONGEST_FIELD


class Share(msgspec.Struct, frozen=True):
    """A share of questions, with its Wilson interval."""

    count: int
    of: int
    low: float
    high: float

    @property
    def estimate(self) -> float:
        """The share itself; with no questions behind it, not a number."""
        return self.count / self.of if self.of else math.nan

    @classmethod
    def of_hits(cls, hits: Any) -> Share:
        """The share of an array of yes and no that is yes."""
        return cls.measured(int(hits.sum()), len(hits))

    @classmethod
    def measured(cls, count: int, of: int) -> Share:
        """A share with its 95 % Wilson interval, which never claims certainty."""
        if of == 0:
            return cls(0, 0, 0.0, 1.0)
        share, spread = count / of, Z_95**2 / of
        middle = share + spread / 2
        reach = Z_95 * math.sqrt(share * (1 - share) / of + spread / (4 * of))
        low, high = (middle - reach) / (1 + spread), (middle + reach) / (1 + spread)
        return cls(count, of, max(0.0, low), min(1.0, high))


class Mean(msgspec.Struct, frozen=True):
    """A mean with its 95 % interval, by the normal approximation."""

    estimate: float
    of: int
    low: float
    high: float

    @classmethod
    def measured(cls, values: Sequence[float]) -> Mean:
        """The mean of at least two numbers; one says nothing about its own spread."""
        mean = fmean(values)
        reach = Z_95 * stdev(values) / math.sqrt(len(values))
        return cls(mean, len(values), mean - reach, mean + reach)

    @classmethod
    def of_batches(cls, values: Sequence[float], size: int) -> Mean:
        """The mean of values that were drawn in batches of a size, and are alike within one.

        So the interval is over batches: that over single values would be too narrow.
        """
        batches = [values[begin : begin + size] for begin in range(0, len(values), size)]
        whole = cls.measured([fmean(batch) for batch in batches])
        return cls(fmean(values), len(values), whole.low, whole.high)
