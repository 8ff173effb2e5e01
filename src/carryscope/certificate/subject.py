"""What a proof is about: all that a worker needs to decide boxes, or to check them.

In: a model, and the trees of an earlier certificate if there is one. Out: `ProofSubject`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Int

from carryscope.certificate.boxes import Row, RowSpace
from carryscope.certificate.features import Features
from carryscope.certificate.proof import RowLog
from carryscope.certificate.rounding import About
from carryscope.certificate.row_tables import RowTables, grow_space, row_tables, set_numbers
from carryscope.core.errors import CallError
from carryscope.core.workers import Workers, cluster_workers, local_workers, this_process
from carryscope.model.transformer import Transformer
from carryscope.task.operation import Array

Engine = Literal["numba", "torch"]
"""With what bounds are computed. Each has a module of its own."""

MODULES: dict[Engine, str] = {"numba": "compiled", "torch": "reference"}

FEW = 8
"""For fewer boxes it is not worth it to leave out the neurons that are inactive in all of them."""


def fastest_engine() -> Engine:
    """The engine to search with: numba, if it is installed."""
    return "numba" if find_spec("numba") else "torch"


class ProofSubject:
    """The tables of a model, how each row's columns are split, and what computes the bounds."""

    def __init__(self, features: Features, spaces: list[RowSpace], engine: Engine) -> None:
        self.features = features
        self.spaces = spaces
        self.name = engine
        self.tables = lru_cache(None)(lambda row, query: row_tables(features, spaces[row], query))
        """Of a row and a query. They are small: large tables are those of the features."""

    @property
    def engine(self) -> ModuleType:
        """The module with `judge` and `active`."""
        return import_module(f"carryscope.certificate.{MODULES[self.name]}")

    @classmethod
    def of(
        cls,
        model: Transformer,
        log: list[RowLog] | None = None,
        *,
        about: About,
        engine: Engine,
    ) -> ProofSubject:
        """The subject of a model; trees are grown, or taken from the log of a certificate."""
        features = Features.of(model, about)
        rows = [Row(model.config.layout, i) for i in range(model.config.layout.answer_length)]
        if log is None:
            spaces = [grow_space(features, row) for row in rows]
        elif [len(one.trees) for one in log] != [model.config.digits] * len(rows):
            raise CallError("The log must have a tree for every column of every row.")
        else:
            spaces = [
                RowSpace(row, [tree.tree() for tree in one.trees])
                for row, one in zip(rows, log, strict=True)
            ]
        return cls(features, spaces, engine)

    def tables_for(self, row: int, query: int, boxes: Int[Array, "box column"]) -> RowTables:
        """Tables for some boxes of a row and query, and all boxes in them."""
        tables, space = self.tables(row, query), self.spaces[row]
        if len(boxes) < FEW:
            return tables
        hull = space.hull(boxes)
        digits = np.bitwise_or.reduce(space.digits(boxes), axis=0, keepdims=True)
        numbers = set_numbers(space, hull, digits)[0]
        active = self.engine.active(tables, numbers)
        return tables.only(np.flatnonzero(active), tables.sets.tokens(numbers))

    def workers(self, count: int, cluster: str | None) -> AbstractContextManager[Workers]:
        """Those who work on it: this process, local processes, or a dask cluster."""
        if cluster is not None:
            return cluster_workers(cluster, shared=self)
        if count == 1:
            return nullcontext(this_process(shared=self))
        return local_workers(count, shared=self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _for_a_worker, (self.features, self.spaces, self.name)


def _for_a_worker(features: Features, spaces: list[RowSpace], engine: Engine) -> ProofSubject:
    """The subject in a process of its own: one of many on its machine."""
    torch.set_num_threads(1)
    return ProofSubject(features, spaces, engine)
