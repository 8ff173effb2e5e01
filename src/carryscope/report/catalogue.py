"""All figures of a run by name, in the order in which they tell its story.

In: the shelf of a run. Out: a figure, or the command that makes what it needs.
"""

from __future__ import annotations

from collections.abc import Callable

from carryscope.core.errors import CallError
from carryscope.report import dissection_figures as dissected
from carryscope.report.certificate_figure import proved_tokens
from carryscope.report.figure import Figure
from carryscope.report.framework_figure import framework_graph
from carryscope.report.shelf import Shelf
from carryscope.report.training_figures import digit_curves, phases, task_curves
from carryscope.report.verification_figures import agreement, failures_by_depth, learned_table


def _of_dissection(name: str) -> Callable[[Shelf], Figure]:
    return lambda shelf: dissected.figure(name, shelf.needed("dissection"))


FIGURES: dict[str, Callable[[Shelf], Figure]] = {
    **{name: _of_dissection(name) for name in dissected.FIGURES},
    "digits": lambda shelf: digit_curves(shelf.needed("story")),
    "digits-linear": lambda shelf: digit_curves(shelf.needed("story"), "linear"),
    "learning": lambda shelf: task_curves(shelf.needed("story")),
    "learning-linear": lambda shelf: task_curves(shelf.needed("story"), "linear"),
    "phases": lambda shelf: phases(shelf.needed("story")),
    "framework": lambda shelf: framework_graph(shelf.config.model.digits),
    "depth": lambda shelf: failures_by_depth(shelf.needed("risk")),
    "table": lambda shelf: learned_table(shelf.needed("faithfulness")),
    "agreement": lambda shelf: agreement(shelf.needed("faithfulness")),
    "certificate": lambda shelf: proved_tokens(shelf.needed("certificate")),
}
"""Every figure, and what it is drawn from."""


def figure(name: str, shelf: Shelf) -> Figure:
    """A figure by its name."""
    if name not in FIGURES:
        raise CallError(f"The figures are {', '.join(FIGURES)}. Got '{name}'.")
    return FIGURES[name](shelf)
