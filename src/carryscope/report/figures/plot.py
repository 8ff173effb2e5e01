"""Lines and dots between two axes, on a canvas.

In: a canvas, a place on it, and what the axes show. Out: marks. What colour shows is also shown by
dash, so that nothing is lost in black and white or to the colour-blind.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from carryscope.report.figures.canvas import BLACK, CHARACTER, GREY, Canvas

BLUE, PURPLE, GREEN = "#0072b2", "#cc79a7", "#009e73"
"""Colours of Okabe and Ito, which colour-blind people tell apart. Orange is for what is wrong."""

COLOURS = (BLACK, BLUE, PURPLE, GREEN)
DASHES = ("", "6 3", "2 2", "8 3 2 3")
"""What tells lines apart: four of each, in another pairing every four lines."""

Number = int | float

LEAST = 1e-6
"""Where a logarithmic axis begins at the latest; what is below is drawn there."""

MARGIN = 58.0
"""Room for the numbers on the left of a plot, in pixels."""


def look_of(line: int) -> tuple[str, str]:
    """The colour and the dash of a line, by its number."""
    return COLOURS[line % 4], DASHES[(line + line // 4) % 4]


@dataclass(frozen=True)
class Axis:
    """From the lowest value to the highest, with a mark at some of them."""

    low: Number
    high: Number
    marks: Sequence[Number]
    log: bool = False

    @classmethod
    def linear(cls, low: Number, high: Number) -> Axis:
        """About five marks at round numbers."""
        step = 10.0 ** math.floor(math.log10(max(high - low, LEAST) / 2))
        step *= next(n for n in (1, 2, 5, 10) if (high - low) / (step * n) <= 6)
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        return cls(low, high, [step * i for i in range(first, last + 1)])

    @classmethod
    def logarithmic(cls, values: Iterable[Number]) -> Axis:
        """Powers of ten around these values, or more where they lie close."""
        known = [max(value, LEAST) for value in values] or [LEAST, 1.0]
        low, high = min(known) / 1.3, max(*known, 10 * LEAST) * 1.3
        steps = (1,) if high > 100 * low else (1, 2, 5)
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        marks = [step * 10.0**power for power in powers for step in steps]
        return cls(low, high, [mark for mark in marks if low <= mark <= high], log=True)

    def share(self, value: Number) -> float:
        """How far along the axis a value lies, from 0 to 1."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return (at - low) / (high - low)


class Plot:
    """A rectangle with axes; its marks are placed by value."""

    def __init__(
        self,
        canvas: Canvas,
        corner: tuple[Number, Number],
        size: tuple[Number, Number],
        across: Axis,
        up: Axis | None,
        title: str = "",
        names: tuple[str, str] = ("", ""),
    ) -> None:
        self.canvas, self.across, self.up = canvas, across, up
        left, top = map(float, corner)
        self.left, self.top = left + MARGIN * (up is not None), top + 18.0 * bool(title)
        self.width, self.height = map(float, size)
        canvas.text(self.left, top + 8, title, anchor="start", size=11.0, weight="bold")
        canvas.box(self.left, self.top, self.width, self.height, stroke="#bbbbbb")
        for mark in across.marks:
            canvas.text(self.x(mark), self.top + self.height + 9, _written(mark), ink=GREY)
        below = self.top + self.height + 24
        canvas.text(self.left + self.width / 2, below, names[0], size=11.0)
        for mark in up.marks if up else ():
            y = self.y(mark)
            canvas.line(f"M{self.left:.1f},{y:.1f} h{self.width:.1f}", stroke="#eeeeee")
            canvas.text(self.left - 4, y, _written(mark), ink=GREY, anchor="end")
        middle = self.top + self.height / 2 + len(names[1]) * CHARACTER / 2
        canvas.text(self.left - MARGIN + 6, middle, names[1], anchor="start", turned=True)

    def x(self, value: Number) -> float:
        return self.left + self.width * self.across.share(value)

    def y(self, value: Number) -> float:
        share = self.up.share(value) if self.up else 0.0
        return self.top + self.height * (1 - share)

    def line(
        self,
        points: Iterable[tuple[Number, Number | None]],
        colour: str = BLACK,
        dash: str = "",
        width: float = 1.5,
    ) -> None:
        """A line through points; where a value is missing, it breaks off."""
        path, move = "", "M"
        for at, value in points:
            path += "" if value is None else f"{move}{self.x(at):.1f},{self.y(value):.1f}"
            move = "M" if value is None else "L"
        self.canvas.line(path or "M0,0", stroke=colour, width=width, dash=dash)

    def pointed(self, at: Number, tip: str, width: float = 7.0) -> None:
        """An invisible stripe from top to bottom with a tip."""
        self.canvas.box(
            self.x(at) - width / 2, self.top, width, self.height, fill=BLACK, opacity=0.0, tip=tip
        )


def legend(canvas: Canvas, names: Sequence[str], place: tuple[Number, Number], room: float) -> None:
    """The names of lines with their look, in as many columns as there is room for."""
    wide = max(map(len, names)) * CHARACTER + 44
    columns = max(1, int(room // wide))
    for i, name in enumerate(names):
        x, y = place[0] + wide * (i % columns), place[1] + 15 * (i // columns) + 8
        colour, dash = look_of(i)
        canvas.line(f"M{x:.1f},{y:.1f} h26", stroke=colour, width=2.0, dash=dash)
        canvas.text(x + 31, y, name, anchor="start")


def _written(mark: Number) -> str:
    return f"{mark:,.0f}" if abs(mark) >= 1000 else f"{mark:.4g}"
