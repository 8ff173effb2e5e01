"""Shares of counted questions in words. In: whole numbers. Out: text that claims no more."""

from __future__ import annotations

import math
from fractions import Fraction

DIGITS = 3
"""Digits of a percentage that count, or of its distance from 100 %."""

DECIMALS = 6
"""Decimals of it at most."""


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
