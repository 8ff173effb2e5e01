"""Numbers in words: shares with intervals, lists, and what the paper says beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from carryscope.core.evidence import Mean, Share
from carryscope.model.config import ModelConfig
from carryscope.report.paper import paper_value
from carryscope.verification.estimate import Rate
from carryscope.verification.stratified import WeightedShare

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


Interval = Share | Rate | WeightedShare | Mean
"""An estimate between two bounds."""


def percent(share: float) -> str:
    """A share with two digits that count, and as many of its distance from 100 %.

    What is rare does not turn into 0 %, and what is nearly certain not into 100 %.
    """
    if math.isnan(share):
        return "none asked"
    near = min(share, 1 - share)
    if near <= 0:
        return f"{share:.0%}"
    decimals = max(0, min(6, 1 - math.floor(math.log10(100 * near))))
    return f"{share:.{min(decimals, 6)}%}"


def with_interval(rate: Interval) -> str:
    """A share and its interval, to as many digits as are known; never "0 %" from a sample."""
    if rate.low == rate.high or math.isnan(rate.estimate):
        return percent(rate.estimate)
    if rate.estimate == 0:
        return f"none (below {percent(rate.high)})"
    if rate.estimate == 1:
        return f"all (above {percent(rate.low)})"
    return f"{rate.estimate:.{_known(rate)}%} ({between(rate)})"


def between(rate: Interval) -> str:
    """The interval of a share, to the digits in which its ends differ."""
    decimals = _known(rate)
    return f"{rate.low:.{decimals}%} to {rate.high:.{decimals}%}"


def _known(rate: Interval) -> int:
    """Decimals of a percentage that its interval warrants, and that keep it from showing as 0."""
    sizes = [rate.high - rate.low, *([rate.estimate] if rate.estimate > 0 else [])]
    return max(0, min(6, -math.floor(math.log10(100 * max(min(sizes), 1e-9)))))


def loss(value: Interval) -> str:
    """A loss and its interval."""
    return f"{value.estimate:.4f} ({value.low:.4f} to {value.high:.4f})"


def listed(words: Sequence[str]) -> str:
    """ "H0, H1 and H2"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def place_of(digit: str) -> int | None:
    """The 3 of "A3"; nothing for a name that is no answer digit's."""
    return int(digit[1:]) if digit[1:].isdecimal() else None


def spanned(digits: Sequence[str]) -> str:
    """Answer digits: "A4 to A0" if they follow each other downwards, else a list."""
    numbers = [number for digit in digits if (number := place_of(digit)) is not None]
    if len(numbers) != len(digits):
        return listed(digits)
    falling = all(a - b == 1 for a, b in pairwise(numbers))
    return f"{digits[0]} to {digits[-1]}" if falling and len(digits) > 2 else listed(digits)


def counted(number: int, what: str) -> str:
    """ "two nines", "1 head"."""
    name = NUMBERS[number] if number < len(NUMBERS) else f"{number:,}"
    return f"{name} {what}{'' if number == 1 else 's'}"


def paper_text(name: str, model: ModelConfig) -> str:
    """The paper's value of something with where it stands, or nothing."""
    value = paper_value(name, model)
    return f"{value.text} ({value.where})" if value else ""


def paper_cell(name: str, model: ModelConfig) -> str:
    """The paper's value alone, for a table whose caption says where it stands."""
    value = paper_value(name, model)
    return value.text if value else ""


def paper_share(name: str, model: ModelConfig) -> str:
    """The same for a share, in per cent as ours."""
    value = paper_value(name, model)
    return percent(float(value.value)) if value else ""
