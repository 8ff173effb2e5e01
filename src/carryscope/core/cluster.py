"""The workers of a dask cluster, and how its scheduler is reached."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from carryscope.core.errors import CallError, WorkError

CONNECT_SECONDS = 5.0
"""Seconds in which a dask scheduler must answer."""

LONGEST_GREETING = 2**20
"""More bytes than a dask scheduler begins a conversation with. Letters make a longer number."""


class SchedulerLost(WorkError):
    """No further call can be made on the cluster."""

    def __init__(self) -> None:
        super().__init__("The dask scheduler is gone. What was finished before is kept.")


class DaskCluster:
    """The workers of a dask scheduler, and a value that all calls share."""

    def __init__(self, client: Any, shared: Any) -> None:
        self._client = client
        self._executor = client.get_executor(pure=False)
        self._shared = self._placed(shared)

    def _placed(self, shared: Any) -> Any:
        """The value on the cluster: as the result of a call, so that dask can make it again."""
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self._client.submit(pickle.loads, pickle.dumps(shared), pure=False)

    def submit(self, function: Callable[[Any, Any], Any], item: Any) -> Future[Any]:
        """Start function(shared, item)."""
        call = partial(self._executor.submit, function, self._shared, item)
        future: Future[Any] = self._reached(call)
        return future

    def room(self) -> int:
        """How many calls can run at once, as of now."""
        return sum(self._reached(self._client.nthreads).values())

    def _reached(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:
            if isinstance(error, OSError) or self._client.status != "running":
                raise SchedulerLost from error
            raise

    def shutdown(self) -> None:
        """Drop the calls that are under way."""
        self._executor.shutdown(wait=False)


@contextmanager
def dask_client(address: str) -> Iterator[Any]:
    """A client of the scheduler at an address, which must have workers."""
    try:
        import distributed
    except ImportError as error:
        raise CallError("--cluster needs dask. Run: pip install 'carryscope[cluster]'") from error
    try:
        _knock(address)
        client: Any = distributed.Client(address, timeout=CONNECT_SECONDS)  # type: ignore[no-untyped-call]
    except Exception as error:  # a stranger's words, taken for dask's, may raise anything
        raise CallError(f"No dask scheduler answers at {address}: {error}.") from error
    with client:
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
                length = int.from_bytes(connection.recv(8), "little")
                if not 0 < length < LONGEST_GREETING:
                    raise OSError("what is there does not speak its language")
