"""Workers: this process, local processes, or a dask cluster, behind one interface.

    with local_workers(2, threads=1, shared=subject) as workers:
        for found in workers.in_order(decide, pieces):    # calls decide(subject, piece)
            ...

In: a function, its items, and a value that all calls share. Out: results, in the order of the
items (`in_order`) or as they finish (`as_they_finish`). Both come back about every second, so
that the caller can watch and stop. A killed worker costs what it was doing, and no more.
"""

from __future__ import annotations

import pickle
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from carryscope.core.errors import CallError, WorkError, require
from carryscope.core.machine import cores
from carryscope.core.processes import LOSSES, LocalProcesses, WorkersLost, reason

I = TypeVar("I")  # noqa: E741
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

TRIES = 2
"""Times that a failing call of a sweep is made. The disk may be full, or the machine busy."""

LOOK_EVERY = 1.0
"""Seconds between two looks at the work."""

CONNECT_SECONDS = 5.0
"""Seconds in which a dask scheduler must answer."""

LONGEST_GREETING = 2**20
"""More bytes than a dask scheduler begins a conversation with. Letters make a longer number."""


class SchedulerLost(WorkError):
    """No further call can be made on the cluster."""

    def __init__(self) -> None:
        super().__init__("The dask scheduler is gone. What was finished before is kept.")


@dataclass
class Outcome(Generic[K, T]):
    """What came of calls so far. It grows while they are made."""

    done: dict[K, T] = field(default_factory=dict)
    failed: dict[K, str] = field(default_factory=dict)
    """The reason of the last failure, in one line."""
    tried: Counter[K] = field(default_factory=Counter)
    """How often each call was made."""
    running: dict[Future[T], K] = field(default_factory=dict)


@dataclass(frozen=True)
class Workers:
    """Those who work. `function` and items must be picklable unless this process works itself."""

    submit: Callable[[Callable[[Any, Any], Any], Any], Future[Any]]
    """Starts function(shared, item)."""
    room: Callable[[], int]
    """How many calls can run at once, as of now."""
    ahead: int = 2
    """Calls under way for each worker where results are taken in order: none has to wait."""

    def in_order(
        self, function: Callable[[Any, I], T], items: Iterable[I]
    ) -> Iterator[tuple[I, T] | None]:
        """Each item with its result, in the order of the items; None if a second brought nothing.

        A call that fails raises its error here.
        """
        left, under_way = iter(items), deque[tuple[I, Future[T]]]()
        while True:
            for item in left:
                under_way.append((item, self.submit(function, item)))
                if len(under_way) >= self.ahead * self.room():
                    break
            if not under_way:
                return
            item, future = under_way[0]
            if wait([future], LOOK_EVERY).done:
                under_way.popleft()
                yield item, _result(future)
            else:
                yield None

    def as_they_finish(
        self, function: Callable[[Any, I], T], items: Mapping[K, I]
    ) -> Iterator[Outcome[K, T]]:
        """How things stand: at once, then about every second; the last one is complete.

        A call that fails is made again, `TRIES` times in all. It stops no other.
        """
        waiting, outcome = deque(items), Outcome[K, T]()
        yield outcome
        while waiting or outcome.running:
            while waiting and len(outcome.running) < self.room():
                key = waiting.popleft()
                outcome.running[self.submit(function, items[key])] = key
            if not outcome.running:  # a cluster that has no workers at the moment
                time.sleep(LOOK_EVERY)
            for future in wait(outcome.running, LOOK_EVERY, FIRST_COMPLETED).done:
                key = outcome.running.pop(future)
                if not _is_settled(key, future, outcome):
                    waiting.append(key)
            yield outcome


def _is_settled(key: K, future: Future[T], outcome: Outcome[K, T]) -> bool:
    """Record what came of a call; whether there is nothing left to try."""
    outcome.tried[key] += 1
    try:
        outcome.done[key] = _result(future)
    except SchedulerLost:
        raise
    except Exception as error:
        if isinstance(error, WorkersLost):
            outcome.tried[key] += LOSSES
        if outcome.tried[key] < TRIES:
            return False
        outcome.failed[key] = reason(error)
    return True


