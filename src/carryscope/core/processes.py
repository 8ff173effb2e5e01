"""Local processes. One that is killed costs the call that it was making, and no other.

In: a number of processes and of threads for each, and a value that all calls share. Out: a future
for each call function(shared, item).

This module loads neither torch nor numpy. A local process loads it first, and must set their
number of threads before they come.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache, partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from traceback import format_exc
from typing import Any

from carryscope.core.errors import CallError, WorkError

LOSSES = 3
"""Workers that a call may lose before it fails; dask allows as many."""

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Where the libraries behind torch and numpy read their number of threads."""


class WorkersLost(WorkError):
    """A call lost more workers than it may."""

    def __init__(self) -> None:
        super().__init__(
            f"{LOSSES + 1} workers were killed during the same call. Is there too little memory?"
        )


class LocalProcesses:
    """Processes, each with a thread that sends it calls and replaces it if it is lost."""

    def __init__(self, count: int, threads: int, shared: Any) -> None:
        self._start = partial(LocalProcess, threads, pickle.dumps(shared))
        self._idle: SimpleQueue[LocalProcess | None] = SimpleQueue()
        """A place for each process that is idle; None where one is to be started."""
        for _ in range(count):
            self._idle.put(None)
        self._drivers = ThreadPoolExecutor(count)

    def submit(self, function: Callable[[Any, Any], Any], item: Any) -> Future[Any]:
        """Start function(shared, item)."""
        return self._drivers.submit(self._made, pickle.dumps((function, item)))

    def _made(self, call: bytes) -> Any:
        process = self._idle.get()
        try:
            for _ in range(LOSSES + 1):
                try:
                    process = process or self._start()
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
        """Let busy processes finish their call; drop the calls that have not begun."""
        self._drivers.shutdown(cancel_futures=True)
        while not self._idle.empty():
            process = self._idle.get()
            if process is not None:
                process.end()


class LocalProcess:
    """A process and the pipe to it. If the process is killed, the pipe raises an error at once.

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
        self._pipe.send_bytes(shared)

    def made(self, call: bytes, seconds: float | None = None) -> tuple[bool, Any]:
        """Whether a call worked, and its result or its error. It may take so long."""
        self._pipe.send_bytes(call)
        if not self._pipe.poll(seconds):
            raise TimeoutError
        worked, result = pickle.loads(self._pipe.recv_bytes())
        return worked, result

    def end(self) -> None:
        """Let the process leave."""
        self._pipe.close()
        self._process.join()

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self.end()


def _serve(pipe: Connection, threads: int) -> None:
    """The life of a local worker: one call after the other, until the pipe is closed.

    Ctrl-C reaches every process of a terminal; only the first one answers it. If that one is
    killed outright, its workers leave with it.
    """
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_leave_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        shared = pipe.recv_bytes()
        while True:
            pipe.send_bytes(_answer(shared, pipe.recv_bytes()))


def _leave_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


_unpickled = lru_cache(1)(pickle.loads)
"""The shared value, read once, in the first call: there an error has somebody to go to."""


def _answer(shared: bytes, call: bytes) -> bytes:
    """Whether a call worked, and its result or its error, as bytes."""
    try:
        function, item = pickle.loads(call)
        return pickle.dumps((True, function(_unpickled(shared), item)))
    except BaseException as error:
        error.add_note(f"In a worker:\n{format_exc()}")
        try:
            return pickle.dumps((False, error))
        except Exception:
            return pickle.dumps((False, WorkError(reason(error))))


def reason(error: BaseException) -> str:
    """Why a call failed, in one line, even if its error cannot say it."""
    line = ""
    with suppress(Exception):
        line = " ".join(str(error).split())
    if isinstance(error, CallError | WorkError):
        return line
    return f"{type(error).__name__}: {line}".removesuffix(": ")
