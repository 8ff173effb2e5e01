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

from carryscope.certificate.boxes import Row, RowSpace
from carryscope.certificate.features import TINY, Features
from carryscope.certificate.trees import LEVELS, ColumnTree, grow_tree
from carryscope.core.errors import WorkError
from carryscope.task.operation import BASE, PAIRS, Array

SAMPLED_QUERIES = (0, 3, 6, 9)
"""The query tokens by which trees are grown; which ones is a matter of speed only."""

LEAST_WEIGHT = 1e-200
"""The tokens that never change must weigh this much, so that what underflows is negligible."""


@dataclass(frozen=True, eq=False)
class AttentionWeights:
    """The attention weights of every (position, token), for one row and query."""

    weight: Float[Tensor, "position token head"]
    """exp(score), in float64; the largest is 1, since only ratios count."""
    dtype: torch.dtype
    """In which values, and parts of a whole, are worked with."""

    @classmethod
    def of(cls, features: Features, row: Row, query: int) -> AttentionWeights:
        """The weights of a row and query."""
        asking, keys = features.query[row.position, query], features.key[: row.position + 1]
        scores = torch.einsum("he,pthe->pth", asking, keys)
        return cls((scores - scores.amax((0, 1))).exp(), features.dtype)

    def of_pairs(self, row: Row, column: int) -> tuple[Tensor, Tensor]:
        """The weight of every digit pair of a column, and the part of its first digit in it."""
        first, second = row.positions_of(column)
        own = self.weight[first, :BASE, None].expand(-1, BASE, -1).flatten(0, 1)
        weight = own + self.weight[second, None, :BASE].expand(BASE, -1, -1).flatten(0, 1)
        return weight, (own / weight).to(self.dtype)

    def of_fixed(self, row: Row, query: int) -> tuple[list[int], list[int], Tensor]:
        """Positions and tokens that never change, the query among them, and their weights."""
        fixed = dict([*row.fixed, (row.position, query)])
        where, tokens = list(fixed), list(fixed.values())
        return where, tokens, self.weight[where, tokens]


def pair_values(
    first: Float[Tensor, "*batch token head some"],
    second: Float[Tensor, "*batch token head some"],
    part: Float[Tensor, "pair head"],
) -> Float[Tensor, "*batch pair head some"]:
    """What a head makes of a column: the mean of its two digits, by their weights."""
    part = part.view(BASE, BASE, -1, 1)
    one, other = first[..., :, None, :, :], second[..., None, :, :, :]
    return (other + part * (one - other)).flatten(-4, -3)


@dataclass(frozen=True, eq=False)
class Slot:
    """One column or one earlier answer token: its elements, and its sets of elements."""

    weight: Float[Tensor, "element head"]
    part: Float[Tensor, "element head"] | None
    """For a column, whose elements are pairs: the part of the first digit in the weight."""
    tokens: int
    """Tokens at each of its positions."""
    held: Int[Tensor, "set most"]
    """The elements of each set; after the last the first is repeated."""
    sizes: Int[Tensor, " set"]
    """How many there are in each set."""
    least: Float[Tensor, "set head"]
    most: Float[Tensor, "set head"]
    """The range of the weight in each set."""
    centre: Float[Tensor, "head set feature"]
    radius: Float[Tensor, "head set feature"]
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
        part: Float[Tensor, "element head"] | None,
        sets: Sequence[Int[Array, " _"]],
        parts: Sequence[Float[Tensor, "_ head feature"]],
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
        most = max(len(held) for held in sets)
        padded = [np.concatenate([held, np.full(most - len(held), held[0])]) for held in sets]
        return cls(
            weight=weight,
            part=part,
            tokens=len(weight) if part is None else BASE,
            held=torch.from_numpy(np.stack(padded)),
            sizes=torch.tensor([len(held) for held in sets]),
            least=torch.stack([weight[held].amin(0) for held in sets]),
            most=torch.stack([weight[held].amax(0) for held in sets]),
            centre=centre.transpose(0, 1).contiguous(),
            radius=radius.transpose(0, 1).contiguous(),
            spread=torch.where(single[:, None], 0.0, spread + TINY),
            length=middle.norm(dim=-1) + TINY,
            single=single,
        )


