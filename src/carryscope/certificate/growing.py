"""Grow the trees by which a row is searched: pairs are alike if they move its neurons alike.

In: `Features` and a row. Out: its `RowSpace`. How a tree is grown matters for speed only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from carryscope.certificate.boxes import RowSpace
from carryscope.certificate.features import Features
from carryscope.certificate.row_tables import scores_of, weights_of
from carryscope.certificate.rows import Row
from carryscope.certificate.trees import grow_tree, levels_of
from carryscope.task.operation import BASE, PAIRS, Array

SAMPLED_QUERIES = (0, 3, 6, 9)
"""The query tokens by which trees are grown; which ones is a matter of speed only."""


def grow_space(features: Features, row: Row) -> RowSpace:
    """The trees by which a row is searched: pairs are alike if they move its neurons alike."""
    columns = range(row.layout.digits)
    likeness = [np.zeros((PAIRS, PAIRS)) for _ in columns]
    d_mlp = features.config.d_mlp
    seen = slice(None, d_mlp) if d_mlp else slice(None)
    importance = np.linalg.norm(features.to_tokens, axis=0) if d_mlp else 1.0
    for query in _queries(row):
        for c, moved in enumerate(_moves(features, row, query)):
            felt = moved[:, seen] * importance
            likeness[c] += felt @ felt.T
    kinds = {row.digit: "own", row.query_digit: "query"}
    levels = [levels_of(row.operation, kinds.get(c, "other")) for c in columns]
    return RowSpace(row, [grow_tree(*column) for column in zip(likeness, levels, strict=True)])


def _queries(row: Row) -> Sequence[int]:
    """A few of the tokens a row may read last."""
    if row.query_digit is None:
        return [row.query_symbol]
    return (0, 1) if row.query_digit == row.layout.digits else SAMPLED_QUERIES


def _moves(features: Features, row: Row, query: int) -> list[Float[Array, "pair feature"]]:
    """How far each pair of each column moves the features, everything else being average."""
    weight, written = weights_of(scores_of(features, row, query)), features.written
    where, tokens = map(list, zip(*row.unchanging(query), strict=True))
    fixed = weight[where, tokens]
    columns = [_both_digits(weight, written, row, c) for c in range(row.layout.digits)]
    total = fixed.sum(0) + sum(weights.mean(0) for weights, _ in columns)
    mean = np.einsum("kh,khf->hf", fixed, written[where, tokens])
    mean = (mean + sum(products.mean(0) for _, products in columns)) / total[:, None]
    return [
        np.einsum("phf,h->pf", products - weights[..., None] * mean, 1 / total)
        for weights, products in columns
    ]


def _both_digits(
    weight: Array, written: Array, row: Row, column: int
) -> tuple[Float[Array, "pair head"], Float[Array, "pair head feature"]]:
    """The weight of every digit pair, and the sum of what is written, by weight."""
    one, other = ((weight[p, :BASE], written[p, :BASE]) for p in row.positions_of(column))
    weights = one[0][:, None] + other[0]
    products = (one[0][..., None] * one[1])[:, None] + other[0][..., None] * other[1]
    return weights.reshape(PAIRS, -1), products.reshape(PAIRS, *products.shape[2:])
