"""Workers: this process, local processes, or a dask cluster, behind one interface.

    with local_workers(2, threads=1, shared=subject) as workers:
        for found in workers.in_order(decide, pieces):    # calls decide(subject, piece)
            ...

In: a function, its items, and a value that all calls share. Out: results, in the order of the
items (`in_order`) or as they finish (`as_they_finish`). Both come back about every second, so
that the caller can watch and stop. A killed worker costs what it was doing, and no more.

This module loads neither torch nor numpy. A local worker loads it first, and must set their
number of threads before they come.
"""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from traceback import format_exc
from typing import Any, Generic, TypeVar

from carryscope.core.errors import CallError, WorkError

I = TypeVar("I")  # noqa: E741
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

TRIES = 2
"""Times that a failing call of a sweep is made. The disk may be full, or the machine busy."""

LOSSES = 3
"""Workers that a call may lose before it fails; dask allows as many."""

LOOK_EVERY = 1.0
"""Seconds between two looks at the work."""

CONNECT_SECONDS = 10.0
"""Seconds in which a dask scheduler must answer."""

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Where the libraries behind torch and numpy read their number of threads."""


class WorkersLost(WorkError):
    """A call lost more workers than it may."""

    def __init__(self) -> None:
        super().__init__(
            f"{LOSSES + 1} workers were killed during the same call. Is there too little memory?"
        )


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
        self, function: Callable[[Any, I], T], items: Mapping[K, I], *, tries: int = TRIES
    ) -> Iterator[Outcome[K, T]]:
        """How things stand: at once, then about every second; the last one is complete.

        A call that fails is made again, `tries` times in all. It stops no other.
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
                if not _settled(key, future, outcome, tries):
                    waiting.append(key)
            yield outcome


def _settled(key: K, future: Future[T], outcome: Outcome[K, T], tries: int) -> bool:
    """Record what came of a call; whether there is nothing left to try."""
    try:
        outcome.done[key] = _result(future)
    except _SchedulerLost:
        raise
    except Exception as error:
        lost = isinstance(error, WorkersLost)
        outcome.tried[key] += LOSSES + 1 if lost else 1
        if not lost and outcome.tried[key] < tries:
            return False
        outcome.failed[key] = reason(error)
    else:
        outcome.tried[key] += 1
    return True


class _SchedulerLost(WorkError):
    """No call can be made any more."""


def _result(future: Future[T]) -> T:
    if future.cancelled():
        raise _SchedulerLost("The dask scheduler is gone. What was finished before is kept.")
    error = future.exception()
    if type(error).__name__ == "KilledWorker":  # dask's, which is not always installed
        raise WorkersLost from error
    return future.result()


