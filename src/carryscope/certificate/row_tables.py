"""What one row with one query token makes of digits, and of sets of digit pairs.

In: `Features`, a row, a query token. Out: `RowTables`, plain arrays that both implementations of
the bound read.

A head's output is sum_s W_s v_s / sum_s W_s over *slots* s: a column (both its digits), an
earlier answer token, and all tokens that never change. W is a sum of exp(score), v the
weighted mean of what is written. An *element* of a slot is a digit pair, or a digit.

Tokens are numbered through all positions: token t at position p is p * vocabulary + t. An answer
digit is a pair whose second token nobody reads: its weight is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from carryscope.certificate.boxes import RowSpace
from carryscope.certificate.features import Features
from carryscope.certificate.rounding import length
from carryscope.certificate.rows import Row
from carryscope.core.errors import WorkError
from carryscope.model.transformer import LAYER_NORM_EPSILON
from carryscope.task.operation import BASE, Array

LEAST_WEIGHT = 1e-200
"""The tokens that never change must weigh this much, so that what underflows is negligible."""

NO_WEIGHT = 1e-250
"""No token weighs less: then every weight can be divided by."""

DEMANDED = 1e-3
"""The lead in logits that is demanded rather than 0, besides what rounding may cost."""


LARGE = 30
"""Sets of more elements are bounded as a whole: faster, and a little less sharp."""


class Sets(NamedTuple):
    """The sets of elements of all slots, one after the other."""

    first: Int[Array, " element"]
    second: Int[Array, " element"]
    """The two tokens of each element."""
    start: Int[Array, " set_plus_1"]
    """The elements of set k are those from start[k] to start[k + 1]."""
    begin: Int[Array, " slot"]
    """The number of the first set of each slot."""

    def tokens(self, numbers: Int[Array, " slot"]) -> Int[Array, " token"]:
        """All tokens of a set of each slot."""
        at = self.begin + numbers
        spans = zip(self.start[at], self.start[at + 1], strict=True)
        elements = np.concatenate([np.arange(*span) for span in spans])
        return np.union1d(self.first[elements], self.second[elements])


class RowTables(NamedTuple):
    """All that bounding boxes of one row and query needs. Features: neurons, then tokens."""

    sets: Sets
    weight: Float[Array, "token head"]
    """exp(score); the largest is 1, since only ratios count."""
    fixed_weight: Float[Array, " head"]
    """Of all tokens that never change, the query among them."""
    fixed: Int[Array, " fixed"]
    """Those tokens."""
    written: Float[Array, "token head feature"]
    stream: Float[Array, "token head coordinate"]
    fixed_written: Float[Array, "head feature"]
    fixed_stream: Float[Array, "head coordinate"]
    embedded: Float[Array, " feature"]
    embedded_stream: Float[Array, " coordinate"]
    beta: Float[Array, " feature"]
    """0 for tokens."""
    into: Float[Array, "neuron coordinate"]
    to_tokens: Float[Array, "vocabulary neuron"]
    token_into: Float[Array, "vocabulary coordinate"]
    to_stream: Float[Array, "neuron d_model"]
    basis: Float[Array, "coordinate d_model"]
    out_norm: float
    out_bias: Float[Array, " d_model"]
    bias_tokens: Float[Array, " vocabulary"]
    offset: Float[Array, " vocabulary"]
    epsilon: float
    demanded: float
    large: int
    """Sets with more elements are bounded as a whole, head by head."""
    on_into: Float[Array, "vocabulary coordinate"]
    on_beta: Float[Array, " vocabulary"]
    """What neurons that are on throughout add up to, and are left out of the others for."""
    on_noise: Float[Array, " vocabulary"]
    on_noise_per_scale: Float[Array, " vocabulary"]
    """Rounding of those neurons: the first, and sigma times the second; and of what a token reads
    outside the coordinates."""
    on_active: int
    on_squares: float
    """How many they are, and the sum of their squares at most."""
    astray: Float[Array, " head"]
    """How much of each head's attention rounding may send elsewhere."""
    ball: float
    """How far rounding may move the stream otherwise."""
    wander: float
    """How far rounding may move the stream in all."""
    blur: Float[Array, " feature"]
    """How far that moves each feature, through sigma too, and rounding of the feature itself."""
    noise: Float[Array, " neuron"]
    noise_per_scale: Float[Array, " neuron"]
    """Rounding of a neuron's input alone: the first, and sigma times the second."""
    after_neurons: float
    after_scale: float
    after_terms: int
    token_noise: Float[Array, " vocabulary"]
    token_lengths: Float[Array, " vocabulary"]
    """See `Errors`."""


