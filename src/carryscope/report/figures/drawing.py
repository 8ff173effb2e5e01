"""What the figures share: parts that must be there, records, axes, colours.

Shades run from light to dark in one hue. What colour shows is also shown by shape, dash or text,
so that nothing is lost in black and white or to the colour-blind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import altair as alt

from carryscope.core.errors import CallError
from carryscope.core.words import Interval
from carryscope.core.words import with_interval as in_words
from carryscope.dissection.findings import Dissection

Record = dict[str, Any]

PAGE = 700
"""Width of a page, in pixels."""

LEAST_CELL = 9.5
"""Width of the narrowest column that can still be labelled, in pixels."""

BLACK, BLUE, ORANGE, GREEN, GREY = "#000000", "#0072b2", "#e69f00", "#009e73", "#d9d9d9"
"""Colours of Okabe and Ito, which colour-blind people tell apart; grey is for what is not used."""

COLOURS = (BLACK, BLUE, ORANGE, GREEN)
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
SHAPES = ("circle", "diamond", "square", "triangle-up")
"""What tells series apart, each by two of these."""

SHADES = ("#ffffff", "#9ecae1", "#4292c6", "#08519c", "#08306b")
"""One hue, light to dark."""

TWO_LINES = "split(datum.label, '|')"
"""Labels of an axis in two lines, parted by a bar."""

TIP = "tip"
"""The field of a record that says, in a line, what its mark shows."""

SAYS = alt.Description(f"{TIP}:N")
"""What a mark says to those who point at it; see `hover.py`."""

LEAST_LOSS = 1e-6
"""Where a logarithmic axis of losses begins at the latest; what is below is drawn there."""

DARK = 0.6
"""From this shade on, text on a cell is white."""


def needed(dissection: Dissection, part: str) -> Any:
    """A part of the findings, or the command that makes it."""
    finding = getattr(dissection, part)
    if finding is not None:
        return finding
    if part == "mlp" and not dissection.model.d_mlp:
        raise CallError("This figure shows the MLP, and the model has none.")
    where = " on a run that was trained here" if part == "story" else ""
    raise CallError(
        f"This figure needs the part '{part}' of a dissection, which is missing. "
        f"Run: carryscope dissect RUN --only {part}{where}"
    )


def data(records: Sequence[Record]) -> alt.InlineData:
    """Records as the data of a chart. A tuple, because altair copies lists whenever it can."""
    return alt.InlineData(values=tuple(records))


def interval(rate: Interval, what: str) -> Record:
    """A share with its interval, and what it says when one points at it."""
    return {
        "value": rate.estimate,
        "low": rate.low,
        "high": rate.high,
        TIP: f"{what}: {in_words(rate)}",
    }


def pixels(field: str, kind: Any) -> Any:
    """A channel whose numbers are pixels."""
    return kind(f"{field}:Q", scale=None, axis=None)


def aside(field: str, names: Sequence[str]) -> alt.YOffset:
    """Marks of the same name next to each other."""
    return alt.YOffset(f"{field}:N", scale=alt.Scale(domain=list(names)))


def cells(
    records: Sequence[Record], x: alt.X, y: alt.Y, title: str, **look: Any
) -> list[alt.Chart]:
    """Cells of a table, shaded by `share`, with their `_text`: white where the cell is dark."""
    boxes = alt.Chart(data(records)).mark_rect(**{"stroke": "#dddddd", **look})
    inks = {"black": [r for r in records if r["share"] < DARK]}
    inks["white"] = [r for r in records if r["share"] >= DARK]
    texts = [
        alt.Chart(data(written)).mark_text(color=ink, fontSize=10).encode(x=x, y=y, text="_text:N")
        for ink, written in inks.items()
        if written
    ]
    return [boxes.encode(x=x, y=y, color=shade(title), description=SAYS), *texts]


def names_across(field: str, names: list[str], **axis: Any) -> alt.X:
    """A discrete axis that shows all names in this order, whatever the data have."""
    axis = {"labelOverlap": False, "ticks": False, "labelPadding": 4, **axis}
    return alt.X(f"{field}:N", scale=alt.Scale(domain=names), title=None, axis=alt.Axis(**axis))


def names_down(field: str, names: list[str], *, padding: float = 0.0, **axis: Any) -> alt.Y:
    """The same, downwards, with some padding between names that have more than one mark."""
    axis = {"labelOverlap": False, "ticks": False, "labelPadding": 4, **axis}
    scale = alt.Scale(domain=names, paddingInner=padding, paddingOuter=padding / 2)
    return alt.Y(f"{field}:N", scale=scale, title=None, axis=alt.Axis(**axis))


def shade(title: str, *, legend: bool = True) -> alt.Color:
    """Light to dark, from nothing to all."""
    key = alt.Legend(
        title=title,
        format="%",
        orient="bottom",
        direction="horizontal",
        titleOrient="left",
        gradientLength=180,
        gradientThickness=10,
        tickCount=3,
    )
    scale = alt.Scale(domain=[0, 1], range=list(SHADES), interpolate="rgb", clamp=True)
    return alt.Color("share:Q", scale=scale, legend=key if legend else None)


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


def panel_size(panels: int, cells: int, *, most: float = 16.0) -> tuple[int, float]:
    """How many heat maps of so many columns fit side by side, and how wide a cell is then."""
    room = PAGE - 85

    def width(side_by_side: int) -> float:
        return room / (side_by_side * (cells + 1))

    side_by_side = next((n for n in range(panels, 1, -1) if width(n) >= LEAST_CELL), 1)
    return side_by_side, round(min(most, max(LEAST_CELL, width(side_by_side))), 1)


def series(field: str, names: Sequence[str], *, by: Literal["dash", "shape"]) -> dict[str, Any]:
    """Encodings that tell series apart by colour and again by dash or shape."""
    assert len(names) <= len(COLOURS)
    symbol = 250 if by == "dash" else 70
    legend = alt.Legend(title=None, orient="bottom", symbolSize=symbol)

    def scale(choices: Sequence[Any]) -> alt.Scale:
        return alt.Scale(domain=list(names), range=list(choices[: len(names)]))

    colour = alt.Color(f"{field}:N", scale=scale(COLOURS), legend=legend)
    if by == "dash":
        dash = alt.StrokeDash(f"{field}:N", scale=scale(DASHES), legend=legend)
        return {"color": colour, "strokeDash": dash}
    return {"color": colour, "shape": alt.Shape(f"{field}:N", scale=scale(SHAPES), legend=legend)}


def with_interval(
    chart: alt.Chart, x: alt.X, look: dict[str, Any]
) -> alt.LayerChart | alt.FacetChart:
    """Points with their intervals."""
    low = x.copy()
    low.shorthand = "low:Q"
    return alt.layer(
        chart.mark_rule(clip=True).encode(x=low, x2="high:Q", color=look["color"]),
        chart.mark_point(filled=True, size=55, opacity=1).encode(x=x, description=SAYS, **look),
    )