def reason(error: BaseException) -> str:
    """Why a call failed, in one line."""
    line = " ".join(str(error).split())
    return line if isinstance(error, CallError | WorkError) else f"{type(error).__name__}: {line}"


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def shared_out(workers: int | None, threads: int | None) -> tuple[int, int]:
    """How many local workers, with how many threads each: never more threads than cores."""
    there = cores()
    workers = workers if workers is not None else max(1, there // (threads or 1))
    threads = threads if threads is not None else max(1, there // max(1, workers))
    for name, number in (("workers", workers), ("threads", threads)):
        if number < 1:
            raise CallError(f"{name} must be at least 1. Got {number}.")
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
    processes = _LocalProcesses(count, threads, shared)
    try:
        yield Workers(processes.submit, lambda: count)
    finally:
        processes.shutdown()


class _LocalProcesses:
    """A thread for each process: it hands over calls, and starts another process if one is lost."""

    def __init__(self, count: int, threads: int, shared: Any) -> None:
        self._start = partial(_LocalProcess, threads, pickle.dumps(shared))
        self._idle: SimpleQueue[_LocalProcess | None] = SimpleQueue()
        """A place for each process that is idle; None where one is to be started."""
        for _ in range(count):
            self._idle.put(None)
        self._drivers = ThreadPoolExecutor(count)

    def submit(self, function: Callable[[Any, Any], Any], item: Any) -> Future[Any]:
        return self._drivers.submit(self._made, pickle.dumps((function, item)))

    def _made(self, call: bytes) -> Any:
        process = self._idle.get()
        try:
            for _ in range(LOSSES + 1):
                process = process or self._start()
                try:
                    worked, result = process.made(call)
                except (EOFError, OSError):
                    process = None
                    continue
                if worked:
                    return result
                raise result
            raise WorkersLost
        finally:
            self._idle.put(process)

    def shutdown(self) -> None:
        self._drivers.shutdown(cancel_futures=True)
        while not self._idle.empty():
            process = self._idle.get()
            if process is not None:
                process.end()


class _LocalProcess:
    """A process and the pipe to it. If it is killed, whoever uses the pipe hears of it at once.

    Only the process itself holds the other end, so a write to it or a read from it cannot hang.
    """

    def __init__(self, threads: int, shared: bytes) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, threads), daemon=True)
        try:
            self._process.start()
        except OSError as error:
            raise WorkError(f"A worker could not be started: {error.strerror}.") from error
        theirs.close()
        self._shared = shared

    def made(self, call: bytes) -> tuple[bool, Any]:
        """Whether a call worked, and its result or its error."""
        if self._shared:
            self._pipe.send_bytes(self._shared)
            self._shared = b""
        self._pipe.send_bytes(call)
        worked, result = pickle.loads(self._pipe.recv_bytes())
        return worked, result

    def end(self) -> None:
        """Let the process leave."""
        self._pipe.close()
        self._process.join()


def _serve(pipe: Connection, threads: int) -> None:
    """The life of a local worker: one call after the other, until the pipe is closed."""
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    be_a_helper()
    with suppress(EOFError, OSError):
        shared = _Shared(pipe.recv_bytes())
        while True:
            pipe.send_bytes(_answer(shared, pipe.recv_bytes()))


class _Shared:
    """The shared value; it is read in the first call, where an error has somebody to go to."""

    def __init__(self, content: bytes) -> None:
        self._content: bytes | None = content
        self._value: Any = None

    def value(self) -> Any:
        if self._content is not None:
            self._value, self._content = pickle.loads(self._content), None
        return self._value


def _answer(shared: _Shared, call: bytes) -> bytes:
    """Whether a call worked, and its result or its error, as bytes."""
    try:
        function, item = pickle.loads(call)
        return pickle.dumps((True, function(shared.value(), item)))
    except Exception as error:
        error.add_note(f"In a worker:\n{format_exc()}")
        try:
            return pickle.dumps((False, error))
        except Exception:
            return pickle.dumps((False, WorkError(reason(error))))


def be_a_helper() -> None:
    """Leave Ctrl-C to the parent, and do not outlive it.

    Ctrl-C reaches every process of a terminal; only the first one answers it. If that one is
    killed outright, its workers must not go on without it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def cluster_workers(address: str, *, shared: Any = None) -> Iterator[Workers]:
    """The workers of the dask scheduler at an address."""
    with _dask_client(address) as client:
        # As a call of its own, dask makes the value again if all workers that hold it are lost.
        there = client.submit(pickle.loads, pickle.dumps(shared), pure=False)
        executor = client.get_executor(pure=False)
        try:
            yield Workers(
                lambda function, item: executor.submit(function, there, item),
                lambda: sum(client.nthreads().values()),
            )
        finally:
            executor.shutdown(wait=False)


@contextmanager
def _dask_client(address: str) -> Iterator[Any]:
    try:
        import distributed
    except ImportError as error:
        raise CallError("--cluster needs dask. Run: pip install 'carryscope[cluster]'") from error
    try:
        client: Any = distributed.Client(address, timeout=CONNECT_SECONDS)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise CallError(f"No dask scheduler answers at {address}: {error}.") from error
    with client:
        if not client.nthreads():
            raise WorkError(f"The dask scheduler at {address} has no workers.")
        yield client