def row_tables(features: Features, space: RowSpace, query: int, *, large: int = LARGE) -> RowTables:
    """The tables of a row and a query. Large ones are those of the features, not copied."""
    f, row, errors = features, space.row, features.errors
    tokens = f.config.context * f.config.vocabulary
    scores = scores_of(f, row, query)
    weight = np.zeros((tokens, f.config.heads))
    weight[: len(scores) * f.config.vocabulary] = weights_of(scores).reshape(-1, f.config.heads)
    fixed = np.array([p * f.config.vocabulary + t for p, t in row.unchanging(query)])
    if not (weight[fixed].sum(0) > LEAST_WEIGHT).all():
        raise WorkError("The attention scores of this model lie too far apart to certify.")
    written, stream = (table.reshape(tokens, *table.shape[2:]) for table in (f.written, f.stream))
    share = weight[fixed] / weight[fixed].sum(0)
    sets = element_sets(space)
    read = np.union1d(np.concatenate([sets.first, sets.second[weight[sets.second, 0] > 0]]), fixed)
    astray = errors.shares(row.position, query, scores)
    centre = stream[read].mean(0)
    moved = float((astray * length(stream[read] - centre).max(0)).sum())
    swing = np.einsum("h,hf->f", astray / 2, np.ptp(written[read], axis=0))
    wander = errors.stream + moved
    beta = np.concatenate([f.beta, np.zeros(f.config.vocabulary)])
    inside = length(np.concatenate([f.into, f.token_into]))
    unseen, neurons = f.outside * errors.stream, len(f.beta)
    blur = swing + inside * errors.stream + unseen
    blur += np.abs(beta) * wander / math.sqrt(f.config.d_model)
    blur[:neurons] += errors.neurons
    return RowTables(
        sets=sets,
        weight=weight,
        fixed_weight=weight[fixed].sum(0),
        fixed=fixed,
        written=written,
        stream=stream,
        fixed_written=np.einsum("th,thf->hf", share, written[fixed]),
        fixed_stream=np.einsum("th,thk->hk", share, stream[fixed]),
        embedded=f.embedded[row.position, query],
        embedded_stream=f.embedded_stream[row.position, query],
        beta=beta,
        into=f.into,
        to_tokens=f.to_tokens,
        token_into=f.token_into,
        to_stream=f.to_stream,
        basis=f.basis,
        out_norm=f.out_norm,
        out_bias=f.out_bias,
        bias_tokens=f.bias_tokens,
        offset=f.offset,
        epsilon=LAYER_NORM_EPSILON,
        demanded=DEMANDED,
        large=large,
        on_into=np.zeros_like(f.token_into),
        on_beta=np.zeros(f.config.vocabulary),
        on_noise=np.zeros(f.config.vocabulary),
        on_noise_per_scale=unseen[neurons:],
        on_active=0,
        on_squares=0.0,
        astray=astray,
        ball=errors.stream,
        wander=wander,
        blur=blur,
        noise=errors.neurons + unseen[:neurons],
        noise_per_scale=errors.neurons_per_scale,
        after_neurons=errors.after_neurons,
        after_scale=errors.after_scale,
        after_terms=errors.terms,
        token_noise=errors.tokens,
        token_lengths=errors.token_lengths,
    )


def scores_of(features: Features, row: Row, query: int) -> Float[Array, "key token head"]:
    """The attention score of every (position, token)."""
    asking, keys = features.query[row.position, query], features.key[: row.position + 1]
    return np.asarray(np.einsum("he,kthe->kth", asking, keys))


def weights_of(scores: Float[Array, "key token head"]) -> Float[Array, "key token head"]:
    """exp(score), the largest being 1."""
    return np.maximum(np.exp(scores - scores.max((0, 1))), NO_WEIGHT)


def element_sets(space: RowSpace) -> Sets:
    """The sets of a row's columns, units first, then of the answer tokens before the query."""
    layout = space.row.layout
    tokens = len(layout.symbols)
    nobody = (layout.context - 1) * tokens  # no row reads the last position
    held = []
    for c, tree in enumerate(space.trees):
        one, other = (tokens * position for position in space.row.positions_of(c))
        stretches = [tree.order[a:b] for a, b in zip(tree.start, tree.stop, strict=True)]
        held.append([(one + pairs // BASE, other + pairs % BASE) for pairs in stretches])
    for digit, position in space.row.earlier:
        one = tokens * position
        sets = _CARRY_SETS if digit == space.columns else _DIGIT_SETS
        held.append([(one + digits, np.full(len(digits), nobody)) for digits in sets])
    flat = [elements for sets in held for elements in sets]
    first, second = (np.concatenate([elements[k] for elements in flat]) for k in range(2))
    return Sets(
        first=first,
        second=second,
        start=np.cumsum([0, *(len(elements[0]) for elements in flat)]),
        begin=np.cumsum([0, *(len(sets) for sets in held)])[:-1],
    )


def set_numbers(
    space: RowSpace, boxes: Int[Array, "box column"], digits: Int[Array, "box digit"]
) -> Int[Array, "box slot"]:
    """The set of every slot in each box; `digits` as `RowSpace.digits` gives them."""
    numbers = [boxes]
    for digit, _ in space.row.earlier:
        table = NUMBER_OF_CARRIES if digit == space.columns else NUMBER_OF_DIGITS
        numbers.append(table[digits[:, digit], None])
    return np.concatenate(numbers, axis=1).astype(np.int64)


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
NUMBER_OF_CARRIES = _numbers(_CARRY_SETS, 2)
NUMBER_OF_DIGITS = _numbers(_DIGIT_SETS, BASE)
