"""All figures by name, in the order in which they tell the story of a run.

In: the shelf of a run. Out: a figure, or an error with the command that makes what it needs. Most
are tables of the report: a page shows them as such, and here they are drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from carryscope.core.errors import CallError
from carryscope.dissection.findings import Dissection
from carryscope.report.figures.circuit import circuit
from carryscope.report.figures.figure import Figure
from carryscope.report.figures.grids import edges, staircase, table_figure
from carryscope.report.sections import (
    carrying,
    certificate,
    dissection,
    training,
    verification,
)
from carryscope.report.shelf import Shelf
from carryscope.report.tables import Table


class Drawing(NamedTuple):
    """How a figure is made."""

    source: str
    """The field of the shelf that it is drawn from."""
    draw: Callable[[Any], Figure]
    part: str = ""
    """The part of the dissection that it shows."""


def _table(source: str, make: Callable[[Any], Table], part: str = "") -> Drawing:
    return Drawing(source, lambda found: table_figure(make(found)), part)


def _curves(name: str) -> Drawing:
    def draw(story: Any) -> Figure:
        # Altair takes half a second to load, and only charts with axes need it.
        from carryscope.report.figures import curves

        drawn: Figure = getattr(curves, name)(story)
        return drawn

    return Drawing("story", draw)


FIGURES = {
    "circuit": Drawing("dissection", circuit, "attention"),
    "depth": _table("risk", verification.cases_table),
    "agreement": _table("faithfulness", verification.agreement_table),
    "certificate": _table("certificate", certificate.tokens_table),
    "staircase": Drawing("dissection", staircase, "attention"),
    "edges": Drawing("dissection", edges, "edges"),
    "heads": _table("dissection", dissection.head_table, "heads"),
    "nodes": _table("dissection", dissection.node_table, "nodes"),
    "keys": _table("dissection", carrying.key_table, "mlp"),
    "carries": _table("dissection", carrying.carry_table, "first_digits"),
    "digits": _curves("digit_curves"),
    "learning": _curves("task_curves"),
    "phases": _table("story", training.phase_table),
    "framework": _table("config", training.framework_table),
}


def figure(name: str, shelf: Shelf) -> Figure:
    """A figure of a run by its name."""
    if name not in FIGURES:
        raise CallError(f"The figures are {', '.join(FIGURES)}. Got '{name}'.")
    source, draw, part = FIGURES[name]
    record = shelf.needed(source)
    if part:
        _check_part(record, part)
    return draw(record)


def _check_part(found: Dissection, part: str) -> None:
    """Refuse a dissection without the part, with the command that makes it."""
    if getattr(found, part) is not None:
        return
    if part == "mlp" and not found.model.d_mlp:
        raise CallError("This figure shows the MLP, and the model has none.")
    raise CallError(
        f"This figure needs the part '{part}' of a dissection, which is missing. "
        f"Run: carryscope dissect RUN --only {part}"
    )
