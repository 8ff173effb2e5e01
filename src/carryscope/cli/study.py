"""`carryscope study`: every stage there is, one after the other, on one run."""

from __future__ import annotations

import shlex
from pathlib import Path

from carryscope.cli.ask import show_answer
from carryscope.cli.console import log, print_json, print_plain, program
from carryscope.cli.dissect import dissect_with_progress, show_dissection
from carryscope.cli.faithful import faithful_with_progress, show_faithfulness
from carryscope.cli.report import report_with_progress
from carryscope.cli.risk import risk_with_progress, show_risk
from carryscope.cli.train import show_summary, train_with_progress, wanted_config

EXAMPLE = "445+555"
"""The paper's own example of a sum that a one-layer model finds hard."""


def study(
    *,
    preset: str | None = None,
    out: Path = Path("runs/study"),
    threads: int | None = None,
    json: bool = False,
) -> None:
    """Train a model and look at what it learnt: the place to start.

    Trains, dissects, measures how often the model fails and whether it runs the paper's
    algorithm, and writes it all into one page, report.html. A second call picks up whatever is
    there already.

    Parameters
    ----------
    preset
        The recipe to train (see `carryscope presets`). Default: the run's own, or fast-5.
    out
        The run directory.
    threads
        Processor threads. Default: all cores; fewer are faster if others use them too.
    json
        Print the findings as JSON.
    """
    config = wanted_config(out, preset, {})
    where = shlex.quote(str(out))
    log.print(f"Training {config.model.digits}-digit addition in {out}", markup=False)
    summary = train_with_progress(
        config, out, threads=threads, again=f"{program()} study --out {where}"
    )
    from carryscope.runs import Run

    run = Run(out)
    log.print(f"Dissecting the model in {out}", markup=False)
    dissection = dissect_with_progress(run, threads=threads)
    log.print("Measuring how often it fails, and whether it runs the paper's algorithm")
    risk = risk_with_progress(run, threads=threads)
    faithfulness = faithful_with_progress(run, threads=threads)
    log.print("Writing the report")
    report = report_with_progress(run)
    if json:
        stages = {"training": summary, "dissection": dissection}
        stages |= {"risk": risk, "faithfulness": faithfulness}
        print_json(stages | {"report": str(report)})
        return
    show_summary(summary, out)
    show_dissection(dissection)
    show_faithfulness(faithfulness)
    question = EXAMPLE if config.model.digits >= len(EXAMPLE.partition("+")[0]) else "9+9"
    show_answer(run.model(), question)
    print_plain(f'Ask it anything: {program()} ask {where} "{question}"\n')
    show_risk(risk)
    print_plain(report)
