"""Who does the work: this process, local processes, or a dask cluster.

In: a subject and pieces of work: boxes to decide, or claims to check. Out: results. A piece of
work is a value, its result depends on nothing else, and results are taken in the order in which
work was given; so the certificate is the same whoever does it.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from multiprocessing import get_context
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Int

from carryscope.certificate.boxes import RowSpace
from carryscope.certificate.exploring import Fragment, explore
from carryscope.certificate.features import Features
from carryscope.certificate.row_tables import RowTables
from carryscope.core.processes import be_a_helper, dask_client
from carryscope.task.operation import Array

ROWS_KEPT = 3
"""Row tables that a process keeps: a few hundred megabytes each for ten digits."""


@dataclass(frozen=True, eq=False)
class Subject:
    """What the proof is about: the tables of a model, and how each row's columns are split."""

    weights_sha256: str
    features: Features
    exact: Features
    """The same in float64."""
    spaces: list[RowSpace]

    @cached_property
    def name(self) -> str:
        """By which a process knows again what it works on: the model and the trees."""
        known = hashlib.sha256(f"{self.weights_sha256} {self.features.config}".encode())
        for space in self.spaces:
            for tree in space.trees:
                for part in (tree.order, tree.start, tree.stop):
                    known.update(part.astype(np.int64).tobytes())
        return known.hexdigest()


@dataclass(frozen=True, eq=False)
class Task:
    """Boxes of one row and query that are to be decided."""

    row: int
    query: int
    boxes: Int[Array, "box column"]
    beaten: Int[Array, " box"]
    small: float
    most: int

    def done_by(self, worker: Worker) -> Fragment:
        """Decide them as far as the task goes."""
        return explore(
            worker.tables(self.row, self.query),
            partial(worker.exact_tables, self.row, self.query),
            self.boxes,
            self.beaten,
            small=self.small,
            most=self.most,
        )


@runtime_checkable
class Work(Protocol):
    """A piece of work that depends on nothing but itself and its subject."""

    def done_by(self, worker: Worker) -> Any: ...


@runtime_checkable
class Pending(Protocol):
    """A result that is on its way: a future of `concurrent.futures`, or one of dask's."""

    def result(self) -> Any: ...


Submit = Callable[[Work], Pending]
"""Hands a piece of work to whoever works."""


class Worker:
    """One process at work on one subject."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.tables = lru_cache(ROWS_KEPT)(partial(self._tables, subject.features))
        self.exact_tables = lru_cache(1)(partial(self._tables, subject.exact))

    def _tables(self, features: Features, row: int, query: int) -> RowTables:
        return RowTables.of(features, self.subject.spaces[row], query)

    def do(self, work: Work) -> Any:
        """Do one piece of work."""
        with torch.inference_mode():
            return work.done_by(self)


_at_work: dict[str, Worker] = {}
"""The worker of this process by the name of its subject; set when the process starts on it."""


def _start(subject: Subject) -> None:
    torch.set_num_threads(1)
    _at_work.clear()
    _at_work[subject.name] = Worker(subject)


def _start_here(subject: Subject) -> None:
    be_a_helper()
    _start(subject)


def _do(name: str, work: Work) -> Any:
    return _at_work[name].do(work)


def _do_on_cluster(subject: Subject, work: Work) -> Any:
    """On a cluster a process may have worked for somebody else before."""
    if subject.name not in _at_work:
        _start(subject)
    return _do(subject.name, work)


@contextmanager
def at_work(subject: Subject, workers: int, cluster: str | None) -> Iterator[tuple[Submit, int]]:
    """Whoever works: how to hand them work, and how many there are."""
    if cluster is not None:
        with _on_cluster(subject, cluster) as (submit, count):
            yield submit, count
    elif workers == 1:
        yield _alone(subject), 1
    else:
        context = get_context("spawn")
        with ProcessPoolExecutor(workers, context, _start_here, (subject,)) as pool:
            try:
                yield (lambda work: pool.submit(_do, subject.name, work)), workers
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


def in_order(submit: Submit, pieces: Iterable[Work], ahead: int) -> Iterator[Any]:
    """The results of pieces of work, in their order, with a few of them under way."""
    waiting: deque[Pending] = deque()
    for piece in pieces:
        waiting.append(submit(piece))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    for pending in waiting:
        yield pending.result()


def _alone(subject: Subject) -> Submit:
    worker = Worker(subject)

    def submit(work: Work) -> Pending:
        done: Future[Any] = Future()
        done.set_result(worker.do(work))
        return done

    return submit


@contextmanager
def _on_cluster(subject: Subject, address: str) -> Iterator[tuple[Submit, int]]:
    with dask_client(address) as client:
        there = client.scatter(subject, broadcast=True)

        def submit(work: Work) -> Pending:
            pending: Pending = client.submit(_do_on_cluster, there, work, pure=False)
            return pending

        yield submit, sum(client.nthreads().values())
