"""Runs that are worked on side by side, in one directory.

In: calls, each about a run or a chain of them. Out: what they came to. The driver looks every
second how far they are; stopped, it leaves a sign at which the workers save what they have and end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from carryscope.core.progress import Stopped
from carryscope.core.storage import write_bytes
from carryscope.core.workers import K, Outcome, T, cluster_workers, local_workers

R = TypeVar("R")
"""What a run is called: a seed, the name of a model."""

STOP_FILE = ".stop"
"""While it stands in the directory, workers save what they have and end."""


@dataclass(frozen=True)
class Progress(Generic[R, T]):
    """How far the work is, run by run."""

    of: int
    done: Mapping[R, T]
    failed: Mapping[R, str]
    running: Mapping[R, str]
    """What each run is at that is being worked on."""
    not_begun: Mapping[R, str] = field(default_factory=dict)
    """Why runs were not begun, where another failed that has to come first."""


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
    progress: Callable[[Outcome[K, T]], Progress[R, T]],
    on_progress: Callable[[Progress[R, T]], bool | None],
) -> Outcome[K, T]:
    """Make all calls, by local workers or a dask cluster; `on_progress` stops it with True.

    `progress` tells how far the runs are: a call may be about more than one.
    """

    def on_look(outcome: Outcome[K, T]) -> None:
        reached = progress(outcome)
        if on_progress(reached):
            done = f"{len(reached.done)} of {reached.of} {what} are done"
            raise Stopped(f"Stopped: {done}, and what the others reached is kept.")

    sign = stop_sign(directory)
    sign.unlink(missing_ok=True)
    team = cluster_workers(cluster) if cluster else local_workers(workers, threads=threads)
    with team as crew:
        try:
            for outcome in crew.as_they_finish(_made, calls):
                on_look(outcome)
        except BaseException:
            write_bytes(sign, b"")
            raise
    return outcome


def _made(_: object, call: Callable[[], T]) -> T:
    return call()
