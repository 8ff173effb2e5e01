"""`carryscope figures`: the findings of a run as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from carryscope.cli.console import log, print_json, print_plain

if TYPE_CHECKING:
    from carryscope.report.shelf import Shelf

Ending = Literal["svg", "png", "pdf"]


def figures(
    run: Path,
    /,
    *,
    out: Path,
    only: str | None = None,
    format: Ending = "svg",
    json: bool = False,
) -> None:
    """Write the figures of a run's findings, for a page or a paper. No browser is needed.

    Parameters
    ----------
    run
        The run directory, with its weights; dissect it first.
    out
        The directory to write to.
    only
        Figures to write, with commas: circuit, staircase, rows, edges, heads,
        nodes-positions, nodes-fails, nodes-impact, nodes-attention, nodes-purpose, keys,
        carries, learning, framework, digits, digits-linear, learning-linear, phases, depth,
        table, agreement, certificate. Default: all that the findings allow.
    format
        svg, png or pdf.
    json
        Print the paths as JSON.
    """
    from carryscope.stages import Run

    named = [name.strip() for name in only.split(",")] if only else None
    paths = write_figures(Run(run).shelf(), named, out, format)
    if json:
        print_json([str(path) for path in paths])
        return
    for path in paths:
        print_plain(path)


def write_figures(shelf: Shelf, names: list[str] | None, out: Path, ending: Ending) -> list[Path]:
    """Write the figures that are named, or all that the findings allow."""
    from carryscope.core.errors import CallError
    from carryscope.report.figures.catalogue import FIGURES, figure

    paths = []
    for name in names or FIGURES:
        try:
            picture = figure(name, shelf)
        except CallError as error:
            if names:
                raise
            log.print(f"No {name}: {error}", markup=False, soft_wrap=True)
            continue
        paths.append(picture.save(out / f"{name}.{ending}"))
    return paths