def _result(future: Future[T]) -> T:
    if future.cancelled():
        raise SchedulerLost
    error = future.exception()
    if type(error).__name__ == "KilledWorker":  # dask's, which is not always installed
        raise WorkersLost from error
    return future.result()


def worker_count(workers: int | None) -> int:
    """How many local workers are meant: by default one for each core."""
    require(workers is None or workers >= 1, "workers must be at least 1", workers)
    return cores() if workers is None else workers


def shared_out(workers: int | None, threads: int | None) -> tuple[int, int]:
    """How many local workers, with how many threads each: never more threads than cores."""
    there = cores()
    workers = workers if workers is not None else max(1, there // (threads or 1))
    threads = threads if threads is not None else max(1, there // max(1, workers))
    require(workers >= 1, "workers must be at least 1", workers)
    require(threads >= 1, "threads must be at least 1", threads)
    if workers * threads > there:
        raise CallError(
            f"{workers} workers with {threads} threads each need more than the {there} cores of "
            "this machine. Use fewer."
        )
    return workers, threads


def this_process(shared: Any = None) -> Workers:
    """This process does the work itself, one call after the other."""

    def submit(function: Callable[[Any, Any], Any], item: Any) -> Future[Any]:
        made: Future[Any] = Future()
        try:
            made.set_result(function(shared, item))
        except Exception as error:
            made.set_exception(error)
        return made

    return Workers(submit, lambda: 1, ahead=1)


@contextmanager
def local_workers(count: int, *, threads: int = 1, shared: Any = None) -> Iterator[Workers]:
    """Processes of this machine with so many threads each.

    At the end those that are busy finish their call; calls that have not begun are dropped.
    """
    processes = LocalProcesses(count, threads, shared)
    try:
        yield Workers(processes.submit, lambda: count)
    finally:
        processes.shutdown()


@contextmanager
def cluster_workers(address: str, *, shared: Any = None) -> Iterator[Workers]:
    """The workers of the dask scheduler at an address."""
    with _dask_client(address) as client:
        executor = client.get_executor(pure=False)
        # The shared value is the result of a call, so that dask can make it again.
        placed = client.submit(pickle.loads, pickle.dumps(shared), pure=False)

        def reached(call: Callable[..., Any], *arguments: Any) -> Any:
            try:
                return call(*arguments)
            except Exception as error:
                if isinstance(error, OSError) or client.status != "running":
                    raise SchedulerLost from error
                raise

        try:
            yield Workers(
                lambda function, item: reached(executor.submit, function, placed, item),
                lambda: sum(reached(client.nthreads).values()),
            )
        finally:
            executor.shutdown(wait=False)


@contextmanager
def _dask_client(address: str) -> Iterator[Any]:
    """A client of the scheduler at an address, which must have workers."""
    try:
        import dask
        import distributed
    except ImportError as error:
        raise CallError("--cluster needs dask. Run: pip install 'carryscope[cluster]'") from error
    try:
        _knock(address)
        client: Any = distributed.Client(address, timeout=CONNECT_SECONDS)  # type: ignore[no-untyped-call]
    except Exception as error:  # a stranger's words, taken for dask's, may raise anything
        why = str(error) or "it says no more"
        raise CallError(f"No dask scheduler answers at {address}: {why}.") from error
    with client, dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        if not client.nthreads():
            raise WorkError(f"The dask scheduler at {address} has no workers.")
        yield client


def _knock(address: str) -> None:
    """Raise an OSError if no dask answers at an address: a client of it would wait for very long.

    A dask scheduler speaks first, and begins with the length of what it says. Under TLS it does
    not, so there it is enough that it listens.
    """
    place = urlsplit(address)
    if place.hostname and place.port:
        with socket.create_connection((place.hostname, place.port), CONNECT_SECONDS) as connection:
            if place.scheme == "tcp":
                left = int.from_bytes(connection.recv(8), "little")
                if not 0 < left < LONGEST_GREETING:
                    raise OSError("what is there does not speak its language")
                over = time.monotonic() + CONNECT_SECONDS
                while left > 0:
                    heard = connection.recv(left)
                    left -= len(heard)
                    if not heard or time.monotonic() > over:
                        raise OSError("what is there does not finish its greeting")
