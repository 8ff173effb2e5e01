"""The vocabulary of charts: records, axes, colours, and what tells series apart.

What colour shows is also shown by shape, dash or text, so that nothing is lost in black and white
or to the colour-blind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import altair as alt

Record = dict[str, Any]

PAGE = 700
"""Width of a page, in pixels."""

BLACK, BLUE, PURPLE, GREEN = "#000000", "#0072b2", "#cc79a7", "#009e73"
"""Colours of Okabe and Ito, which colour-blind people tell apart. Orange is for what is wrong."""

COLOURS = (BLACK, BLUE, PURPLE, GREEN)
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
SHAPES = ("circle", "diamond", "square", "triangle-up")
"""What tells series apart, each by two of these."""

TIP = "tip"
"""The field of a record that says, in a line, what its mark shows."""

SAYS = alt.Description(f"{TIP}:N")
"""What a mark says to those who point at it; see `chart.py`."""

LEAST_LOSS = 1e-6
"""Where a logarithmic axis of losses begins at the latest; what is below is drawn there."""


def data(records: Sequence[Record]) -> alt.InlineData:
    """Records as the data of a chart. A tuple, because altair copies lists whenever it can."""
    return alt.InlineData(values=tuple(records))


def names_across(field: str, names: list[str], **axis: Any) -> alt.X:
    """A discrete axis that shows all names in this order, whatever the data have."""
    return alt.X(f"{field}:N", scale=alt.Scale(domain=names), title=None, axis=_axis(axis))


def names_down(field: str, names: list[str], **axis: Any) -> alt.Y:
    """The same, downwards."""
    return alt.Y(f"{field}:N", scale=alt.Scale(domain=names), title=None, axis=_axis(axis))


def _axis(axis: dict[str, Any]) -> alt.Axis:
    return alt.Axis(**{"labelOverlap": False, "ticks": False, "labelPadding": 4, **axis})


A = TypeVar("A", alt.X, alt.Y)


def loss_axis(kind: type[A], least: float, most: float) -> A:
    """A logarithmic axis of losses that shows these two."""
    low, high = max(least, LEAST_LOSS) / 1.3, max(most, 10 * LEAST_LOSS) * 1.3
    scale = alt.Scale(type="log", domain=[low, high], nice=False, clamp=True)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if high > 100 * low else (1, 2, 5)
    ticks = [step * 10.0**power for power in powers for step in steps]
    axis = alt.Axis(values=[t for t in ticks if low <= t <= high], grid=True, labelFlush=False)
    return kind("value:Q", scale=scale, title="loss", axis=axis)


def series(
    field: str,
    names: Sequence[str],
    *,
    by: Literal["dash", "shape"],
    orient: Literal["bottom", "right"] = "bottom",
) -> dict[str, Any]:
    """Encodings that tell series apart by colour and again by dash or shape."""
    symbol = 250 if by == "dash" else 70
    legend = alt.Legend(title=None, orient=orient, symbolSize=symbol, labelLimit=330)

    def scale(choices: Sequence[Any], turn: int = 0) -> alt.Scale:
        n = len(choices)
        chosen = [choices[(i + turn * (i // n)) % n] for i in range(len(names))]
        return alt.Scale(domain=list(names), range=chosen)

    colour = alt.Color(f"{field}:N", scale=scale(COLOURS), legend=legend)
    if by == "dash":
        dash = alt.StrokeDash(f"{field}:N", scale=scale(DASHES, 1), legend=legend)
        return {"color": colour, "strokeDash": dash}
    shape = alt.Shape(f"{field}:N", scale=scale(SHAPES, 1), legend=legend)
    return {"color": colour, "shape": shape}
