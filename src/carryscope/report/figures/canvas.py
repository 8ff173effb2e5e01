"""A drawing made of boxes, texts and lines, in pixels. In: what stands where. Out: SVG.

Diagrams, shaded grids (`grids.py`) and charts with axes (`plot.py`) all stand on one. A mark can
say what it shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

BLACK, GREY, PALE = "#000000", "#666666", "#bbbbbb"
"""Inks: of what matters, of what explains it, of what is there but not used."""

SHADES = ("#ffffff", "#9ecae1", "#4292c6", "#08519c", "#08306b")
WRONG_SHADES = ("#ffffff", "#fdbe85", "#f0803c", "#c2500f", "#8a3304")
"""One hue each, light to dark, from nothing to all. Orange is for what is wrong."""

DARK = 0.6
"""From this shade on, text on a box is white."""

HEADS = ("#5fb3ea", "#4cbf9b", "#d184bb", "#d6c84a", "#8270ee", "#b8eea6")
"""One colour for each head, which the colour-blind tell apart; none of them is orange."""

TONES = {"wrong": WRONG_SHADES} | {f"head-{i}": (SHADES[0], hue) for i, hue in enumerate(HEADS)}
"""Shades of the cells of a grid by their tone; all others are blue."""

CHARACTER = 6.2
"""Width of a character of the usual size, in pixels."""

FONT = "DejaVu Sans, Verdana, sans-serif"


def shaded(share: float, shades: Sequence[str] = SHADES) -> str:
    """The colour of a share, between two of the shades."""
    place = min(max(share, 0.0), 1.0) * (len(shades) - 1)
    low = min(int(place), len(shades) - 2)
    ends = [[int(shade[i : i + 2], 16) for i in (1, 3, 5)] for shade in shades[low : low + 2]]
    mixed = (round(a + (b - a) * (place - low)) for a, b in zip(*ends, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def head_colours(root: str) -> str:
    """The colours of the heads as variables of a style sheet: --head-0, --head-1 ..."""
    values = "".join(f" --head-{i}: {colour};" for i, colour in enumerate(HEADS))
    return f"{root} {{{values} }}\n"


class Canvas:
    """A drawing that grows with what is put on it."""

    def __init__(self) -> None:
        self.width = self.height = 0.0
        self.records: list[dict[str, Any]] = []
        """The numbers that the drawing shows."""
        self._marks: list[tuple[str, str]] = []

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = "none",
        stroke: str = "none",
        opacity: float = 1.0,
        radius: float = 0.0,
        tip: str = "",
    ) -> None:
        """A rectangle; its tip is shown on hover."""
        place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        look = f'fill="{fill}" fill-opacity="{opacity:.3g}" stroke="{stroke}" rx="{radius:g}"'
        self._put(f"<rect {place} {look}", "/>", tip, x + width, y + height)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        ink: str = BLACK,
        anchor: str = "middle",
        size: float = 10.0,
        weight: str = "normal",
        turned: bool = False,
    ) -> None:
        """A line of text, in the middle of its height at y; turned, it is read upwards."""
        place = f'transform="translate({x:.1f},{y:.1f}){" rotate(-90)" * turned}"'
        look = f'fill="{ink}" font-size="{size:g}" font-weight="{weight}" text-anchor="{anchor}"'
        long = 0.0 if turned else len(text) * CHARACTER * size / 10
        reach = {"start": long, "middle": long / 2}.get(anchor, 0.0)
        self._put(
            f'<text {place} {look} dy="0.35em">{escape(text)}',
            "</text>",
            "",
            x + reach,
            y + size / 2,
        )

    def line(
        self, path: str, *, stroke: str = BLACK, width: float = 1.0, dash: str = "", end: str = ""
    ) -> None:
        """A path of SVG; `end` is a second one, filled, such as the head of an arrow."""
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        look = f'fill="none" stroke="{stroke}" stroke-width="{width:g}"{dashes}'
        self._put(f'<path d="{path}" {look}', "/>", "", 0.0, 0.0)
        if end:
            self._put(f'<path d="{end}" fill="{stroke}"', "/>", "", 0.0, 0.0)

    def _put(self, mark: str, close: str, tip: str, right: float, bottom: float) -> None:
        self.width, self.height = max(self.width, right), max(self.height, bottom)
        self._marks.append((mark + close, f'{mark} data-tip="{escape(tip)}"{close}' if tip else ""))

    def svg(self, heading: list[str], *, scale: float = 1.0, tips: bool = False) -> str:
        """The drawing below the lines of its heading; with `tips`, marks hold what they say."""
        above = 20.0 + 15 * len(heading) if heading else 2.0
        width = max([self.width, *(len(line) * CHARACTER * 1.1 for line in heading)]) + 4
        height = self.height + above + 4
        words = "".join(
            f'<text x="2" y="{16 + 15 * i}" font-size="{11 if i else 14}" '
            f'font-weight="{"normal" if i else "bold"}">{escape(line)}</text>'
            for i, line in enumerate(heading)
        )
        ground = '<rect width="100%" height="100%" fill="#ffffff"/>' if heading else ""
        marks = "".join(tipped if tips and tipped else plain for plain, tipped in self._marks)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * scale:.1f}" '
            f'height="{height * scale:.1f}" viewBox="0 0 {width:.1f} {height:.1f}" '
            f'font-family="{FONT}">{ground}{words}'
            f'<g transform="translate(2,{above:.1f})">{marks}</g></svg>'
        )
