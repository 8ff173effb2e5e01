"""All figures by name, in the order in which they tell the story of a run.

In: the shelf of a run. Out: a figure, or an error with the command that makes what it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from carryscope.core.errors import CallError
from carryscope.report.figures.circuit import circuit
from carryscope.report.figures.figure import Figure
from carryscope.report.figures.framework import framework_graph
from carryscope.report.figures.interventions import (
    carry_depths,
    heads_by_class,
    key_swaps,
    rows_table_figure,
)
from carryscope.report.figures.maps import edges, staircase
from carryscope.report.figures.nodes import fails_by_position, node_map
from carryscope.report.figures.training import digit_curves, phases, task_curves
from carryscope.report.figures.verification import (
    agreement,
    failures_by_depth,
    learned_table,
    proved_tokens,
)
from carryscope.report.shelf import Shelf


class Drawing(NamedTuple):
    """How a figure is made."""

    source: str
    """The field of the shelf that it is drawn from."""
    draw: Callable[[Any], Figure]


FIGURES = {
    "circuit": Drawing("dissection", circuit),
    "staircase": Drawing("dissection", staircase),
    "rows": Drawing("dissection", rows_table_figure),
    "edges": Drawing("dissection", edges),
    "heads": Drawing("dissection", heads_by_class),
    "nodes-positions": Drawing("dissection", fails_by_position),
    "nodes-fails": Drawing("dissection", partial(node_map, quantity="fails")),
    "nodes-impact": Drawing("dissection", partial(node_map, quantity="impact")),
    "nodes-attention": Drawing("dissection", partial(node_map, quantity="attention")),
    "nodes-purpose": Drawing("dissection", partial(node_map, quantity="purpose")),
    "keys": Drawing("dissection", key_swaps),
    "carries": Drawing("dissection", carry_depths),
    "digits": Drawing("story", digit_curves),
    "digits-linear": Drawing("story", partial(digit_curves, scale="linear")),
    "learning": Drawing("story", task_curves),
    "learning-linear": Drawing("story", partial(task_curves, scale="linear")),
    "phases": Drawing("story", phases),
    "framework": Drawing("config", lambda config: framework_graph(config.model.digits)),
    "depth": Drawing("risk", failures_by_depth),
    "table": Drawing("faithfulness", learned_table),
    "agreement": Drawing("faithfulness", agreement),
    "certificate": Drawing("certificate", proved_tokens),
}


def figure(name: str, shelf: Shelf) -> Figure:
    """A figure of a run by its name."""
    if name not in FIGURES:
        raise CallError(f"The figures are {', '.join(FIGURES)}. Got '{name}'.")
    source, draw = FIGURES[name]
    return draw(shelf.needed(source))
