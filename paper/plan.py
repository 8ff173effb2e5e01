"""The draws of a reproduction: which are left, how long they take, and making them side by side.

In: recipes, and where runs and results are. Out: records. A draw whose record is among the results
is done. Minutes of training come from a few steps made on the spot.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from carryscope.core.errors import CallError
from carryscope.core.progress import Progress
from carryscope.core.storage import read_json
from carryscope.core.workers import Outcome
from carryscope.model.process import use_machine
from carryscope.sweeps.running import side_by_side, trained
from carryscope.training.config import RunConfig
from carryscope.training.loop import is_finished, steps_made
from carryscope.training.presets import run_config
from carryscope.training.trainer import Trainer
from paper.claims import authors_seed, frozen
from paper.measure import measure
from paper.records import DRAW, DrawRecord, read_records, run_name

QUICK_STEPS = 100
"""Steps of each training of a smoke test. It has the authors' draws only."""

WARMING_UP, TIMED = 3, 7
"""Steps made, and steps timed, to estimate how long a training will take."""

MEASURING = 30
"""Seconds that the findings and numbers of a draw take on one thread, about."""


@dataclass(frozen=True)
class Planned:
    """One draw that is not done."""

    recipe: str
    seed: int
    config: RunConfig
    run: Path

    @property
    def steps_left(self) -> int:
        assert self.config.training is not None
        return 0 if is_finished(self.run) else self.config.training.steps - steps_made(self.run)


def chosen(only: str | None) -> list[str]:
    """The recipes in a list with commas, in the order of the plan; all of them by default."""
    known = list(frozen().seeds)
    wanted = known if only is None else [name.strip() for name in only.split(",")]
    for name in wanted:
        if name not in known:
            raise CallError(f"only must name some of {', '.join(known)}. Got '{name}'.")
    return [name for name in known if name in wanted]


def plan(
    recipes: Sequence[str], runs: Path, results: Path, *, quick: bool, draws: int | None = None
) -> list[Planned]:
    """The draws that are left: the authors' own first, then `draws` fresh seeds of each recipe."""
    done = {(record.recipe, record.seed) for record in read_records(results)}
    wanted = [(recipe, authors_seed(recipe)) for recipe in recipes]
    if not quick:
        wanted += [(r, seed) for r in recipes for seed in frozen().seeds[r][:draws]]
    changes = {"steps": QUICK_STEPS} if quick else {}
    return [
        Planned(r, seed, run_config(r, {"seed": seed, **changes}), runs / run_name(r, seed))
        for r, seed in wanted
        if (r, seed) not in done
    ]


def minutes(planned: Planned) -> float:
    """How long the rest of a draw takes on one thread."""
    training = planned.steps_left * _step_seconds(planned.recipe) if planned.steps_left else 0.0
    return (training + MEASURING) / 60


@cache
def _step_seconds(recipe: str) -> float:
    """How long a training step takes, measured on a few of the first."""
    use_machine(1)
    trainer = Trainer(run_config(recipe, {}))
    for _ in range(WARMING_UP):
        trainer.advance()
    began = time.perf_counter()
    for _ in range(TIMED):
        trainer.advance()
    return (time.perf_counter() - began) / TIMED


def make(
    planned: Sequence[Planned],
    runs: Path,
    *,
    workers: int | None,
    cluster: str | None,
    progress: Progress,
) -> Outcome[str, DrawRecord]:
    """Train and measure the draws that are left, one thread each."""
    jobs = {one.run.name: partial(make_draw, one.config) for one in planned}
    return side_by_side(
        jobs, runs, workers=workers, threads=1, cluster=cluster, unit="draws", progress=progress
    )


def make_draw(config: RunConfig, directory: Path, threads: int, progress: Progress) -> DrawRecord:
    """Bring the run of one draw to its end, and measure it."""
    run = trained(config, directory, threads=threads, progress=progress)
    return measure(run, progress)


def made(planned: Sequence[Planned]) -> list[DrawRecord]:
    """The records that the runs of a plan have by now."""
    files = [one.run / DRAW.file for one in planned]
    return [read_json(file, DrawRecord) for file in files if file.exists()]
