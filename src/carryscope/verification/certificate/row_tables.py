"""What one row with one query token makes of every set of digit pairs.

In: `Features`, a row, a query token. Out: `RowTables`: per column, and per answer token before
the query, the attention weights and the features of what each head writes, for single
elements and as ranges over every set of a tree.

A head's output is sum_s W_s v_s / sum_s W_s over *slots* s: a column (both its digits), an
earlier answer token, and all tokens that never change. W is a sum of exp(score), v the
weighted mean of what is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from carryscope.task.questions import Array
from carryscope.verification.certificate.boxes import Row, RowSpace
from carryscope.verification.certificate.features import Features
from carryscope.verification.certificate.trees import ColumnTree, grow_tree

SAMPLED_QUERIES = (0, 3, 6, 9)
"""The query tokens by which trees are grown; which ones is a matter of speed only."""


@dataclass(frozen=True, eq=False)
class Weights:
    """exp(score) of every (position, token) for one row and query, and what is written times it."""

    weight: Float[Tensor, "position token head"]
    weighted: Float[Tensor, "position token head feature"]

    @classmethod
    def of(cls, features: Features, row: Row, query: int) -> Weights:
        """The weights; the largest is 1, since only ratios count."""
        upto = row.position + 1
        scores = torch.einsum(
            "he,pthe->pth", features.query[row.position, query], features.key[:upto]
        )
        weight = (scores - scores.amax((0, 1))).exp()
        return cls(weight, weight[..., None] * features.written[:upto])

    def of_pairs(self, row: Row, column: int) -> tuple[Tensor, Tensor]:
        """Weights (pair, head) and weighted features (pair, head, feature) of a column."""
        first, second = row.positions_of(column)
        return (
            (self.weight[first, :10, None] + self.weight[second, None, :10]).flatten(0, 1),
            (self.weighted[first, :10, None] + self.weighted[second, None, :10]).flatten(0, 1),
        )

    def of_fixed(self, row: Row, query: int) -> tuple[Tensor, Tensor]:
        """The same, summed over all tokens that never change; the query is one of them."""
        fixed = dict([*row.fixed, (row.position, query)])
        where, tokens = list(fixed), list(fixed.values())
        return self.weight[where, tokens].sum(0), self.weighted[where, tokens].sum(0)


@dataclass(frozen=True, eq=False)
class Slot:
    """One column or one earlier answer token: its elements, and its sets of elements."""

    weight: Float[Tensor, "element head"]
    positions: int
    """An element is one token at each of so many positions."""
    tokens: int
    """Tokens at all its positions together."""
    members: Bool[Tensor, "set element"]
    least: Float[Tensor, "set head"]
    most: Float[Tensor, "set head"]
    """The range of the weight in each set."""
    centre: Float[Tensor, "set head feature"]
    radius: Float[Tensor, "set head feature"]
    """v lies within `radius` of `centre`, feature by feature."""
    spread: Float[Tensor, "set head"]
    """v lies within `spread` of `centre` in the residual stream."""
    length: Float[Tensor, "set head"]
    """The length of `centre` in the residual stream."""
    single: Bool[Tensor, " set"]

    @classmethod
    def of(
        cls,
        features: Features,
        weight: Float[Tensor, "element head"],
        positions: int,
        sets: Sequence[Int[Array, " member"]],
        parts: Sequence[Float[Tensor, "member head feature"]],
    ) -> Slot:
        """The slot with these sets of elements, and v for the members of each set."""
        low = torch.stack([part.amin(0) for part in parts])
        high = torch.stack([part.amax(0) for part in parts])
        centre, stream = (low + high) / 2, features.stream
        single = torch.tensor([len(held) == 1 for held in sets])
        radius = torch.where(single[:, None, None], 0.0, high - centre)
        middle = centre[..., stream]
        away = [part[..., stream] - m for part, m in zip(parts, middle, strict=True)]
        spread = torch.stack([distance.norm(dim=-1).amax(0) for distance in away])
        members = torch.zeros(len(sets), len(weight), dtype=torch.bool)
        for number, held in enumerate(sets):
            members[number, held] = True
        return cls(
            weight=weight,
            positions=positions,
            tokens=10 * positions if positions > 1 else len(weight),
            members=members,
            least=torch.stack([weight[held].amin(0) for held in sets]),
            most=torch.stack([weight[held].amax(0) for held in sets]),
            centre=centre,
            radius=radius,
            spread=torch.where(single[:, None], 0.0, spread),
            length=middle.norm(dim=-1),
            single=single,
        )


@dataclass(frozen=True, eq=False)
class RowTables:
    """All that bounding boxes of one row and query needs."""

    features: Features
    space: RowSpace
    query: int
    fixed_weight: Float[Tensor, " head"]
    fixed_weighted: Float[Tensor, "head feature"]
    stacked: Float[Tensor, "row feature"]
    """Weight times what is written: for the fixed tokens together, then for every token of
    every slot; all heads of one before all heads of the next."""
    slots: list[Slot]
    """The columns, units first, then the answer tokens before the query."""

    @classmethod
    def of(cls, features: Features, space: RowSpace, query: int) -> RowTables:
        """The tables of a row and a query."""
        row = space.row
        with torch.inference_mode():
            weights = Weights.of(features, row, query)
            fixed_weight, fixed = weights.of_fixed(row, query)
            slots, tokens = [], [fixed[None]]
            for c, tree in enumerate(space.trees):
                slots.append(_column(features, weights, row, c, tree))
                tokens += [weights.weighted[p, :10] for p in row.positions_of(c)]
            for digit, position in row.earlier:
                slots.append(_answer(features, weights, row, digit, position))
                tokens.append(weights.weighted[position, : slots[-1].tokens])
            stacked = torch.cat(tokens).flatten(0, 1)
            return cls(features, space, query, fixed_weight, fixed, stacked, slots)

    def sets(
        self, boxes: Int[Array, "box column"], digits: Int[Array, "box digit"]
    ) -> Int[Tensor, "box slot"]:
        """The set of every slot in each box; `digits` as `RowSpace.digits` gives them."""
        numbers = [boxes]
        for digit, _ in self.space.row.earlier:
            last = digit == self.space.columns
            table = _NUMBER_OF_CARRIES if last else _NUMBER_OF_DIGITS
            numbers.append(table[digits[:, digit], None])
        return torch.from_numpy(np.concatenate(numbers, axis=1).astype(np.int64))


def _column(
    features: Features, weights: Weights, row: Row, column: int, tree: ColumnTree
) -> Slot:
    weight, weighted = weights.of_pairs(row, column)
    stretches = [slice(a, b) for a, b in zip(tree.start, tree.stop, strict=True)]
    ordered = (weighted / weight[..., None])[tree.order]
    sets, parts = [tree.order[s] for s in stretches], [ordered[s] for s in stretches]
    return Slot.of(features, weight, 2, sets, parts)


def _answer(features: Features, weights: Weights, row: Row, digit: int, position: int) -> Slot:
    last = digit == row.layout.digits
    sets, values = (_CARRY_SETS, 2) if last else (_DIGIT_SETS, 10)
    written = features.written[position, :values]
    parts = [written[held] for held in sets]
    return Slot.of(features, weights.weight[position, :values], 1, sets, parts)


def _numbers(sets: Sequence[Array], size: int) -> Array:
    """For every set as bits, the smallest of `sets` that holds it."""
    bits = [sum(1 << int(i) for i in held) for held in sets]
    smallest = np.empty(1 << size, dtype=np.int64)
    for wanted in range(1 << size):
        holding = [n for n, held in enumerate(bits) if wanted & ~held == 0]
        smallest[wanted] = min(holding, key=lambda n: (len(sets[n]), n))
    return smallest


_CARRY_SETS = [np.array([0, 1]), np.array([0]), np.array([1])]
_DIGIT_SETS = [
    np.arange(10),
    *(np.array([i]) for i in range(10)),
    *(np.array([i, (i + 1) % 10]) for i in range(10)),
]
_NUMBER_OF_CARRIES = _numbers(_CARRY_SETS, 2)
_NUMBER_OF_DIGITS = _numbers(_DIGIT_SETS, 10)


def grow_space(features: Features, row: Row) -> RowSpace:
    """The trees by which a row is searched: pairs are alike if they move its neurons alike."""
    importance = features.to_tokens.norm(dim=1) if features.d_mlp else None
    queries = _queries(row)
    columns = range(row.layout.digits)
    likeness = [np.zeros((100, 100)) for _ in columns]
    with torch.inference_mode():
        for query in queries:
            weights = Weights.of(features, row, query)
            for c, moved in enumerate(_moves(features, weights, row, query)):
                seen = moved[:, : features.d_mlp] * importance if importance is not None else moved
                likeness[c] += (seen @ seen.T).numpy()
    by_sum = {row.digit, row.query_digit}
    return RowSpace(row, [grow_tree(likeness[c], c in by_sum) for c in columns])


def _queries(row: Row) -> Sequence[int]:
    """A few of the tokens a row may read last."""
    if row.query_digit is None:
        return [row.layout.symbols.index("+" if row.index else "=")]
    return (0, 1) if row.query_digit == row.layout.digits else SAMPLED_QUERIES


def _moves(
    features: Features, weights: Weights, row: Row, query: int
) -> list[Float[Tensor, "pair feature"]]:
    """How far each pair of each column moves the features, everything else being average."""
    pairs = [weights.of_pairs(row, c) for c in range(row.layout.digits)]
    weight, weighted = weights.of_fixed(row, query)
    for of_pairs, times_features in pairs:
        weight = weight + of_pairs.mean(0)
        weighted = weighted + times_features.mean(0)
    mean = weighted / weight[:, None]
    return [
        ((times - own[..., None] * mean) / weight[:, None]).sum(1) for own, times in pairs
    ]
