"""`python -m paper`, or `make reproduce`: the paper again, model by model and claim by claim."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from cyclopts import App, CycloptsError, Parameter

from carryscope.cli.bars import bars
from carryscope.cli.console import log, print_json, print_plain
from carryscope.core.errors import CallError, WorkError
from carryscope.core.progress import Stopped
from carryscope.core.workers import shared_out
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
    pages: bool = False,
    json: bool = False,
) -> None:
    """Reproduce the paper: train all its models, study them, and judge each of its claims.

    Every model is trained by its own recipe, dissected, measured and compared with the paper's
    algorithm; then the study of the MLP is made. Models are done side by side, one on each core.
    First comes the plan, with minutes. Finished stages are not repeated, so the same command
    continues after a stop. A run by another recipe is refused, and so is a directory in which
    results would be lost.

    Parameters
    ----------
    only
        Models to make, with commas: paper-5, paper-5-heads-2, paper-5-heads-4, paper-10,
        paper-15, reuse-5, paper-5-long, mlp-study. Default: all.
    quick
        One training step in ten, to see that all of it works. It reproduces nothing. Its pages
        say so, and are in RUNS/quick/results.
    runs
        Where the runs are.
    out
        Where claims, tables, figures and findings go. Default: paper/results.
    workers
        Processes, each with one model. Default: one for each core.
    threads
        Processor threads of each worker. Default: the cores divided among the workers.
    pages
        Only judge the results in OUT again and write their pages. Nothing is trained.
    json
        Print the judged claims as JSON.
    """
    from paper.models import chosen
    from paper.plan import plan
    from paper.publish import check_out, rewrite, would_be_lost, write_results
    from paper.record import Results
    from paper.reproduce import reproduce as make

    if quick and out is not None:
        raise CallError("A quick run keeps its results with its runs: leave out --out.")
    runs = runs / "quick" if quick else runs
    out = out or (runs / "results" if quick else Path("paper/results"))
    if pages:
        _show(rewrite(Results(out)), out, json=json)
        return
    names, (count, each) = chosen(only), shared_out(workers, threads)
    check_out(names, runs, out)
    planned = plan(names, runs, quick=quick, threads=each)
    _show_plan(planned, count)
    with bars() as progress:
        failed = make(planned, runs, quick=quick, workers=count, threads=each, progress=progress)
    problems = [f"{name} failed: {why}" for name, why in failed.items()]
    lost = would_be_lost([], runs, out)
    if lost:
        problems.append(f"{out} was not written, because it has results of {', '.join(lost)}.")
    else:
        _show(write_results(runs, out, quick=quick), out, json=json)
    if problems:
        raise WorkError(" ".join(problems))


def _show(found: ClaimsResult, out: Path, *, json: bool) -> None:
    """The result in a sentence, and the page that has all of it."""
    if json:
        print_json(found)
    else:
        print_plain(f"{found.sentence}\n\n{out / 'claims.md'}")


def _show_plan(planned: Sequence[Planned], workers: int) -> None:
    """What is left to do, and about how long it takes."""
    from carryscope.report.parts import Table
    from carryscope.report.terminal import show
    from paper.plan import minutes_together

    rows = [
        [one.name, ", ".join(one.left) or "done", f"{one.minutes:.0f}" if one.left else ""]
        for one in planned
    ]
    total = [f"all, {workers} at a time", "", f"{minutes_together(planned, workers):.0f}"]
    head, numeric = ["model", "to do", "minutes"], frozenset({2})
    show([Table("plan", "The plan", head, [*rows, total], numeric=numeric)], log)


def run(arguments: Sequence[str]) -> int:
    """Carry out one call and return its exit code. What went wrong is one line."""
    app = App(name="python -m paper", default_parameter=Parameter(negative=()))
    app.default(reproduce)
    try:
        app(arguments, exit_on_error=False, print_error=False, result_action="return_none")
    except (CallError, CycloptsError) as error:
        return _failed(error, 2)
    except Stopped as stop:
        return _failed(f"{stop} Continue with: python -m paper {shlex.join(arguments)}", 1)
    except (WorkError, OSError) as error:
        return _failed(error, 1)
    return 0


def _failed(why: object, code: int) -> int:
    print("paper:", " ".join(str(why).split()), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
