"""`carryscope figures`: the findings of a run as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from carryscope.cli.console import log, print_json, print_plain


def figures(
    run: Path,
    /,
    *,
    out: Path,
    only: str | None = None,
    format: Literal["svg", "png", "pdf"] = "svg",
    json: bool = False,
) -> None:
    """Write the figures of a run's findings, for a page or a paper. No browser is needed.

    Parameters
    ----------
    run
        The run directory; dissect it first.
    out
        The directory to write to.
    only
        Figures to write, with commas: staircase, rows, edges, heads, nodes-fails,
        nodes-impact, nodes-attention, nodes-purpose, keys, carries, learning, framework.
        Default: all that the findings allow.
    format
        svg, png or pdf.
    json
        Print the paths as JSON.
    """
    from carryscope.errors import CallError
    from carryscope.report.dissection_figures import FIGURES, figure
    from carryscope.runs import Run

    dissection = Run(run).dissection()
    named = [name.strip() for name in only.split(",")] if only else list(FIGURES)
    paths = []
    for name in named:
        try:
            picture = figure(name, dissection)
        except CallError as error:
            if only:
                raise
            log.print(f"No {name}: {error}", markup=False, soft_wrap=True)
            continue
        paths.append(out / f"{name}.{format}")
        picture.save(paths[-1])
    if json:
        print_json([str(path) for path in paths])
        return
    for path in paths:
        print_plain(path)
