"""A one-layer adder whose weights are written down, not trained: its circuit is known.

Algorithm 1 is ordinary addition that starts two columns below each answer digit. With the
raw sums S of its three columns, T = 100 S_k + 10 S_(k-1) + S_(k-2), and A_k is the number of
hundreds in T, modulo 10. For 445+555 the raw sums are S2 S1 S0 = 9 9 10:

    A2   T = 900 + 90 + 10 = 1000   ten hundreds, so 0: the carry of column 0 arrives
    A3   T =   0 + 90 +  9 =   99   no hundreds, so 0: column 0 is out of reach (the truth is 1)

Any other reach is the same with T = 10^reach S_k + .. + S_(k-reach). float32 tells T from
T + 1 with room to spare up to reach 3 (MAX_REACH).

- The residual stream has a dim per token, per position, per head and per digit. Its last dim
  holds minus the sum of all others: means are 0, so a LayerNorm only divides by its scale.
- Every embedding is a token's dim plus a position's, so all have one scale; ln1 undoes it.
- The row that predicts A_k asks, in head h, for column k - offsets[h]. D and D' of that column
  answer, half each, with their digits; "=" answers, with 0, for a column that does not exist.
  The head writes twice what it read, S, into its own dim.
- The MLP has a step for each u in 0..19, a pair of neurons whose difference is 1 where T has u
  hundreds and 0 below: relu(T - 100u + 1) - relu(T - 100u). Step u turns digit u mod 10 on
  and the digit before it off. The constants are read from the position dims (b_in is 0), so
  the scale of ln2 divides all of it alike.
- W_out is so large that the digit is nearly all the last LayerNorm sees: it undoes the scale
  of ln2, and the logit is close to LOGIT for the chosen token and to 0 for all others.
- In the signed format the row of "=" is no digit's row. Its heads read nothing, its constants
  are 0, so no digit is on, and the unembedding turns the token "=" into "+".
"""

import math
from collections.abc import Sequence
from itertools import count, islice

import torch

from carryscope.model.config import ModelConfig
from carryscope.model.transformer import LAYER_NORM_EPSILON, Transformer
from carryscope.task.tokens import Format, FormatName

MAX_REACH = 3
"""At 3 rounding moves logits by up to 0.4 of their 20, at 4 by 5, at 5 some digits are wrong."""

SCORE = 50.0
"""Attention score of what a head asks for; all else has 0, hence a share below 1e-20."""

GAIN = 1e4
"""How large the MLP writes a digit, but for the scale of ln2; heads write at most 18 each."""

LOGIT = 20.0
"""Logit of the chosen token."""

STEPS = 20
"""A raw sum with a carry is at most 19, so u is in 0..19."""


class Dims:
    """What each dim of the residual stream holds; what is left before the last is padding."""

    def __init__(self, layout: Format, heads: int) -> None:
        free = count()
        self.token = list(islice(free, layout.vocabulary))
        self.position = list(islice(free, layout.context))
        self.sum = list(islice(free, heads))
        self.digit = list(islice(free, 10))
        self.used = next(free)


def built_adder(
    digits: int = 5,
    *,
    format: FormatName = "plain",  # noqa: A002 - as in ModelConfig
    reach: int = 2,
    offsets: Sequence[int] | None = None,
    without: Sequence[int] = (),
) -> Transformer:
    """An adder that equals `look_ahead_sum(questions, reach=reach)`; reach 2 is Algorithm 1.

    Head h reads the column `offsets[h]` below its answer digit (0 is the digit's own); the
    default is 0, 1, .. reach. Heads whose offset is in `without` write nothing.
    """
    offsets = tuple(range(reach + 1)) if offsets is None else tuple(offsets)
    _check(reach, offsets, without)
    layout, heads = Format(digits, format), reach + 1
    dims = Dims(layout, heads)
    d_head = max(digits + 1, math.ceil((dims.used + 1) / heads))
    model = Transformer(
        ModelConfig(
            digits=digits, format=format, heads=heads, d_model=heads * d_head, d_mlp=2 * STEPS
        )
    )
    with torch.no_grad():
        _write_embeddings(model, dims)
        for head, offset in enumerate(offsets):
            _write_head(model, dims, head, offset, removed=offset in without)
        _write_mlp(model, dims, offsets)
        _balance(model)
        _write_unembedding(model, dims)
    return model


