"""What a figure says when one points at it, and the data that can be taken from it.

In: the Vega-Lite specification of a chart. Out: the same with marks that speak, and its records.

A mark speaks if its chart encodes `description`, which by our custom is the field `tip` of its
records. What can be pointed at is what can be taken away: the records of those charts are the
data of the figure, but for fields such as `_x` that only say where something is drawn.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from typing import Any

from carryscope.report.figures.drawing import TIP, Record

Spec = dict[str, Any]

_INNER = ("layer", "concat", "hconcat", "vconcat")
_ROLES = re.compile(r' (role="graphics-\w+"|aria-roledescription="[^"]*"|aria-label="[^"]*")')
_SPOKEN = re.compile(
    r'aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="[^"]*"(?= )'
)


def speaking(spec: Spec) -> Spec:
    """The specification with labels on the marks that have tips, and on no others."""
    spec = copy.deepcopy(spec)
    for unit, _, _ in _units(spec, None, ()):
        if "description" in unit.get("encoding", {}):
            mark = unit["mark"] if isinstance(unit["mark"], dict) else {"type": unit["mark"]}
            unit["mark"] = mark | {"aria": True}
    return spec


def with_tips(svg: str) -> str:
    """The labels of the marks as plain data: a page shows them, a screen reader passes over them.

    A screen reader gets the figure's own description instead of a thousand cells.
    """
    return _ROLES.sub("", _SPOKEN.sub(r'data-tip="\1"', svg))


def records(spec: Spec) -> list[Record]:
    """The records behind the marks that speak, each with the panel it stands in."""
    found: dict[str, Record] = {}
    for unit, data, titles in _units(spec, None, ()):
        if "description" not in unit.get("encoding", {}):
            continue
        panel = {"panel": ", ".join(titles)} if titles else {}
        for record in _values(spec, data):
            kept = panel | {n: v for n, v in record.items() if n != TIP and not n.startswith("_")}
            found.setdefault(repr(kept), kept)
    return list(found.values())


def _units(
    spec: Spec, data: Spec | None, titles: tuple[str, ...]
) -> Iterator[tuple[Spec, Spec | None, tuple[str, ...]]]:
    """The single charts within a chart, the data each draws, and the titles above it."""
    data = spec.get("data", data)
    inner = [part for kind in _INNER for part in spec.get(kind, ())]
    if "mark" in spec:
        yield spec, data, titles
    for part in inner:
        title = part.get("title")
        above = (*titles, title) if isinstance(title, str) else titles
        yield from _units(part, data, above)


def _values(spec: Spec, data: Spec | None) -> Sequence[Record]:
    """The records of some data: they stand there, or by name at the top."""
    if not data:
        return ()
    named = spec.get("datasets", {}).get(data.get("name"), ())
    values: Sequence[Record] = data.get("values", named)
    return values
