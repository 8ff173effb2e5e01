"""Many runs side by side, each brought to its end by a worker of its own.

In: jobs by name, and a directory. Out: what each job returned, or why it failed. The driver looks
every second how far the runs are. If it is stopped it leaves a file in the directory; workers see
it, keep what they have and end. The same call continues from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TypeVar

from carryscope.core.errors import CallError, WorkError
from carryscope.core.progress import Advance, Progress, Stopped, silent
from carryscope.core.storage import only_writer, write_bytes
from carryscope.core.workers import (
    Outcome,
    Workers,
    cluster_workers,
    local_workers,
    shared_out,
)
from carryscope.model.files import CONFIG_FILE
from carryscope.run import Run
from carryscope.training.checkpoint import METRICS_FILE
from carryscope.training.config import RunConfig
from carryscope.training.loop import train

T = TypeVar("T")

Job = Callable[[Path, int, Progress], T]
"""Brings a run to its end: its directory, the worker's threads, and how it says how far it is."""

STOP_FILE = ".stop"
"""While this file is in the directory, workers keep what they have and end."""

LOOK_EVERY = 1.0
"""Seconds between two looks at the stop file, or at a run that another process holds."""

ORPHANS = 60.0
"""Seconds to wait for a worker whose driver was killed. Local ones leave within two."""

STAGES = {
    "training": "training",
    "dissection": "dissecting",
    "risk": "measuring risk",
    "faithfulness": "comparing",
}
"""The findings that a run is to have, and what it does until it has them."""


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
    count, each = _crew(workers, threads, cluster)
    where, over = directory.absolute(), 0
    items = {name: (name, job) for name, job in jobs.items()}
    stop = where / STOP_FILE
    with only_writer(directory), progress("side by side", len(jobs), unit) as advance:
        stop.unlink(missing_ok=True)
        with _workers(count, each, cluster, (where, each, stop)) as crew:
            try:
                for outcome in crew.as_they_finish(_do, items):
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


def _crew(workers: int | None, threads: int | None, cluster: str | None) -> tuple[int, int]:
    """How many local workers, and how many threads each worker has, here or on the cluster."""
    if cluster is None:
        return shared_out(workers, threads)
    if workers is not None:
        raise CallError("A cluster has its own workers: leave out --workers.")
    if threads is not None and threads < 1:
        raise CallError(f"threads must be at least 1. Got {threads}.")
    return 0, threads or 1


def _workers(
    count: int, threads: int, cluster: str | None, shared: object
) -> AbstractContextManager[Workers]:
    if cluster is None:
        return local_workers(count, threads=threads, shared=shared)
    return cluster_workers(cluster, shared=shared)


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
    looked = -LOOK_EVERY

    def advance(amount: int | float = 1, note: str = "") -> None:
        nonlocal looked
        if time.monotonic() - looked > LOOK_EVERY:
            looked = time.monotonic()
            if stop.exists():
                raise Stopped("Stopped. Finished stages are kept.")

    def progress(
        name: str, total: int | float | None = None, unit: str = ""
    ) -> AbstractContextManager[Advance]:
        return nullcontext(advance)

    return progress


def trained(config: RunConfig, directory: Path, *, threads: int, progress: Progress) -> Run:
    """A run with its training done, from wherever it stands."""
    _wait_for_orphans(directory)
    train(config, directory, threads=threads, progress=progress)
    return Run(directory)


def brought_to_end(config: RunConfig, directory: Path, *, threads: int, progress: Progress) -> Run:
    """A run with all its findings; those that are there are not made again."""
    run = trained(config, directory, threads=threads, progress=progress)
    run.dissection(progress=progress)
    run.risk(progress=progress)
    run.faithfulness(progress=progress)
    return run


def _wait_for_orphans(directory: Path) -> None:
    """Wait until no worker of a driver that was killed is at this run."""
    deadline = time.monotonic() + ORPHANS
    while directory.is_dir():
        try:
            with only_writer(directory):
                return
        except WorkError:
            if time.monotonic() > deadline:
                raise
            time.sleep(LOOK_EVERY)


def stage(run: Path) -> str:
    """What a run is at, by the findings in its directory."""
    if not (run / CONFIG_FILE).exists():
        return "starting"
    left = [name for name in STAGES if not (run / "findings" / f"{name}.json").exists()]
    if not left:
        return "finishing"
    if left[0] != "training":
        return STAGES[left[0]]
    metrics = run / METRICS_FILE
    steps = metrics.read_bytes().count(b"\n") if metrics.exists() else 0
    return f"training, step {steps:,}"
