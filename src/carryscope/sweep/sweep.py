"""Many seeds of one recipe, side by side, each a run of its own.

In: a recipe, seeds, a directory. Out: `Sweep`, in sweep.json, sweep.md and sweep.html beside the
runs seed-0, seed-1 ... Killed at any moment and called again it goes on from there: what a seed
has reached stands in its run directory, and no seed is done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from carryscope.core.errors import CallError
from carryscope.core.storage import only_writer, read_json, write_json
from carryscope.core.workers import Outcome, shared_out
from carryscope.sweep.finding import SWEEP_FILE, SeedFailure, Sweep, summarised
from carryscope.sweep.page import write_pages
from carryscope.sweep.seeds import SeedFinding, study_seed
from carryscope.sweep.side_by_side import Progress, side_by_side, stop_sign
from carryscope.sweep.stages import stage
from carryscope.training.config import RunConfig, differences


class _Known(msgspec.Struct, frozen=True):
    """What must not change from call to call, in a sweep that any version left."""

    recipe: RunConfig


def sweep(
    recipe: RunConfig,
    seeds: Sequence[int],
    directory: Path,
    *,
    workers: int | None = None,
    threads: int | None = None,
    cluster: str | None = None,
    on_progress: Callable[[Progress[int, SeedFinding]], bool | None] = lambda _: None,
) -> Sweep:
    """Train and study every seed, and lay them side by side.

    Seeds are worked on by local processes (`workers`, by default one for each core, with
    `threads` each), or by the dask cluster at the address `cluster`, whose workers must see the
    same directory. A seed that fails is tried once more and then reported. `on_progress` hears
    about every second how far things are, and may stop the sweep by returning True.
    """
    _check(recipe, seeds, directory)
    count, each = _crew(workers, threads, cluster)
    runs = {seed: seed_directory(directory, seed) for seed in seeds}
    calls = {
        seed: partial(study_seed, with_seed(recipe, seed), run, each, stop_sign(directory))
        for seed, run in runs.items()
    }
    with only_writer(directory):
        outcome = side_by_side(
            calls,
            directory,
            workers=count,
            threads=each,
            cluster=cluster,
            what="seeds",
            progress=partial(_progress, runs),
            on_progress=on_progress,
        )
        found = _gathered(recipe, seeds, outcome)
        # The record comes last: where it is found, its pages are.
        write_pages(found, directory)
        write_json(directory / SWEEP_FILE, found)
    return found


def _progress(
    runs: Mapping[int, Path], outcome: Outcome[int, SeedFinding]
) -> Progress[int, SeedFinding]:
    running = {seed: stage(runs[seed]) for seed in outcome.running.values()}
    return Progress(len(runs), outcome.done, outcome.failed, running)


def _crew(workers: int | None, threads: int | None, cluster: str | None) -> tuple[int, int]:
    """How many local workers, and how many threads each worker has, here or on the cluster."""
    if cluster is None:
        return shared_out(workers, threads)
    if workers is not None:
        raise CallError("workers are local, and a cluster has its own: leave out --workers.")
    if threads is not None and threads < 1:
        raise CallError(f"threads must be at least 1. Got {threads}.")
    return 0, threads or 1


def _check(recipe: RunConfig, seeds: Sequence[int], directory: Path) -> None:
    """Refuse what makes no sense before any work is done."""
    if recipe.training is None:
        raise CallError("A sweep needs a recipe to train. Got that of an imported model.")
    if not seeds or len(set(seeds)) != len(seeds):
        raise CallError(f"seeds must be different from each other, and some. Got {list(seeds)}.")
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
    """The recipe with a seed of its own."""
    assert recipe.training is not None
    fields = msgspec.structs.asdict(recipe.training) | {"seed": seed}
    return msgspec.structs.replace(recipe, training=type(recipe.training)(**fields))


def seed_directory(directory: Path, seed: int) -> Path:
    """Where the run of a seed stands."""
    return directory.absolute() / f"seed-{seed}"


def _gathered(recipe: RunConfig, seeds: Sequence[int], outcome: Outcome[int, SeedFinding]) -> Sweep:
    return summarised(
        recipe,
        seeds,
        [outcome.done[seed] for seed in seeds if seed in outcome.done],
        [
            SeedFailure(seed=seed, tried=outcome.tried[seed], reason=outcome.failed[seed])
            for seed in seeds
            if seed in outcome.failed
        ],
    )
