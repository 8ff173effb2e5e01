"""Many seeds of one recipe, each a run of its own.

In: a recipe, seeds, a directory. Out: `Sweep`, in sweep.json, sweep.md and sweep.html beside the
runs seed-0, seed-1 ... A call that was killed is continued by the same call: what a seed has
reached is in its run directory, and no seed is done twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec

from carryscope.core.errors import CallError
from carryscope.core.progress import Progress, silent
from carryscope.core.storage import read_json, write_json
from carryscope.core.workers import Outcome
from carryscope.sweeps.finding import SWEEP_FILE, SeedFailure, Sweep, summarised
from carryscope.sweeps.page import write_pages
from carryscope.sweeps.running import brought_to_end, side_by_side
from carryscope.sweeps.seeds import SeedFinding, seed_finding
from carryscope.training.config import RunConfig, differences


class _Known(msgspec.Struct, frozen=True):
    """What must not change from call to call, in a sweep of any version."""

    recipe: RunConfig


def sweep(
    recipe: RunConfig,
    seeds: Sequence[int],
    directory: Path,
    *,
    workers: int | None = None,
    threads: int | None = None,
    cluster: str | None = None,
    progress: Progress = silent,
) -> Sweep:
    """Train and study every seed, and compare them.

    The seeds are shared out among local processes (`workers`, by default one for each core, with
    `threads` each), or among the workers of the dask cluster at the address `cluster`, which must
    see the same directory. A seed that fails is tried once more and then reported.
    """
    _check(recipe, seeds, directory)
    jobs = {run_name(seed): partial(study_seed, with_seed(recipe, seed)) for seed in seeds}
    outcome = side_by_side(
        jobs,
        directory,
        workers=workers,
        threads=threads,
        cluster=cluster,
        unit="seeds",
        progress=progress,
    )
    found = _gathered(recipe, seeds, outcome)
    # The record comes last: where there is one, there are its pages.
    write_pages(found, directory)
    write_json(directory / SWEEP_FILE, found)
    return found


def study_seed(config: RunConfig, directory: Path, threads: int, progress: Progress) -> SeedFinding:
    """Bring the run of one seed to its end, and take from its findings what a sweep compares."""
    run = brought_to_end(config, directory, threads=threads, progress=progress)
    return seed_finding(run)


def _check(recipe: RunConfig, seeds: Sequence[int], directory: Path) -> None:
    """Refuse a wrong call before any work is done."""
    if recipe.training is None:
        raise CallError("A sweep needs a recipe to train. Got that of an imported model.")
    if not seeds or len(set(seeds)) != len(seeds):
        raise CallError(f"seeds must be at least one, all different. Got {list(seeds)}.")
    for seed in seeds:
        with_seed(recipe, seed)
    path = directory / SWEEP_FILE
    if path.exists():
        known = read_json(path, _Known)
        different = differences(with_seed(recipe, 0), with_seed(known.recipe, 0))
        if different:
            raise CallError(
                f"The sweep at {directory} was started differently: {'; '.join(different)}. "
                "Ask for the same, or choose another --out."
            )


def with_seed(recipe: RunConfig, seed: int) -> RunConfig:
    """The recipe with another seed."""
    assert recipe.training is not None
    fields = msgspec.structs.asdict(recipe.training) | {"seed": seed}
    return msgspec.structs.replace(recipe, training=type(recipe.training)(**fields))


def run_name(seed: int) -> str:
    """What the run of a seed is called."""
    return f"seed-{seed}"


def _gathered(recipe: RunConfig, seeds: Sequence[int], outcome: Outcome[str, SeedFinding]) -> Sweep:
    names = {seed: run_name(seed) for seed in seeds}
    results = [outcome.done[name] for name in names.values() if name in outcome.done]
    failures = [
        SeedFailure(seed=seed, tried=outcome.tried[name], reason=outcome.failed[name])
        for seed, name in names.items()
        if name in outcome.failed
    ]
    return summarised(recipe, seeds, results, failures)
