"""What a proof is about: all that a worker needs to decide boxes, or to check them.

In: a model, and the trees of an earlier certificate if there is one. Out: `ProofSubject`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any

import torch

from carryscope.certificate.boxes import Row, RowSpace
from carryscope.certificate.features import Features
from carryscope.certificate.proof import RowLog
from carryscope.certificate.row_tables import RowTables, grow_space
from carryscope.core.errors import CallError
from carryscope.core.workers import Workers, cluster_workers, local_workers, this_process
from carryscope.model.transformer import Transformer

ROWS_KEPT = 3
"""Row tables that a process keeps: a few hundred megabytes each for ten digits."""


class ProofSubject:
    """The tables of a model, and how each row's columns are split.

    The tables of a (row, query) are built when needed, and the last few are kept.
    """

    def __init__(self, features: Features, exact: Features, spaces: list[RowSpace]) -> None:
        self.features = features
        self.exact = exact
        """The same in float64."""
        self.spaces = spaces
        self.tables = lru_cache(ROWS_KEPT)(
            lambda row, query: RowTables.of(features, spaces[row], query)
        )
        self.exact_tables = lru_cache(1)(lambda row, query: RowTables.of(exact, spaces[row], query))

    @classmethod
    def of(cls, model: Transformer, log: list[RowLog] | None = None) -> ProofSubject:
        """The subject of a model; trees are grown, or taken from the log of a certificate."""
        features = Features.of(model)
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
        return cls(features, Features.of(model, torch.float64), spaces)

    def workers(self, count: int, cluster: str | None) -> AbstractContextManager[Workers]:
        """Those who work on it: this process, local processes, or a dask cluster."""
        if cluster is not None:
            return cluster_workers(cluster, shared=self)
        if count == 1:
            return nullcontext(this_process(shared=self))
        return local_workers(count, shared=self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _for_a_worker, (self.features, self.exact, self.spaces)


def _for_a_worker(features: Features, exact: Features, spaces: list[RowSpace]) -> ProofSubject:
    """The subject in a process of its own: one of many on its machine."""
    torch.set_num_threads(1)
    return ProofSubject(features, exact, spaces)