@dataclass(frozen=True, eq=False)
class RowTables:
    """All that bounding boxes of one row and query needs."""

    features: Features
    space: RowSpace
    query: int
    fixed_weight: Float[Tensor, " head"]
    fixed_part: Float[Tensor, "fixed head"]
    """The part of each token that never changes in their common weight."""
    fixed_value: Float[Tensor, "head feature"]
    """v of all of them."""
    stacked: Float[Tensor, "row feature"]
    """What is written: for every fixed token, then for every token of every slot; all heads of
    one before all heads of the next."""
    slots: list[Slot]
    """The columns, units first, then the answer tokens before the query."""
    sizes: Float[Tensor, "slot head feature"]
    """The largest absolute value of what is written for a token of each slot; last, for all
    tokens that never change, the mean of their absolute values."""

    @classmethod
    def of(cls, features: Features, space: RowSpace, query: int) -> RowTables:
        """The tables of a row and a query."""
        row, written = space.row, features.written
        with torch.inference_mode():
            attention = AttentionWeights.of(features, row, query)
            where, tokens, weights = attention.of_fixed(row, query)
            if not (weights.sum(0) > LEAST_WEIGHT).all():
                raise WorkError("The attention scores of this model lie too far apart to certify.")
            part = (weights / weights.sum(0)).to(features.dtype)
            slots, stacked, sizes = [], [written[where, tokens]], []
            for c, tree in enumerate(space.trees):
                slots.append(_column(features, attention, row, c, tree))
                stacked += [written[p, :BASE] for p in row.positions_of(c)]
                sizes.append(torch.stack(stacked[-2:]).abs().amax((0, 1)))
            for digit, position in row.earlier:
                slots.append(_answer(features, attention, digit, position))
                stacked.append(written[position, : slots[-1].tokens])
                sizes.append(stacked[-1].abs().amax(0))
            sizes.append((part[..., None] * stacked[0].abs()).sum(0))
            return cls(
                features=features,
                space=space,
                query=query,
                fixed_weight=weights.sum(0),
                fixed_part=part,
                fixed_value=(part[..., None] * stacked[0]).sum(0),
                stacked=torch.cat(stacked).flatten(0, 1),
                slots=slots,
                sizes=torch.stack(sizes),
            )

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


def _pairs(
    features: Features, attention: AttentionWeights, row: Row, column: int
) -> tuple[Float[Tensor, "pair head"], Float[Tensor, "pair head"], Float[Tensor, "pair head some"]]:
    """For every digit pair of a column: its weight, its first digit's part in it, and v."""
    weight, part = attention.of_pairs(row, column)
    first, second = (features.written[p, :BASE] for p in row.positions_of(column))
    return weight, part, pair_values(first, second, part)


def _column(
    features: Features, attention: AttentionWeights, row: Row, column: int, tree: ColumnTree
) -> Slot:
    weight, part, values = _pairs(features, attention, row, column)
    stretches = [slice(a, b) for a, b in zip(tree.start, tree.stop, strict=True)]
    sets, ordered = [tree.order[s] for s in stretches], values[tree.order]
    return Slot.of(features, weight, part, sets, [ordered[s] for s in stretches])


def _answer(features: Features, attention: AttentionWeights, digit: int, position: int) -> Slot:
    last = digit == features.config.digits
    sets, values = (_CARRY_SETS, 2) if last else (_DIGIT_SETS, BASE)
    written = features.written[position, :values]
    weight = attention.weight[position, :values]
    return Slot.of(features, weight, None, sets, [written[held] for held in sets])


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
    np.arange(BASE),
    *(np.array([i]) for i in range(BASE)),
    *(np.array([i, (i + 1) % BASE]) for i in range(BASE)),
]
_NUMBER_OF_CARRIES = _numbers(_CARRY_SETS, 2)
_NUMBER_OF_DIGITS = _numbers(_DIGIT_SETS, BASE)


def grow_space(features: Features, row: Row) -> RowSpace:
    """The trees by which a row is searched: pairs are alike if they move its neurons alike."""
    columns = range(row.layout.digits)
    likeness = [np.zeros((PAIRS, PAIRS)) for _ in columns]
    seen = slice(None, features.d_mlp) if features.d_mlp else features.tokens
    importance = features.to_tokens.norm(dim=0) if features.d_mlp else torch.ones(1)
    with torch.inference_mode():
        for query in _queries(row):
            attention = AttentionWeights.of(features, row, query)
            for c, moved in enumerate(_moves(features, attention, row, query)):
                felt = moved[:, seen] * importance
                likeness[c] += (felt @ felt.T).double().numpy()
    kinds = {row.digit: "own", row.query_digit: "query"}
    levels = [LEVELS[kinds.get(c, "other")] for c in columns]
    return RowSpace(row, [grow_tree(*column) for column in zip(likeness, levels, strict=True)])


def _queries(row: Row) -> Sequence[int]:
    """A few of the tokens a row may read last."""
    if row.query_digit is None:
        return [row.query_symbol]
    return (0, 1) if row.query_digit == row.layout.digits else SAMPLED_QUERIES


def _moves(
    features: Features, attention: AttentionWeights, row: Row, query: int
) -> list[Float[Tensor, "pair feature"]]:
    """How far each pair of each column moves the features, everything else being average."""
    where, tokens, fixed = attention.of_fixed(row, query)
    columns = [_pairs(features, attention, row, c) for c in range(row.layout.digits)]
    weights, values = [weight for weight, *_ in columns], [value for *_, value in columns]
    total = fixed.sum(0) + sum(weight.mean(0) for weight in weights)
    shares = [(weight / total).to(features.dtype)[..., None] for weight in weights]
    mean = ((fixed / total).to(features.dtype)[..., None] * features.written[where, tokens]).sum(0)
    mean = mean + sum((s * v).mean(0) for s, v in zip(shares, values, strict=True))
    return [(s * (v - mean)).sum(1) for s, v in zip(shares, values, strict=True)]
