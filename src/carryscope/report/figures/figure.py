"""A figure: a chart, its title, and the words that stand in for it where it cannot be seen.

In: an altair chart. Out: SVG, PNG or PDF, rendered inside this process: no browser, no network.
In a notebook a figure shows itself as SVG, whatever renderer altair is set to. In the report it
leaves its title to the page and says what each mark shows to those who point at it.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from carryscope.core.errors import CallError
from carryscope.core.storage import write_bytes
from carryscope.report.figures.hover import records, speaking, with_tips
from carryscope.report.parts import as_csv

AnyChart = (
    alt.Chart
    | alt.LayerChart
    | alt.FacetChart
    | alt.HConcatChart
    | alt.VConcatChart
    | alt.ConcatChart
)

PNG_SCALE = 2.0
"""Pixels of a PNG for each unit of the drawing: sharp on a screen and in print."""

PAGE_SCALE = 1.2
"""How much larger than on paper a figure is on a page, where it is read from further away."""

SUBTITLE_WIDTH = 118
"""Characters that fit on one line under the title of a figure 700 wide."""

THEME: dict[str, Any] = {
    "font": "DejaVu Sans, Verdana, sans-serif",
    "aria": False,
    "background": "white",
    "view": {"stroke": "#bbbbbb"},
    "title": {"anchor": "start", "fontSize": 11, "subtitleFontSize": 11, "offset": 5},
    "axis": {"grid": False, "labelFontSize": 10, "titleFontSize": 11, "titleFontWeight": "normal"},
    "legend": {"labelFontSize": 10, "titleFontSize": 11, "titleFontWeight": "normal"},
}
"""One look for all figures. The marks stay silent: the figure's own description is what a
screen reader says, not a label for each of a thousand cells."""


@dataclass(frozen=True, eq=False)
class Figure:
    """A chart that carries its own title and text alternative."""

    chart: AnyChart
    title: str
    description: str
    """What the figure shows, in words, for those who do not see it."""
    subtitle: str = ""
    """How to read it, in a line or two."""

    def __post_init__(self) -> None:
        lines = textwrap.wrap(self.subtitle, SUBTITLE_WIDTH)
        title = alt.TitleParams(text=self.title, subtitle=lines, fontSize=14, offset=12)
        chart = self.chart.properties(title=title, description=self.description)
        object.__setattr__(self, "chart", chart.configure(**THEME))

    def svg(self) -> str:
        """The figure as SVG, its title and description inside."""
        return self._described(_drawn(self._spec))

    def page_svg(self) -> str:
        """The figure for a page that has its own heading for it, with a tip on each mark."""
        spec = speaking(self._spec)
        spec.pop("title")
        spec["config"]["background"] = "transparent"
        return self._described(_enlarged(with_tips(_drawn(spec)), PAGE_SCALE))

    def csv(self) -> str:
        """The numbers that the figure shows."""
        return as_csv(records(self._spec))

    @cached_property
    def _spec(self) -> dict[str, Any]:
        """What Vega-Lite draws. Each part of a chart was validated when it was made."""
        spec: dict[str, Any] = self.chart.to_dict(validate=False)
        return spec

    def _described(self, drawn: str) -> str:
        """An SVG with the words that stand in for it."""
        head, _, rest = _with_own_ids(drawn).partition(">")
        words = f"<title>{escape(self.title)}</title><desc>{escape(self.description)}</desc>"
        label = f'role="img" aria-label="{escape(f"{self.title}. {self.description}")}"'
        return f"{head} {label}>{words}{rest}"

    def png(self) -> bytes:
        """The figure as PNG."""
        return vl_convert.svg_to_png(self.svg(), scale=PNG_SCALE)

    def pdf(self) -> bytes:
        """The figure as PDF."""
        return vl_convert.svg_to_pdf(self.svg())

    def save(self, path: Path | str) -> Path:
        """Write the figure; the ending of the name says how: .svg, .png or .pdf."""
        path = Path(path)
        ways: dict[str, Callable[[], bytes]] = {
            ".svg": lambda: self.svg().encode(),
            ".png": self.png,
            ".pdf": self.pdf,
        }
        check_ending(path)
        write_bytes(path, ways[path.suffix.lower()]())
        return path

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"image/svg+xml": self.svg(), "text/plain": f"{self.title}. {self.description}"}


def check_ending(path: Path) -> None:
    """Refuse a name whose ending is of no kind of picture that a figure can be saved as."""
    if path.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise CallError(f"A figure is saved as .svg, .png or .pdf. Got '{path.name}'.")


def _drawn(spec: dict[str, Any]) -> str:
    return vl_convert.vegalite_to_svg(spec, vl_version=_vega_lite(), allowed_base_urls=[])


def _enlarged(svg: str, scale: float) -> str:
    """The same drawing, larger: its own coordinates stay."""
    head, _, rest = svg.partition(" viewBox=")
    grown = re.sub(
        r'(width|height)="([\d.]+)"', lambda m: f'{m[1]}="{float(m[2]) * scale:.1f}"', head
    )
    return f"{grown} viewBox={rest}"


def _vega_lite() -> str:
    """The version of Vega-Lite that altair writes, as the renderer names it: v6.4.1 is 6.4."""
    return ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def _with_own_ids(svg: str) -> str:
    """Ids that no other figure has, for many may stand on one page, and the same every time.

    The renderer counts them on from figure to figure, so they are counted anew.
    """
    pattern = r'(id="|url\(#)(gradient_|clip)(\d+)'
    found = dict.fromkeys(match[2] + match[3] for match in re.finditer(pattern, svg))
    number = {name: i for i, name in enumerate(found)}
    svg = re.sub(pattern, lambda m: f"{m[1]}OWN_{number[m[2] + m[3]]}", svg)
    own = hashlib.sha256(svg.encode()).hexdigest()[:8]
    return re.sub(r'(id="|url\(#)OWN_', rf"\1f{own}_", svg)
