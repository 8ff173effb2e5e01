"""`python -m paper`: the paper's claims, judged over draws (`make reproduce`), and four studies.

python -m paper            train draws of the paper's recipes and judge its claims
python -m paper mlp        is the MLP essential?
python -m paper why        why do cascades fail?
python -m paper exact      is every seed of exact-5 exact?
python -m paper starting   does a mixed model learn faster from an adder?
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cyclopts import App, Parameter

from carryscope.cli.bars import bars
from carryscope.cli.console import log, print_json, print_plain
from carryscope.cli.main import run as carried_out
from carryscope.core.machine import cores
from carryscope.training.config import RunConfig
from paper.study import RESULTS, Study


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

    def make(self, study: Study) -> None:
        """Do what is left of a study, unless only its page is wanted."""
        if not self.pages:
            crew = {"workers": self.workers, "cluster": self.cluster}
            with bars() as progress:
                study.make(self.runs, self.out, progress, **crew)

    def carry_out(self, study: Study) -> None:
        """Make a study and write its page."""
        self.make(study)
        print_plain(study.write_pages(self.out))


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
    from paper.page import quote, sentence
    from paper.plan import STUDY, chosen, jobs, plan

    if quick:
        place = options.runs / "quick"
        options = replace(options, runs=place, out=place / "results")
    planned = plan(chosen(only), quick=quick, draws=draws)
    if not options.pages:
        _show_plan({name: planned[name] for name, _ in STUDY.left(planned, options.out)}, options)
    try:
        options.make(replace(STUDY, rounds=lambda _: [jobs(planned)]))
    finally:
        page = STUDY.write_pages(options.out)
    judged = judge(STUDY.read(options.out))
    if page.parent == STUDY.home:
        quote(STUDY.home.parent / "README.md", sentence(judged))
    if json:
        print_json(judged)
    else:
        print_plain(f"{sentence(judged)}\n\n{page}")


def _show_plan(planned: Mapping[str, RunConfig], options: Options) -> None:
    """What is left to do, and about how long it takes."""
    from carryscope.report.tables import Table
    from carryscope.report.terminal import show
    from paper.plan import STUDY, minutes

    seeds: dict[str, list[str]] = defaultdict(list)
    spent: dict[str, float] = defaultdict(float)
    for name, config in planned.items():
        recipe, seed = name.split("/")
        seeds[recipe].append(seed)
        spent[recipe] += minutes(config, options.runs / STUDY.name / name)
    workers = options.workers or cores()
    rows = [[one, ", ".join(seeds[one]), f"{spent[one]:.0f}"] for one in seeds]
    rows.append(["all", f"{workers} at a time", f"{sum(spent.values()) / workers:.0f}"])
    head = ["recipe", "seeds to train", "minutes, about"]
    show([Table("plan", "The plan", head, rows, numeric=frozenset({2}))], log)


def mlp(*, options: Options = DEFAULTS) -> None:
    """Is the MLP essential? Train a base and variants of it (about an hour) and compare them."""
    from paper.mlp import STUDY

    options.carry_out(STUDY)


def why(*, options: Options = DEFAULTS) -> None:
    """Why do cascades fail? Train models with 1 to 6 heads on three kinds of data (an hour)."""
    from paper.why import STUDY

    options.carry_out(STUDY)


def exact(*, options: Options = DEFAULTS) -> None:
    """Is every seed of exact-5 exact? Train eight seeds, test and prove them (half an hour)."""
    from paper.exact import STUDY

    options.carry_out(STUDY)


def starting(*, options: Options = DEFAULTS) -> None:
    """Does a mixed model learn faster from an adder? Train 12 models, 3 per donor (an hour)."""
    from paper.starting import STUDY

    options.carry_out(STUDY)


def run(arguments: Sequence[str]) -> int:
    """Carry out one call and return its exit code. What went wrong is one line."""
    app = App(name="python -m paper", default_parameter=Parameter(negative=()))
    app.default(reproduce)
    for study in (mlp, why, exact, starting):
        app.command(study)
    return carried_out(arguments, app)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
