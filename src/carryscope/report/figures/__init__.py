"""Figures: drawings of findings, made inside this process. Nothing is drawn before it is shown."""

from __future__ import annotations

from typing import Any

from carryscope.report.parts import Picture
from carryscope.report.tables import Table


def picture(name: str, source: Any, paper: str = "", *, instead: Table | None = None) -> Picture:
    """A figure of the catalogue as a part."""

    def draw() -> Any:
        # The catalogue knows the sections, and they make pictures.
        from carryscope.report.figures.catalogue import FIGURES

        return FIGURES[name].draw(source)

    return Picture(name, draw, paper, instead)
