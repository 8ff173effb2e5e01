"""What a proof is about: all that a worker needs to decide boxes, or to check them.

In: a model, and the trees of an earlier certificate if there is one. Out: `ProofSubject`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

from carryscope.certificate.boxes import RowSpace
from carryscope.certificate.features import Features
from carryscope.certificate.growing import grow_space
from carryscope.certificate.proof import About, Engine, RowLog
from carryscope.certificate.row_tables import row_tables
from carryscope.certificate.rows import Row, SignAndQuery
from carryscope.core.errors import CallError
from carryscope.core.workers import Workers, cluster_workers, local_workers, this_process
from carryscope.model.transformer import Transformer

DECIDERS: dict[Engine, tuple[str, str]] = {
    "numba": ("compiled_search", "CompiledDecider"),
    "torch": ("reference_search", "TorchDecider"),
}
"""What decides boxes with each engine: a module, imported when it is needed, and its class."""

ROWS_KEPT = 4
"""Tables of a (row, query) that a process keeps: at most about 200 MB each."""


def fastest_engine() -> Engine:
    """The engine to search with: numba, if it is installed."""
    return "numba" if find_spec("numba") else "torch"


def other_engine(found_with: Sequence[Engine]) -> Engine:
    """The engine that did not search, if it is installed: it checks what the other found."""
    return "torch" if "torch" not in found_with else fastest_engine()


class ProofSubject:
    """The tables of a model, how each row's columns are split, and what computes the bounds."""

    def __init__(self, features: Features, spaces: list[RowSpace], engine: Engine) -> None:
        self.features = features
        self.spaces = spaces
        self.name = engine
        self.decider = lru_cache(ROWS_KEPT)(self._decider)
        """What decides boxes of a row and reading."""

    def _decider(self, row: int, reading: SignAndQuery) -> Any:
        space = self.spaces[row].of_sign(reading.negative)
        module, name = DECIDERS[self.name]
        decider = getattr(import_module(f"carryscope.certificate.{module}"), name)
        return decider(row_tables(self.features, space, reading.query), space)

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
        layout = model.config.layout
        rows = [
            Row(layout, i, operation)
            for operation in layout.operation.each_part
            for i in range(layout.answer_length)
        ]
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
