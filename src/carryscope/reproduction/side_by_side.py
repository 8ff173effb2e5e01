"""Runs that are worked on side by side, in one directory.

In: a call for each run. Out: what they came to. The driver looks every second how far they are;
stopped, it leaves a sign at which the workers save what they have and end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Generic, NamedTuple

from carryscope.reproduction.pool import K, Outcome, T, at_work, work_through
from carryscope.storage import write_bytes
from carryscope.training.loop import Stopped

STOP_FILE = ".stop"
"""While it stands in the directory, workers save what they have and end."""


class Progress(NamedTuple, Generic[K, T]):
    """How far the work is."""

    of: int
    done: Mapping[K, T]
    failed: Mapping[K, str]
    running: Mapping[K, str]
    """What each run is at that is being worked on."""


def stop_sign(directory: Path) -> Path:
    """Where the sign to stop would stand."""
    return directory.absolute() / STOP_FILE


def side_by_side(
    calls: Mapping[K, Callable[[], T]],
    directory: Path,
    *,
    workers: int,
    threads: int,
    cluster: str | None = None,
    what: str,
    stage: Callable[[K], str],
    on_progress: Callable[[Progress[K, T]], bool | None],
) -> Outcome[K, T]:
    """Make all calls, by local workers or a dask cluster; `on_progress` stops it with True."""

    def on_look(outcome: Outcome[K, T]) -> None:
        running = {key: stage(key) for key in outcome.running.values()}
        if on_progress(Progress(len(calls), outcome.done, outcome.failed, running)):
            done = f"{len(outcome.done)} of {len(calls)} {what} are done"
            raise Stopped(f"Stopped: {done}, and what the others reached is kept.")

    sign = stop_sign(directory)
    sign.unlink(missing_ok=True)
    with at_work(workers, threads, cluster) as crew:
        try:
            return work_through(crew, calls, on_look)
        except BaseException:
            write_bytes(sign, b"")
            raise
