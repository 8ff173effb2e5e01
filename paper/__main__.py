"""`python -m paper`: the paper's claims, judged over draws (`make reproduce`), and three studies.

python -m paper         train draws of the paper's recipes and judge its claims
python -m paper mlp     is the MLP essential?
python -m paper why     why do cascades fail?
python -m paper exact   is every seed of exact-5 exact?
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path

from cyclopts import App, Parameter

from carryscope.cli.bars import bars
from carryscope.cli.console import log, print_json, print_plain
from carryscope.cli.main import run as carried_out
from carryscope.core.machine import cores
from carryscope.core.storage import write_bytes
from carryscope.training.config import RunConfig
from paper.study import RESULTS, left, make, read_records


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """What every study takes. Runs are made side by side, one thread each.

    A run whose record is in OUT is done, and finished stages are not repeated: the same command
    continues after a stop. To make everything again, choose an empty OUT.
    """

    runs: Path = Path("runs/paper")
    """Where the runs are, in a folder for each study."""
    out: Path = RESULTS
    """Where the records are, in a folder for each study."""
    workers: int | None = None
    """Processes, each with one run at a time. Default: one for each core."""
    cluster: str | None = None
    """The address of a dask scheduler whose workers do the work instead."""
    pages: bool = False
    """Only write the page of the records in OUT again."""

    def make(self, study: Callable[..., None], name: str) -> None:
        """Do what is left of a study, unless only its page is wanted."""
        if not self.pages:
            crew = {"workers": self.workers, "cluster": self.cluster}
            with bars() as progress:
                study(self.runs / name, self.out / name, progress=progress, **crew)


DEFAULTS = Options()


def reproduce(
    *,
    only: str | None = None,
    draws: int | None = None,
    quick: bool = False,
    json: bool = False,
    options: Options = DEFAULTS,
) -> None:
    """Reproduce the paper: train draws of its recipes, and judge its claims over them.

    First comes the plan, with minutes. The page is README.md beside OUT.

    Parameters
    ----------
    only
        Recipes, with commas: paper-5, paper-10, paper-15, paper-5-heads-2, paper-5-heads-4,
        reuse-5. Default: all.
    draws
        Fresh seeds of each recipe, at most. Default: all that the claims are to be judged on.
    quick
        A smoke test: the authors' draws alone, 100 steps each, in RUNS/quick. Nothing is judged.
    json
        Print the judged claims as JSON.
    """
    from paper.claims import judge
    from paper.page import sentence, write_page
    from paper.plan import chosen, make_draw, plan
    from paper.records import DRAWS, read_draws

    if quick:
        place = options.runs / "quick"
        options = replace(options, runs=place, out=place / "results")
    planned = plan(chosen(only), quick=quick, draws=draws)
    undone = left(planned, options.out / DRAWS)
    if undone and not options.pages:
        _show_plan(undone, options.runs / DRAWS, options.workers or cores())
    try:
        options.make(partial(make, {n: partial(make_draw, c) for n, c in planned.items()}), DRAWS)
    finally:
        page = write_page(options.out)
    judged = judge(read_draws(options.out))
    if json:
        print_json(judged)
    else:
        print_plain(f"{sentence(judged)}\n\n{page}")


def _show_plan(planned: Mapping[str, RunConfig], runs: Path, workers: int) -> None:
    """What is left to do, and about how long it takes."""
    from carryscope.report.tables import Table
    from carryscope.report.terminal import show
    from paper.plan import minutes

    names = sorted(planned, key=lambda name: name.split("/")[0])
    rows, total = [], 0.0
    for recipe, group in groupby(names, key=lambda name: name.split("/")[0]):
        mine = list(group)
        spent = sum(minutes(planned[name], runs / name) for name in mine)
        rows.append([recipe, ", ".join(name.split("/")[1] for name in mine), f"{spent:.0f}"])
        total += spent
    rows.append(["all", f"{workers} at a time", f"{total / workers:.0f}"])
    head = ["recipe", "seeds to train", "minutes, about"]
    show([Table("plan", "The plan", head, rows, numeric=frozenset({2}))], log)


def mlp(*, options: Options = DEFAULTS) -> None:
    """Is the MLP essential? Train a base and variants of it (about an hour) and compare them."""
    from paper.mlp import RECORDS, Subject, study_mlp
    from paper.mlp_page import PAGE, mlp_page

    options.make(study_mlp, RECORDS)
    page = options.out / PAGE
    write_bytes(page, mlp_page(read_records(options.out / RECORDS, Subject)).encode())
    print_plain(page)


def why(*, options: Options = DEFAULTS) -> None:
    """Why do cascades fail? Train models with 1 to 6 heads on three kinds of data (an hour)."""
    from paper.why import RECORDS, WhyRecord, study_why
    from paper.why_page import write_why

    options.make(study_why, RECORDS)
    page = RESULTS.parents[1] / "docs" if options.out == RESULTS else options.out
    print_plain(write_why(read_records(options.out / RECORDS, WhyRecord), page))


def exact(*, options: Options = DEFAULTS) -> None:
    """Is every seed of exact-5 exact? Train eight seeds, test and prove them (half an hour)."""
    from paper.exact import RECORDS, ExactRecord, study_exact
    from paper.exact_page import PAGE, exact_page

    options.make(study_exact, RECORDS)
    page = (RESULTS.parents[1] / "docs" if options.out == RESULTS else options.out) / PAGE
    write_bytes(page, exact_page(read_records(options.out / RECORDS, ExactRecord)).encode())
    print_plain(page)


def run(arguments: Sequence[str]) -> int:
    """Carry out one call and return its exit code. What went wrong is one line."""
    app = App(name="python -m paper", default_parameter=Parameter(negative=()))
    app.default(reproduce)
    app.command(mlp)
    app.command(why)
    app.command(exact)
    return carried_out(arguments, app)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
