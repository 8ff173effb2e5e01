"""The figures of a dissection by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from carryscope.core.errors import CallError
from carryscope.dissection.findings import Dissection
from carryscope.report.ablation_charts import heads_by_class, rows_table_figure
from carryscope.report.circuit_figure import circuit
from carryscope.report.drawing import needed
from carryscope.report.figure import Figure
from carryscope.report.framework_figure import framework_graph
from carryscope.report.maps import edges, one_pattern, staircase
from carryscope.report.node_maps import node_map
from carryscope.report.position_chart import fails_by_position
from carryscope.report.swap_charts import carry_depths, key_swaps
from carryscope.report.training_figures import Scale, task_curves

__all__ = [
    "FIGURES",
    "carry_depths",
    "circuit",
    "edges",
    "fails_by_position",
    "figure",
    "framework_graph",
    "heads_by_class",
    "key_swaps",
    "learning_curves",
    "node_map",
    "one_pattern",
    "rows_table_figure",
    "staircase",
]


def learning_curves(dissection: Dissection, scale: Scale = "log") -> Figure:
    """The loss of each answer digit by task, as the dissection has it."""
    return task_curves(needed(dissection, "story"), scale)


FIGURES: dict[str, Callable[[Dissection], Figure]] = {
    "circuit": circuit,
    "staircase": staircase,
    "rows": rows_table_figure,
    "edges": edges,
    "heads": heads_by_class,
    "nodes-positions": fails_by_position,
    "nodes-fails": partial(node_map, quantity="fails"),
    "nodes-impact": partial(node_map, quantity="impact"),
    "nodes-attention": partial(node_map, quantity="attention"),
    "nodes-purpose": partial(node_map, quantity="purpose"),
    "keys": key_swaps,
    "carries": carry_depths,
    "learning": learning_curves,
    "framework": lambda dissection: framework_graph(dissection.model.digits),
}
"""The figures that need nothing but a dissection, in the order in which they tell the story."""


def figure(name: str, dissection: Dissection) -> Figure:
    """A figure by its name."""
    if name not in FIGURES:
        raise CallError(f"The figures are {', '.join(FIGURES)}. Got '{name}'.")
    return FIGURES[name](dissection)
