"""Figures: charts of findings, drawn inside this process. Nothing is drawn before it is shown."""

from __future__ import annotations

from functools import partial
from typing import Any

from carryscope.report.parts import Picture, Table


def picture(
    name: str,
    source: Any,
    paper: str = "",
    *,
    views: dict[str, str] | None = None,
    instead: Table | None = None,
) -> Picture:
    """A figure of the catalogue as a part; `views` are figures to switch between, by label."""
    views = views or {"": name}
    draws = {label: partial(_drawn, figure, source) for label, figure in views.items()}
    return Picture(name, draws, paper, instead)


def _drawn(name: str, source: Any) -> Any:
    # Altair takes half a second to load, and a terminal shows no figures.
    from carryscope.report.figures.catalogue import FIGURES

    return FIGURES[name].draw(source)