def _check(reach: int, offsets: Sequence[int], without: Sequence[int]) -> None:
    if not 0 <= reach <= MAX_REACH:
        raise ValueError(f"reach must be between 0 and {MAX_REACH}. Got {reach}.")
    if sorted(offsets) != list(range(reach + 1)):
        raise ValueError(f"offsets must be 0 .. {reach} in some order. Got {offsets}.")
    if not set(without) <= set(offsets):
        raise ValueError(f"without must name some of the offsets {offsets}. Got {without}.")


def _digit_rows(layout: Format) -> list[int]:
    """The row that predicts A_k, for k = 0, 1, .. n."""
    return [layout.position_names.index(f"A{k}") - 1 for k in range(layout.digits + 1)]


def _embedding_scale(model: Transformer) -> float:
    """LayerNorm's scale of every embedding: two ones, and a -2 that balances them."""
    return math.sqrt(6 / model.config.d_model + LAYER_NORM_EPSILON)


def _write_embeddings(model: Transformer, dims: Dims) -> None:
    model.embed.W_E[:, dims.token] = torch.eye(len(dims.token))
    model.pos_embed.W_pos[:, dims.position] = torch.eye(len(dims.position))
    model.blocks[0].ln1.w[:] = _embedding_scale(model)


def _write_head(model: Transformer, dims: Dims, head: int, offset: int, *, removed: bool) -> None:
    """Key dim c stands for column c, the one after the last column for "nothing there"."""
    attn, layout = model.blocks[0].attn, model.config.layout
    names, nothing = layout.position_names, layout.digits
    for column in range(layout.digits):
        for name in (f"D{column}", f"D'{column}"):
            attn.W_K[head, dims.position[names.index(name)], column] = 1
    attn.W_K[head, dims.position[names.index("=")], nothing] = 1

    asked = dict.fromkeys(layout.answer_rows, nothing)
    for k, row in enumerate(_digit_rows(layout)):
        if 0 <= k - offset < layout.digits:
            asked[row] = k - offset
    for row, column in asked.items():
        attn.W_Q[head, dims.position[row], column] = SCORE * math.sqrt(model.config.d_head)

    attn.W_V[head, dims.token[:10], 0] = torch.arange(10.0)
    attn.W_O[head, 0, dims.sum[head]] = 0 if removed else 2


def _write_mlp(model: Transformer, dims: Dims, offsets: Sequence[int]) -> None:
    """Step u: neuron 2u rises from T = 100u - 1 on, neuron 2u + 1 takes the rise back at 100u."""
    mlp = model.blocks[0].mlp
    unit = 10 ** max(offsets)
    for head, offset in enumerate(offsets):
        mlp.W_in[dims.sum[head]] = unit // 10**offset
    constants = [dims.position[row] for row in _digit_rows(model.config.layout)]
    for u in range(STEPS):
        for neuron, constant, written in (
            (2 * u, 1 - unit * u, GAIN),
            (2 * u + 1, -unit * u, -GAIN),
        ):
            mlp.W_in[constants, neuron] = constant
            mlp.W_out[neuron, dims.digit[u % 10]] = written
            if u:
                mlp.W_out[neuron, dims.digit[(u - 1) % 10]] = -written


def _balance(model: Transformer) -> None:
    """Whatever is written into the stream, write minus its sum into the last dim."""
    block = model.blocks[0]
    for W in (model.embed.W_E, model.pos_embed.W_pos, block.attn.W_O, block.mlp.W_out):
        W[..., -1] = -W.sum(-1)


def _write_unembedding(model: Transformer, dims: Dims) -> None:
    """Each weight is LOGIT times the scale that the last LayerNorm divides by.

    A digit that is on fills its own dim and, with the other sign, the last one. Where the row
    of "=" writes a sign, the stream holds nothing but its embedding.
    """
    W_U, layout = model.unembed.W_U, model.config.layout
    W_U[dims.digit, :10] = LOGIT * math.sqrt(2 / model.config.d_model) * torch.eye(10)
    if layout.signs:
        plus, equals = (layout.symbols.index(symbol) for symbol in "+=")
        W_U[dims.token[equals], plus] = LOGIT * _embedding_scale(model)
