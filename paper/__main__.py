"""`python -m paper`, or `make reproduce`: the paper's claims, judged over draws."""

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
from carryscope.core.workers import cores
from paper.plan import Planned


def reproduce(
    *,
    only: str | None = None,
    draws: int | None = None,
    quick: bool = False,
    pages: bool = False,
    runs: Path = Path("runs/reproduce"),
    out: Path = Path("paper/results"),
    workers: int | None = None,
    cluster: str | None = None,
    json: bool = False,
) -> None:
    """Reproduce the paper: train draws of its recipes, and judge its claims over them.

    Draws are made side by side, one thread each. First comes the plan, with minutes. A draw whose
    record is in OUT is done, and finished stages are not repeated: the same command continues
    after a stop. To make everything again, choose an empty OUT.

    Parameters
    ----------
    only
        Recipes, with commas: paper-5, paper-10, paper-15, paper-5-heads-2, paper-5-heads-4,
        reuse-5. Default: all.
    draws
        Fresh seeds of each recipe, at most. Default: all that the claims are to be judged on.
    quick
        A smoke test: the authors' draws alone, 100 steps each, in RUNS/quick. Nothing is judged.
    pages
        Only judge the records in OUT again and write the page.
    runs
        Where the runs are.
    out
        Where the records are. The page is README.md beside this directory.
    workers
        Processes, each with one draw at a time. Default: one for each core.
    cluster
        The address of a dask scheduler whose workers do the work instead.
    json
        Print the judged claims as JSON.
    """
    from paper.claims import judge
    from paper.page import sentence, write_page
    from paper.plan import chosen, made, make, plan
    from paper.records import read_records, write_records

    if quick:
        runs, out = runs / "quick", runs / "quick" / "results"
    left = [] if pages else plan(chosen(only), runs, out, quick=quick, draws=draws)
    failed: dict[str, str] = {}
    if left:
        _show_plan(left, workers or cores())
        try:
            with bars() as progress:
                found = make(left, runs, workers=workers, cluster=cluster, progress=progress)
            failed = found.failed
        finally:
            write_records(made(left), out)
    page = write_page(out)
    judged = judge(read_records(out))
    if json:
        print_json(judged)
    else:
        print_plain(f"{sentence(judged)}\n\n{page}")
    if failed:
        raise WorkError(" ".join(f"{name} failed: {why}" for name, why in failed.items()))


def _show_plan(planned: Sequence[Planned], workers: int) -> None:
    """What is left to do, and about how long it takes."""
    from carryscope.report.tables import Table
    from carryscope.report.terminal import show
    from paper.plan import minutes

    recipes = dict.fromkeys(one.recipe for one in planned)
    by_recipe = {name: [one for one in planned if one.recipe == name] for name in recipes}
    spent = {name: sum(map(minutes, ones)) for name, ones in by_recipe.items()}
    rows = [
        [name, ", ".join(str(one.seed) for one in ones), f"{spent[name]:.0f}"]
        for name, ones in by_recipe.items()
    ]
    total = ["all", f"{workers} at a time", f"{sum(spent.values()) / workers:.0f}"]
    head, numeric = ["recipe", "seeds to train", "minutes"], frozenset({2})
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
