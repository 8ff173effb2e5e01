"""`carryscope report`: everything that was found out about a run, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from carryscope.cli.console import print_json, print_plain
from carryscope.cli.figures import Ending, write_figures

if TYPE_CHECKING:
    from carryscope.stages import Run


def report(
    run: Path,
    /,
    *,
    out: Path | None = None,
    figures: Path | None = None,
    format: Ending = "svg",
    json: bool = False,
) -> None:
    """Write the report of a run: one page for any browser, with the model in it to try.

    It shows what the stages found that were run (train, dissect, risk, faithful, certify), and
    says of the others how to run them. The page needs no network and can be printed.

    Parameters
    ----------
    run
        The run directory.
    out
        The file to write. Default: report.html in the run directory.
    figures
        A directory to write the figures to, too, for a paper.
    format
        What those figures are written as: svg, png or pdf.
    json
        Print the paths as JSON.
    """
    from carryscope.stages import Run

    opened = Run(run)
    written = [report_with_progress(opened, out)]
    if figures is not None:
        written += write_figures(opened.shelf(), None, figures, format)
    if json:
        print_json({"report": str(written[0]), "figures": [str(path) for path in written[1:]]})
        return
    for path in written[1:]:
        print_plain(path)
    print_plain(written[0])


def report_with_progress(run: Run, out: Path | None = None) -> Path:
    """Write the report with a bar that counts its figures."""
    return run.report(out)
