"""Who works side by side: local processes or a dask cluster; and what is tried again.

In: calls, by name or seed. Out: what each came to, or why it failed.

Neither torch nor numpy is loaded here: a local worker loads this module first, and must say how
many threads they may use before they come.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from queue import SimpleQueue
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

from carryscope.core.errors import CallError, WorkError
from carryscope.core.processes import be_a_helper, dask_client

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
P = ParamSpec("P")

TRIES = 2
"""How often a call is made: a failure may have been a full disk or a busy machine."""

LOSSES = 3
"""How many workers a call may lose without counting as failed; as many as dask allows."""

LOOK_EVERY = 1.0
"""Seconds between two looks at how far the calls are."""

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Where the libraries behind torch and numpy look for their number of threads."""


class Crew(NamedTuple):
    """Those who work."""

    executor: Executor
    room: Callable[[], int]
    """How many calls can be worked on at once, as things stand."""


@dataclass
class Outcome(Generic[K, T]):
    """What the calls came to so far; it grows while they are made."""

    done: dict[K, T] = field(default_factory=dict)
    failed: dict[K, str] = field(default_factory=dict)
    """The reason of the last failure, in a line."""
    tried: Counter[K] = field(default_factory=Counter)
    running: dict[Future[T], K] = field(default_factory=dict)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def shared_out(workers: int | None, threads: int | None) -> tuple[int, int]:
    """How many local workers, with how many threads each; never more threads than cores."""
    there = cores()
    workers = workers if workers is not None else max(1, there // (threads or 1))
    threads = threads if threads is not None else max(1, there // max(1, workers))
    for name, number in (("workers", workers), ("threads", threads)):
        if number < 1:
            raise CallError(f"{name} must be at least 1. Got {number}.")
    if workers * threads > there:
        raise CallError(
            f"{workers} workers with {threads} threads each are more than the {there} cores of "
            "this machine. Ask for fewer."
        )
    return workers, threads


def work_through(
    crew: Crew,
    calls: Mapping[K, Callable[[], T]],
    on_look: Callable[[Outcome[K, T]], object] = lambda _: None,
) -> Outcome[K, T]:
    """Carry out all calls, a failed one once more; one that fails again stops no other.

    `on_look` hears how things stand about every second; what it raises ends the work.
    """
    waiting, lost = deque(calls), Counter[K]()
    outcome: Outcome[K, T] = Outcome()
    while waiting or outcome.running:
        while waiting and len(outcome.running) < crew.room():
            key = waiting.popleft()
            outcome.running[crew.executor.submit(calls[key])] = key
        if not outcome.running:
            time.sleep(LOOK_EVERY)
        over = wait(outcome.running, LOOK_EVERY, FIRST_COMPLETED).done
        for future in over:
            key = outcome.running.pop(future)
            if not _settled(key, future, outcome, lost):
                waiting.append(key)
        on_look(outcome)
    return outcome


def _settled(key: K, future: Future[T], outcome: Outcome[K, T], lost: Counter[K]) -> bool:
    """Note what a call came to; whether there is nothing more to try."""
    if future.cancelled():
        raise WorkError("The dask scheduler is gone. What was reached is kept.")
    outcome.tried[key] += 1
    error = future.exception()
    if error is None:
        outcome.done[key] = future.result()
        return True
    killed = isinstance(error, BrokenProcessPool)
    lost[key] += killed
    again = lost[key] <= LOSSES if killed else outcome.tried[key] - lost[key] < TRIES
    if not again:
        outcome.failed[key] = reason(error)
    return not again


def reason(error: BaseException) -> str:
    """Why a call failed, in a line."""
    told = " ".join(str(error).split())
    if isinstance(error, BrokenProcessPool):
        return f"{LOSSES + 1} workers were killed at it. Is there too little memory?"
    return told if isinstance(error, CallError | WorkError) else f"{type(error).__name__}: {told}"


@contextmanager
def at_work(workers: int, threads: int, cluster: str | None) -> Iterator[Crew]:
    """Local processes with so many threads each, or the workers of a dask cluster."""
    if cluster is not None:
        with _on_cluster(cluster) as crew:
            yield crew
    else:
        with LocalProcesses(workers, threads) as executor:
            yield Crew(executor, lambda: workers)


class LocalProcesses(Executor):
    """Processes, each an executor of its own: one that is killed takes nobody's work but its own.

    A process that was killed, or could not be started, is replaced when there is work for it.
    """

    def __init__(self, workers: int, threads: int) -> None:
        self._threads = threads
        self._idle: SimpleQueue[ProcessPoolExecutor | None] = SimpleQueue()
        """A place for each worker that has nothing to do; None where its process is to be made."""
        self._workers = workers
        for _ in range(workers):
            self._idle.put(None)

    def _process(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, get_context("spawn"), _start, (self._threads,))

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Hand a call to a process that has nothing to do; wait for one if there is none."""
        place = self._idle.get()
        try:
            process, future = self._handed(place, partial(fn, *args, **kwargs))
        except BaseException:
            # Its process may have kept the call, and would make it before the next one.
            self._idle.put(None)
            raise
        future.add_done_callback(partial(self._back, process))
        return future

    def _handed(
        self, place: ProcessPoolExecutor | None, call: Callable[[], T]
    ) -> tuple[ProcessPoolExecutor, Future[T]]:
        """The process that has the call now, and what will come of it."""
        process = place or self._process()
        try:
            return process, process.submit(call)
        except BrokenProcessPool:  # it was killed while it had nothing to do
            process = self._process()
            return process, process.submit(call)

    def _back(self, process: ProcessPoolExecutor, future: Future[Any]) -> None:
        killed = not future.cancelled() and isinstance(future.exception(), BrokenProcessPool)
        self._idle.put(None if killed else process)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the processes end; with `wait`, once they have done what they are at."""
        for _ in range(self._workers):
            process = self._idle.get()
            if process is not None:
                process.shutdown(wait, cancel_futures=cancel_futures)
        self._workers = 0


def _start(threads: int) -> None:
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    be_a_helper()


@contextmanager
def _on_cluster(address: str) -> Iterator[Crew]:
    with dask_client(address) as client:
        executor: Executor = client.get_executor(pure=False)
        try:
            yield Crew(executor, lambda: sum(client.nthreads().values()))
        finally:
            executor.shutdown(wait=False)
