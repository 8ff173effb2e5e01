"""Processes that help: how they behave here, and how those of a dask cluster are reached.

Neither torch nor numpy is loaded here: a helper may load this first, and say how many threads
they may use before they come.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from carryscope.core.errors import CallError, WorkError

LOOK_EVERY = 2.0
"""Seconds between two looks of a helper at whether its parent is still there."""


def be_a_helper() -> None:
    """Leave Ctrl-C to the parent, and do not outlive it.

    Ctrl-C reaches every process of a terminal; only the first one answers it. If that one is
    killed outright, its helpers must not wait for work forever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_leave_with, args=(os.getppid(),), daemon=True).start()


def _leave_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    os._exit(1)


@contextmanager
def dask_client(address: str) -> Iterator[Any]:
    """A client of the scheduler at an address, which must have workers."""
    try:
        import distributed
    except ImportError as error:
        raise CallError("--cluster needs dask. Run: pip install 'carryscope[cluster]'") from error
    try:
        connect: Any = distributed.Client
        client = connect(address, timeout="5s")
    except (OSError, ValueError) as error:
        raise CallError(f"No dask scheduler answers at {address}: {error}.") from error
    with client:
        if not client.nthreads():
            raise WorkError(f"The dask scheduler at {address} has no workers.")
        yield client
