"""Charts with axes, drawn by Vega-Lite inside this process: no browser, no network.

In: a chart of altair. Out: SVG, and the data that can be taken from it.

A mark speaks if its chart encodes `description`, which by our custom is the field `tip` of its
records. What can be pointed at is what can be taken away: the records of those charts are the
data of the figure, but for fields such as `_x` that only say where something is drawn.
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt
import vl_convert

from carryscope.report.figures.canvas import FONT
from carryscope.report.figures.drawing import TIP, Record

AnyChart = (
    alt.Chart
    | alt.LayerChart
    | alt.FacetChart
    | alt.HConcatChart
    | alt.VConcatChart
    | alt.ConcatChart
)

Spec = dict[str, Any]

THEME: Spec = {
    "font": FONT,
    "aria": False,
    "view": {"stroke": "#bbbbbb"},
    "title": {"anchor": "start", "fontSize": 11, "subtitleFontSize": 11, "offset": 5},
    "axis": {"grid": False, "labelFontSize": 10, "titleFontSize": 11, "titleFontWeight": "normal"},
    "legend": {"labelFontSize": 10, "titleFontSize": 11, "titleFontWeight": "normal"},
}
"""One look for all charts. The marks stay silent: the figure's own description is what a screen
reader says, not a label for each of a thousand points."""

_INNER = ("layer", "concat", "hconcat", "vconcat")
_ROLES = re.compile(r' (role="graphics-\w+"|aria-roledescription="[^"]*"|aria-label="[^"]*")')
_SPOKEN = re.compile(
    r'aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="[^"]*"(?= )'
)
_IDS = re.compile(r'(id="|url\(#)(gradient_|clip)(\d+)')


class Plotted:
    """A chart as something that can be drawn; each part of it was validated when it was made."""

    def __init__(self, chart: AnyChart) -> None:
        self.spec: Spec = chart.to_dict(validate=False)

    def svg(self, heading: list[str], *, scale: float = 1.0, tips: bool = False) -> str:
        """The chart below the lines of its heading; with `tips`, marks hold what they say."""
        spec = copy.deepcopy(self.spec)
        spec["config"] = THEME | {"background": "white" if heading else "transparent"}
        if heading:
            title, *rest = heading
            spec["title"] = {"text": title, "subtitle": rest, "fontSize": 14, "offset": 12}
        for unit, _, _ in _units(spec, None, ()) if tips else ():
            if "description" in unit.get("encoding", {}):
                mark = unit["mark"] if isinstance(unit["mark"], dict) else {"type": unit["mark"]}
                unit["mark"] = mark | {"aria": True}
        version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
        drawn = vl_convert.vegalite_to_svg(spec, vl_version=version, allowed_base_urls=[])
        if tips:  # as plain data: a page shows them, a screen reader passes over them
            drawn = _SPOKEN.sub(r'data-tip="\1"', drawn)
        return _enlarged(_with_own_ids(_ROLES.sub("", drawn)), scale)

    @property
    def records(self) -> list[Record]:
        """The records behind the marks that speak, each with the panel it stands in."""
        found: dict[str, Record] = {}
        for unit, data, titles in _units(self.spec, None, ()):
            if "description" not in unit.get("encoding", {}):
                continue
            panel = {"panel": ", ".join(titles)} if titles else {}
            for record in self._values(data):
                plain = {n: v for n, v in record.items() if n != TIP and not n.startswith("_")}
                found.setdefault(repr(panel | plain), panel | plain)
        return list(found.values())

    def _values(self, data: Spec | None) -> Sequence[Record]:
        """The records of some data: they stand there, or by name at the top."""
        if not data:
            return ()
        named = self.spec.get("datasets", {}).get(data.get("name"), ())
        values: Sequence[Record] = data.get("values", named)
        return values


def _units(
    spec: Spec, data: Spec | None, titles: tuple[str, ...]
) -> Iterator[tuple[Spec, Spec | None, tuple[str, ...]]]:
    """The single charts within a chart, the data each draws, and the titles above it."""
    data = spec.get("data", data)
    if "mark" in spec:
        yield spec, data, titles
    for part in (part for kind in _INNER for part in spec.get(kind, ())):
        title = part.get("title")
        above = (*titles, title) if isinstance(title, str) else titles
        yield from _units(part, data, above)


def _enlarged(svg: str, scale: float) -> str:
    """The same drawing, larger: its own coordinates stay."""
    head, _, rest = svg.partition(" viewBox=")
    grown = re.sub(
        r'(width|height)="([\d.]+)"', lambda m: f'{m[1]}="{float(m[2]) * scale:.1f}"', head
    )
    return f"{grown} viewBox={rest}"


def _with_own_ids(svg: str) -> str:
    """Ids that no other figure has, for many may stand on one page, and the same every time.

    The renderer counts them on from figure to figure, so they are counted anew.
    """
    found = dict.fromkeys(match[2] + match[3] for match in _IDS.finditer(svg))
    number = {name: i for i, name in enumerate(found)}
    svg = _IDS.sub(lambda m: f"{m[1]}OWN_{number[m[2] + m[3]]}", svg)
    own = hashlib.sha256(svg.encode()).hexdigest()[:8]
    return re.sub(r'(id="|url\(#)OWN_', rf"\1f{own}_", svg)
