"""`carryscope study`: every stage there is, one after the other, on one run."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from carryscope.cli.bars import bars
from carryscope.cli.console import print_json, print_plain, screen
from carryscope.cli.options import Json, Open, Threads, Verbose
from carryscope.core.errors import command

SHOWN = ("training", "dissection", "risk", "faithfulness")
"""Findings that are shown in full, or printed as JSON; the certificate comes without its log."""


def study(
    *,
    preset: str | None = None,
    out: Path = Path("runs/study"),
    threads: Threads = None,
    open: Open = False,
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Train a model and see what it learned: the place to start.

    Trains, dissects, measures how often the model fails and whether it runs the paper's
    algorithm, spends a minute on proving what can be proved (models of one layer), and writes
    it all into one page, report.html. A second call reuses whatever is there already.

    Parameters
    ----------
    preset
        The recipe to train (see `carryscope presets`). Default: the run's own, or fast-5.
    out
        The run directory.
    """
    from carryscope.api import study as study_run
    from carryscope.report.findings import parts_of
    from carryscope.report.page import REPORT_FILE
    from carryscope.report.sections.why import sums_to_try
    from carryscope.report.terminal import show

    with bars(threads) as progress:
        run = study_run(out, preset, threads=threads, progress=progress)
    shelf, page = run.shelf(), (run.directory / REPORT_FILE).resolve().as_uri()
    if json:
        proof = shelf.certificate
        found: dict[str, object] = {stage: getattr(shelf, stage) for stage in SHOWN}
        print_json(found | {"certificate": proof and proof.without_log(), "report": page})
        return
    for stage in SHOWN if verbose else ():
        show(parts_of(getattr(shelf, stage)), screen, verbose=True)
    show(parts_of(shelf), screen)
    question = sums_to_try(run.config.model.layout, shelf.risk)[0]
    print_plain(f"Ask it anything: {command('ask', run.directory, question)}")
    print_plain(page)
    if open:
        webbrowser.open(page)
