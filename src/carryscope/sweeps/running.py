"""Many seeds of one recipe, or any jobs, side by side: each a run of its own.

In: a recipe, seeds, a directory. Out: `Sweep`, in sweep.json, sweep.md and sweep.html next to the
runs seed-0, seed-1 ... The driver looks every second how far the runs are. If it is stopped it
leaves a file in the directory; workers see it, keep what they have and end. A call that was stopped
or killed is continued by the same call: what a seed has reached is in its run directory, and no
seed is done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from carryscope.core.errors import CallError
from carryscope.core.progress import Progress, Stopped, silent, stopping
from carryscope.core.storage import (
    check_place,
    only_writer,
    read_json,
    write_bytes,
    write_json,
)
from carryscope.core.workers import Outcome, Workers, cluster_workers, local_workers, shared_out
from carryscope.model.files import CONFIG_FILE
from carryscope.report.page import REPORT_FILE
from carryscope.run import Run
from carryscope.stages import DISSECTION, FAITHFULNESS, RISK, TRAINING
from carryscope.sweeps.finding import SWEEP_FILE, Sweep, summarised
from carryscope.sweeps.page import write_pages
from carryscope.training.checkpoint import METRICS_FILE
from carryscope.training.config import RunConfig, differences
from carryscope.training.loop import train
from carryscope.training.presets import changed

T = TypeVar("T")

Job = Callable[[Path, int, Progress], T]
"""Brings a run to its end: its directory, the worker's threads, and how it says how far it is."""

STOP_FILE = ".stop"
"""While this file is in the directory, workers keep what they have and end."""

ORPHANS = 60.0
"""Seconds to wait for a worker whose driver was killed. Local ones leave within two."""


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
    names = {seed: f"seed-{seed}" for seed in seeds}
    jobs = {name: partial(study_seed, with_seed(recipe, seed)) for seed, name in names.items()}
    outcome = side_by_side(
        jobs,
        directory,
        workers=workers,
        threads=threads,
        cluster=cluster,
        unit="seeds",
        progress=progress,
    )
    failed = {seed: outcome.failed[name] for seed, name in names.items() if name in outcome.failed}
    shelves = [Run(directory / name).shelf() for name in names.values() if name in outcome.done]
    found = summarised(recipe, seeds, shelves, failed)
    # The record comes last: where there is one, there are its pages.
    write_pages(found, shelves, directory)
    write_json(directory / SWEEP_FILE, found)
    return found


def study_seed(config: RunConfig, directory: Path, threads: int, progress: Progress) -> None:
    """Bring the run of one seed to its end."""
    run = trained(config, directory, threads=threads, progress=progress)
    run.dissection(progress=progress)
    run.risk(progress=progress)
    run.faithfulness(progress=progress)
    if not (directory / REPORT_FILE).exists():
        run.report()


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
    return changed(recipe, {"seed": seed})


def side_by_side(
    jobs: Mapping[str, Job[T]],
    directory: Path,
    *,
    workers: int | None = None,
    threads: int | None = None,
    cluster: str | None = None,
    unit: str = "runs",
    progress: Progress = silent,
) -> Outcome[str, T]:
    """Do all jobs. Job `a` has the run directory/a.

    They are shared out among local processes (`workers`, by default one for each core, with
    `threads` each) or the workers of the dask cluster at the address `cluster`. A job that fails
    is tried once more; if it fails again, the others go on.
    """
    where, over = directory.absolute(), 0
    stop = where / STOP_FILE
    crew = _crew(where, stop, workers, threads, cluster)
    check_place(stop)
    items = {name: (name, job) for name, job in jobs.items()}
    with only_writer(directory), progress("side by side", len(jobs), unit) as advance:
        stop.unlink(missing_ok=True)
        with crew as there:
            try:
                for outcome in there.as_they_finish(_do, items):
                    finished = len(outcome.done) + len(outcome.failed)
                    advance(finished - over, _note(outcome, where))
                    over = finished
            except BaseException as error:
                write_bytes(stop, b"")
                if not isinstance(error, Stopped):
                    raise
                done = f"{len(outcome.done)} of {len(jobs)} {unit} are done"
                raise Stopped(f"Stopped: {done}. What the others have is kept.") from error
    return outcome


def _crew(
    directory: Path, stop: Path, workers: int | None, threads: int | None, cluster: str | None
) -> AbstractContextManager[Workers]:
    """Local processes, or the workers of a cluster."""
    if cluster is None:
        count, each = shared_out(workers, threads)
        return local_workers(count, threads=each, shared=(directory, each, stop))
    if workers is not None:
        raise CallError("A cluster has its own workers: leave out --workers.")
    if threads is not None and threads < 1:
        raise CallError(f"threads must be at least 1. Got {threads}.")
    return cluster_workers(cluster, shared=(directory, threads or 1, stop))


def _do(shared: tuple[Path, int, Path], item: tuple[str, Job[T]]) -> T:
    """What a worker does: a job, until a file appears at `stop`."""
    (directory, threads, stop), (name, job) = shared, item
    return job(directory / name, threads, until(stop))


def _note(outcome: Outcome[str, T], directory: Path) -> str:
    """What the runs are at, and which failed."""
    failed = [f"{name} failed: {why}" for name, why in outcome.failed.items()]
    running = [f"{name} {stage(directory / name)}" for name in outcome.running.values()]
    return "; ".join([*failed, *running])


def until(stop: Path) -> Progress:
    """Progress that nobody sees, and that ends the work once there is a file at a path."""
    return stopping(stop.exists, "Stopped. Finished stages are kept.")


def trained(config: RunConfig, directory: Path, *, threads: int, progress: Progress) -> Run:
    """A run with its training done, from wherever it stands."""
    with only_writer(directory, wait=ORPHANS):
        """No worker of a driver that was killed is at this run."""
    train(config, directory, threads=threads, progress=progress)
    return Run(directory)


def stage(run: Path) -> str:
    """What a run is at, by the findings in its directory."""
    if not (run / CONFIG_FILE).exists():
        return "starting"
    stages = (TRAINING, DISSECTION, RISK, FAITHFULNESS)
    left = [stage.name for stage in stages if not (run / stage.file).exists()]
    if left[:1] == [TRAINING.name]:
        metrics = run / METRICS_FILE
        steps = metrics.read_bytes().count(b"\n") if metrics.exists() else 0
        return f"training, step {steps:,}"
    return left[0] if left else "finishing"
