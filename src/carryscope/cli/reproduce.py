"""`carryscope reproduce`: the paper again, model by model and claim by claim."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from carryscope.cli.console import (
    TrainingProgress,
    log,
    print_json,
    print_plain,
    program,
    stop_on_signal,
)
from carryscope.cli.dissect import dissect_with_progress
from carryscope.cli.faithful import faithful_with_progress
from carryscope.cli.report import report_with_progress
from carryscope.cli.risk import risk_with_progress
from carryscope.cli.train import train_with_progress

if TYPE_CHECKING:
    from carryscope.reproduction.plan import Planned
    from carryscope.training.losses import StepRecord


def reproduce(
    *,
    only: str | None = None,
    quick: bool = False,
    runs: Path = Path("runs/reproduce"),
    out: Path | None = None,
    threads: int | None = None,
    json: bool = False,
) -> None:
    """Reproduce the paper: all its models, and each of its claims beside what is measured.

    Trains every model of the paper by its own recipe, dissects it, measures its risk, compares
    it with the paper's algorithm and writes its report; then the study of the MLP that the paper
    asks for; then the page of claims. What is there already is not made again, so it can be
    stopped at any time and started again. First it says what is left to do and about how long
    that will take.

    Parameters
    ----------
    only
        Models to go through, with commas: paper-5, paper-5-heads-2, paper-5-heads-4, paper-10,
        paper-15, reuse-5, paper-5-long, mlp-study. Default: all.
    quick
        One training step in ten: to see that all of it works. It reproduces nothing, and its
        pages say so; they stand with its runs, in a directory `quick`.
    runs
        Where the runs are.
    out
        Where claims, tables, figures and findings go. Default: results.
    threads
        Processor threads. Default: all cores; fewer are faster if others use them too.
    json
        Print the judged claims as JSON.
    """
    from carryscope.reproduction.claims.page import claims_result
    from carryscope.reproduction.plan import MLP_STUDY, chosen, plan
    from carryscope.reproduction.results import write_results

    runs = runs / "quick" if quick else runs
    out = (runs / "results" if quick else Path("results")) if out is None else out
    again = _again(only, quick, runs.parent if quick else runs)
    planned = plan(chosen(only), runs, quick=quick, threads=threads)
    log.print(_plan_table(planned))
    for one in planned:
        if one.name == MLP_STUDY:
            _study_mlp(runs, quick=quick, threads=threads, again=again)
        else:
            _go_through(one, runs, quick=quick, threads=threads, again=again)
        if one.left:
            write_results(runs, out, quick=quick)
    judged = write_results(runs, out, quick=quick)
    if json:
        print_json(claims_result(judged))
        return
    print_plain(f"{claims_result(judged).sentence}\n")
    print_plain(out / "claims.md")


def _again(only: str | None, quick: bool, runs: Path) -> str:
    """The command that goes on after a stop."""
    words = [program(), "reproduce", "--runs", str(runs)]
    words += ["--only", only] if only else []
    return shlex.join([*words, "--quick"] if quick else words)


def _plan_table(planned: list[Planned]) -> Table:
    table = Table(title="The plan", title_justify="left", box=None, padding=(0, 2))
    for heading in ("model", "to do", "minutes"):
        table.add_column(heading, justify="right" if heading == "minutes" else "left")
    for one in planned:
        minutes = f"{one.minutes:.0f}" if one.left else ""
        table.add_row(one.name, ", ".join(one.left) or "done", minutes)
    table.add_row("in all", "", f"{sum(one.minutes for one in planned):.0f}")
    return table


def _go_through(one: Planned, runs: Path, *, quick: bool, threads: int | None, again: str) -> None:
    """All stages of one model; those that are done answer at once."""
    from carryscope.reproduction.plan import recipe
    from carryscope.runs import Run

    directory = runs / one.name
    log.print(f"{one.name}: {one.about}", markup=False)
    train_with_progress(recipe(one.name, quick=quick), directory, threads=threads, again=again)
    run = Run(directory)
    dissect_with_progress(run, threads=threads)
    risk_with_progress(run, threads=threads)
    faithful_with_progress(run, threads=threads)
    if one.left:
        report_with_progress(run)


def _study_mlp(runs: Path, *, quick: bool, threads: int | None, again: str) -> None:
    """The study of the first model's MLP, with a bar for each training."""
    from carryscope.reproduction.mlp.study import mlp_study
    from carryscope.reproduction.plan import MLP_STUDY, MODELS, recipe
    from carryscope.runs import Run
    from carryscope.training.loop import Stopped

    config = recipe(MODELS[0], quick=quick)
    log.print(f"{MLP_STUDY}: what {MODELS[0]} can do without its MLP, or with a new one")
    train_with_progress(config, runs / MODELS[0], threads=threads, again=again)
    assert config.training is not None
    training, names = config.training, config.model.layout.answer_names
    with stop_on_signal() as stopped, contextlib.ExitStack() as shown:
        bars: dict[str, TrainingProgress] = {}

        def on_progress(variant: str, record: StepRecord) -> None:
            if variant not in bars:
                shown.close()
                log.print(f"{MLP_STUDY}, {variant}")
                bars[variant] = shown.enter_context(TrainingProgress(training, names))
            bars[variant](record)

        try:
            mlp_study(
                Run(runs / MODELS[0]),
                runs / MLP_STUDY,
                threads=threads,
                on_progress=on_progress,
                should_stop=stopped,
            )
        except Stopped as stop:
            raise Stopped(f"{stop} Go on with: {again}") from stop
