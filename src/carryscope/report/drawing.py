"""What the figures have in common: parts that must be there, names, colours, heat maps.

Shades run from light to dark in one hue, and what is told by colour is also told by shape, dash
or text, so that nothing is lost in black and white or to the colour-blind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import altair as alt

from carryscope.dissection.attention import AttentionFinding
from carryscope.dissection.findings import Dissection
from carryscope.errors import CallError
from carryscope.task.tokens import Format

Record = dict[str, Any]

PAGE = 700
"""Width of a page, in pixels."""

BLACK, BLUE, ORANGE, GREEN, GREY = "#000000", "#0072b2", "#e69f00", "#009e73", "#d9d9d9"
"""Colours of Okabe and Ito, told apart by colour-blind people; grey is for what is not used."""

SHADES = ("#ffffff", "#deebf7", "#9ecae1", "#4292c6", "#08519c", "#08306b")
"""One hue, light to dark."""

DARK = 0.5
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
    """Records as the data of a chart."""
    return alt.InlineData(values=list(records))


def row_names(layout: Format) -> list[str]:
    """Answer rows by what they read and predict: "= → A5", "A5 → A4" ..."""
    names = layout.position_names
    return [f"{names[row]} → {names[row + 1]}" for row in layout.answer_rows]


def head_name(layer: int, head: int, layers: int) -> str:
    """H0, or L1H0 where there is more than one layer."""
    return f"L{layer}H{head}" if layers > 1 else f"H{head}"


def head_titles(finding: AttentionFinding, layers: int) -> dict[tuple[int, int], str]:
    """Each head with what it attends to: "H0, own column"."""
    return {
        (role.layer, role.head): (
            f"{head_name(role.layer, role.head, layers)}, {role.role or 'no staircase'}"
        )
        for role in finding.heads
    }


def percent(share: float) -> str:
    """A share as text; what is rare does not turn into 0 %."""
    return f"{share:.0%}" if share >= 0.0095 or not share else f"{share:.1%}"


def sorted_axis(kind: type[alt.X] | type[alt.Y], field: str, names: list[str], **axis: Any) -> Any:
    """A discrete axis that shows all names in this order, whatever the data have."""
    return kind(f"{field}:N", scale=alt.Scale(domain=names), title=None, axis=alt.Axis(**axis))


def shade(title: str, top: float = 1.0, *, legend: bool = True) -> alt.Color:
    """Light to dark, from nothing to `top`."""
    key = alt.Legend(title=title, format="%", gradientLength=90, tickCount=3) if legend else None
    scale = alt.Scale(domain=[0, top], range=list(SHADES), clamp=True)
    return alt.Color("share:Q", scale=scale, legend=key)


def panel_size(panels: int, cells: int, *, least: float = 9, most: float = 16) -> tuple[int, float]:
    """How many heat maps of so many columns fit side by side, and how wide a cell can be."""
    room = PAGE - 130
    side_by_side = next(
        (n for n in range(panels, 1, -1) if room / (n * cells + 2 * n) >= least), 1
    )
    width = room / (side_by_side * cells + 2 * side_by_side)
    return side_by_side, round(min(most, max(least, width)), 1)


def series(
    field: str, names: Sequence[str], title: str | None = None, *, by: Literal["dash", "shape"]
) -> dict[str, Any]:
    """Encodings that tell series apart by colour and again by dash or shape."""
    colours = [BLACK, BLUE, ORANGE, GREEN]
    marks: dict[str, list[Any]] = {
        "dash": [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3]],
        "shape": ["circle", "diamond", "square", "triangle-up"],
    }
    assert len(names) <= len(colours)

    def scale(choices: list[Any]) -> alt.Scale:
        return alt.Scale(domain=list(names), range=choices[: len(names)])

    legend = alt.Legend(title=title, orient="bottom", symbolStrokeWidth=2, symbolSize=70)
    colour = alt.Color(f"{field}:N", scale=scale(colours), legend=legend)
    if by == "dash":
        wide = alt.Legend(title=title, orient="bottom", symbolStrokeWidth=2, symbolSize=400)
        colour.legend = wide
        return {
            "color": colour,
            "strokeDash": alt.StrokeDash(f"{field}:N", scale=scale(marks["dash"]), legend=wide),
        }
    return {
        "color": colour,
        "shape": alt.Shape(f"{field}:N", scale=scale(marks["shape"]), legend=legend),
    }
