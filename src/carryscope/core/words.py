"""Numbers as words: how a share, an interval or a list becomes text."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Protocol, runtime_checkable

DIGITS = 3
"""Digits of a counted share that matter, or of its distance from 100 %."""

DECIMALS = 6
"""Decimals of a percentage at most."""

STEERING = ("Cc", "Cf", "Cs", "Co")
"""Kinds of signs that are not seen: they control, join, turn around, or stand for bytes."""

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@runtime_checkable
class Interval(Protocol):
    """An estimate between two bounds."""

    @property
    def estimate(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def visible(text: str) -> str:
    """Text from outside, with signs that would steer a terminal written out: "\\x1b[2J"."""
    return "".join(
        sign.encode("unicode_escape").decode()
        if unicodedata.category(sign) in STEERING and sign != "\n"
        else sign
        for sign in text
    )


def percent(share: float) -> str:
    """A share with two digits that count, and as many of its distance from 100 %.

    What is rare does not turn into 0 %, and what is nearly certain not into 100 %.
    """
    if math.isnan(share):
        return "none asked"
    near = min(share, 1 - share)
    if near <= 0:
        return f"{share:.0%}"
    decimals = max(0, min(DECIMALS, 1 - math.floor(math.log10(100 * near))))
    return f"{share:.{decimals}%}"


def brief(share: float) -> str:
    """A share for a narrow cell: two digits at most; only all is 100 %."""
    if 0.995 <= share < 1:
        return ">99%"
    return f"{100 * share:.2g}%" if share < 0.0995 else f"{share:.0%}"


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


def spanned(digits: Sequence[str]) -> str:
    """Answer digits: "A4 to A0" if they follow each other downwards, else a list."""
    numbers = [int(digit[1:]) for digit in digits if digit[1:].isdecimal()]
    falling = len(numbers) == len(digits) and all(a - b == 1 for a, b in pairwise(numbers))
    return f"{digits[0]} to {digits[-1]}" if falling and len(digits) > 2 else listed(digits)


def counted(number: int, what: str, plural: str = "") -> str:
    """ "two nines", "one head", "no carry"."""
    name = NUMBERS[number] if number < len(NUMBERS) else f"{number:,}"
    return f"{name} {what if number == 1 else plural or f'{what}s'}"


def spent(seconds: float) -> str:
    """A time: "1 second", "42 minutes"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds" if round(seconds) > 1 else "1 second"
    return f"{round(seconds / 60):,} minutes"


def counted_share(part: int, of: int, *, at_most: bool = False) -> str:
    """A share in per cent, rounded to the safe side: down, or up if it is told as `at_most`.

    Only nothing is 0 %, and only all is 100 %.
    """
    if part in (0, of):
        return "100%" if part else "0%"
    share = Fraction(100 * part, of)
    near = min(share, 100 - share)
    decimals = min(DECIMALS, max(0, DIGITS - 1 - math.floor(math.log10(near))))
    whole = 10**decimals
    rounded = math.ceil(share * whole) if at_most else math.floor(share * whole)
    if rounded == 0:
        return f"<{1 / whole:.{decimals}f}%"
    if rounded == 100 * whole:
        return f">{100 - 1 / whole:.{decimals}f}%"
    return f"{rounded // whole}.{rounded % whole:0{decimals}d}%" if decimals else f"{rounded}%"


def sparkline(values: Sequence[float], width: int = 12) -> str:
    """Positive values as a line of small bars, on a logarithmic scale: "█▆▅▂▁"."""
    chosen = [values[i * (len(values) - 1) // max(1, width - 1)] for i in range(width)]
    logs = [math.log(max(value, 1e-12)) for value in chosen if math.isfinite(value)]
    low, span = min(logs, default=0.0), (max(logs, default=0.0) - min(logs, default=0.0)) or 1.0
    return "".join("▁▂▃▄▅▆▇█"[round(7 * (value - low) / span)] for value in logs)
