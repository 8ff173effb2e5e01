"""Many runs side by side, each brought to its end by a worker of its own.

In: jobs by name, and a directory. Out: what each job returned, or why it failed. The driver looks
every second how far the runs are. If it is stopped it leaves a file in the directory; workers see
it, keep what they have and end. The same call continues from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TypeVar

from carryscope.core.errors import WorkError
from carryscope.core.progress import Advance, Progress, Stopped
from carryscope.core.storage import only_writer, write_bytes
from carryscope.core.workers import Outcome, Workers
from carryscope.model.files import CONFIG_FILE
from carryscope.stages import Run
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
    workers: int,
    threads: int,
    cluster: str | None = None,
    watch: Callable[[Outcome[str, T]], object] = lambda _: None,
) -> Outcome[str, T]:
    """Do all jobs on local workers or on a dask cluster. Job `a` has the run directory/a.

    A job that fails is tried once more; if it fails again, the others go on. `watch` sees every
    second how far things are, and may raise `Stopped`.
    """
    stop = directory.absolute() / STOP_FILE
    calls = {
        name: partial(_done, job, directory.absolute() / name, threads, stop)
        for name, job in jobs.items()
    }
    with only_writer(directory):
        stop.unlink(missing_ok=True)
        with Workers(workers, threads=threads, cluster=cluster) as crew:
            try:
                return crew.work_through(calls, watch)
            except BaseException:
                write_bytes(stop, b"")
                raise


def _done(job: Job[T], run: Path, threads: int, stop: Path) -> T:
    """What a worker does: the job, until a file appears at `stop`."""
    return job(run, threads, until(stop))


def until(stop: Path) -> Progress:
    """Progress that nobody sees, and that ends the work once there is a file at a path."""
    looked = -LOOK_EVERY

    def advance(amount: float = 1, note: str = "") -> None:
        nonlocal looked
        if time.monotonic() - looked > LOOK_EVERY:
            looked = time.monotonic()
            if stop.exists():
                raise Stopped("Stopped. Finished stages are kept.")

    def progress(
        name: str, total: float | None = None, unit: str = ""
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
