"""`carryscope reproduce`: the paper again, model by model and claim by claim."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from carryscope.cli.console import (
    WorkProgress,
    log,
    print_json,
    print_plain,
    program,
    stop_on_signal,
)
from carryscope.core.errors import WorkError

if TYPE_CHECKING:
    from carryscope.sweep.side_by_side import Progress
    from paper.claims.page import ClaimsResult
    from paper.plan import Planned


def reproduce(
    *,
    only: str | None = None,
    quick: bool = False,
    runs: Path = Path("runs/reproduce"),
    out: Path | None = None,
    workers: int | None = None,
    threads: int | None = None,
    json: bool = False,
) -> None:
    """Reproduce the paper: all its models, and each of its claims beside what is measured.

    Trains every model of the paper by its own recipe, dissects it, measures its risk, compares
    it with the paper's algorithm and writes its report; makes the study of the MLP that the paper
    asks for; then writes the page of claims. Models are worked on side by side, one on each core.
    What is there already is not made again, so it can be stopped at any time and started again;
    a run that was trained by another recipe is refused, and so is a place where results would be
    lost. First it says what is left to do and about how long that will take.

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
    workers
        Processes, each at one model. Default: one for each core.
    threads
        Processor threads of each worker. Default: the cores shared out among the workers.
    json
        Print the judged claims as JSON.
    """
    from carryscope.core.workers import shared_out
    from paper.claims.page import claims_result
    from paper.plan import chosen, plan
    from paper.results import check_out, would_be_lost, write_results

    runs = runs / "quick" if quick else runs
    out = (runs / "results" if quick else Path("paper/results")) if out is None else out
    names, (count, each) = chosen(only), shared_out(workers, threads)
    check_out(names, runs, out, quick=quick)
    planned = plan(names, runs, quick=quick, threads=each)
    log.print(_plan_table(planned, count))
    reached = _with_progress(planned, runs, quick=quick, workers=count, threads=each)
    lost = would_be_lost([], runs, out)
    if not lost:
        _publish(claims_result(write_results(runs, out, quick=quick)), out, json=json)
    left = f" {out} was left as it is, for its {', '.join(lost)}." if lost else ""
    if reached.failed:
        raise WorkError(f"{_failures(reached, len(planned))}{left}")
    if lost:
        raise WorkError(left.strip())


def _publish(found: ClaimsResult, out: Path, *, json: bool) -> None:
    """Say what became of the claims, and where it stands."""
    if json:
        print_json(found)
    else:
        print_plain(f"{found.sentence}\n")
        print_plain(out / "claims.md")


def _failures(reached: Progress[str, None], of: int) -> str:
    """What failed of so many models, in one line."""
    name, reason = next(iter(reached.failed.items()))
    others = f", {len(reached.not_begun)} not begun" if reached.not_begun else ""
    return f"{len(reached.failed)} of {of} models failed{others}; {name}: {reason}"


def _plan_table(planned: list[Planned], workers: int) -> Table:
    from paper.reproduce import minutes_together

    table = Table(title="The plan", title_justify="left", box=None, padding=(0, 2))
    for heading in ("model", "to do", "minutes"):
        table.add_column(heading, justify="right" if heading == "minutes" else "left")
    for one in planned:
        minutes = f"{one.minutes:.0f}" if one.left else ""
        table.add_row(one.name, ", ".join(one.left) or "done", minutes)
    together = minutes_together(planned, workers)
    table.add_row(f"in all, {workers} at a time", "", f"{together:.0f}")
    return table


def _with_progress(
    planned: list[Planned], runs: Path, *, quick: bool, workers: int, threads: int
) -> Progress[str, None]:
    """Do what is left, with a bar; what came of each model."""
    from carryscope.core.progress import Stopped
    from carryscope.sweep.side_by_side import Progress
    from paper.reproduce import reproduce as make

    left = [one for one in planned if one.left]
    if not left:
        return Progress(0, {}, {}, {})
    with stop_on_signal() as stopped, WorkProgress("reproduce", len(left)) as bar:

        def on_progress(reached: Progress[str, None]) -> bool:
            for name in reached.done:
                bar.tell(name, "done")
            for name, why in reached.failed.items():
                bar.tell(name, f"failed: {why}")
            for name, why in reached.not_begun.items():
                bar.tell(name, f"not begun: {why}")
            over = len(reached.done) + len(reached.failed) + len(reached.not_begun)
            bar.show(over, reached.running)
            return stopped()

        try:
            return make(
                left, runs, quick=quick, workers=workers, threads=threads, on_progress=on_progress
            )
        except Stopped as stop:
            again = f"{program()} {shlex.join(sys.argv[1:])}"
            raise Stopped(f"{stop} Go on with: {again}") from stop
