"""A figure: a drawing, its title, and the words that stand in for it where it cannot be seen.

In: a `Canvas`. Out: SVG, PNG or PDF, rendered inside this process. In a notebook a figure shows
itself as SVG. In the report the page has its title, and marks say on hover what they show.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path

import vl_convert

from carryscope.core.errors import CallError
from carryscope.core.storage import write_output
from carryscope.report.figures.canvas import Canvas
from carryscope.report.tables import as_csv

PNG_SCALE = 2.0
"""Pixels of a PNG for each unit of the drawing: sharp on a screen and in print."""

PAGE_SCALE = 1.2
"""How much larger than on paper a figure is on a page, where it is read from further away."""

SUBTITLE_WIDTH = 118
"""Characters that fit on one line under the title of a figure 700 wide."""


@dataclass(frozen=True, eq=False)
class Figure:
    """A drawing that carries its own title and text alternative."""

    chart: Canvas
    title: str
    description: str
    """What the figure shows, in words, for those who do not see it."""
    subtitle: str = ""
    """How to read it, in a line or two."""

    def svg(self) -> str:
        """The figure as SVG, its title and description inside."""
        heading = [self.title, *textwrap.wrap(self.subtitle, SUBTITLE_WIDTH)]
        return self._described(self.chart.svg(heading))

    def page_svg(self) -> str:
        """The figure for a page that has its own heading for it, with a tip on each mark."""
        return self._described(self.chart.svg([], scale=PAGE_SCALE, tips=True))

    def csv(self) -> str:
        """The numbers that the figure shows."""
        return as_csv(self.chart.records)

    def _described(self, drawn: str) -> str:
        """An SVG with the words that stand in for it."""
        head, _, rest = drawn.partition(">")
        words = f"<title>{escape(self.title)}</title><desc>{escape(self.description)}</desc>"
        label = f'role="img" aria-label="{escape(f"{self.title}. {self.description}")}"'
        return f"{head} {label}>{words}{rest}"

    def save(self, path: Path | str) -> Path:
        """Write the figure; the ending of the name says how: .svg, .png or .pdf."""
        path = Path(path)
        ways: dict[str, Callable[[], bytes]] = {
            ".svg": lambda: self.svg().encode(),
            ".png": lambda: vl_convert.svg_to_png(self.svg(), scale=PNG_SCALE),
            ".pdf": lambda: vl_convert.svg_to_pdf(self.svg()),
        }
        if path.suffix.lower() not in ways:
            raise CallError(f"A figure is saved as .svg, .png or .pdf. Got '{path.name}'.")
        write_output(path, ways[path.suffix.lower()]())
        return path

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"image/svg+xml": self.svg(), "text/plain": f"{self.title}. {self.description}"}
