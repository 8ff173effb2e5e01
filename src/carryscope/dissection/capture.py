"""The clean state of a batch of questions, at every place where a part can be exchanged.

In: a model and tokens. Out: `Capture`, one `LayerState` per layer and the answer logits.
Layer 0 comes from tables over (position, token). In the last layer only the answer rows are
computed. What each head adds to the residual stream is kept, so that to ablate or patch a
head is one subtraction and one addition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from carryscope.model.answer_path import Unwritten, logits_of, normalized
from carryscope.model.tables import FirstLayerTables
from carryscope.model.transformer import Block, Transformer


@dataclass(frozen=True, eq=False)
class LayerState:
    """One layer. Rows are counted from `first_row`; positions, which are read, from 0."""

    first_row: int
    written: Float[Tensor, "batch position head d_model"]
    """What a head adds to a row that attends to this position alone."""
    scores: Float[Tensor, "batch head row position"]
    """Attention scores, minus infinity where a position comes after its row."""
    heads: Float[Tensor, "batch row head d_model"]
    """What each head adds to the residual stream."""
    middle: Float[Tensor, "batch row d_model"]
    """The residual stream after attention."""
    mlp: Float[Tensor, "batch row d_model"]
    """What the MLP adds; zero in an attention-only model."""

    @property
    def after(self) -> Float[Tensor, "batch row d_model"]:
        """The residual stream after the block."""
        return self.middle + self.mlp


@dataclass(frozen=True, eq=False)
class Capture:
    """The clean state of a batch."""

    layers: list[LayerState]
    logits: Float[Tensor, "batch answer token"]

    def patterns(self) -> Float[Tensor, "batch layer head answer position"]:
        """The attention of every head at the answer rows."""
        answers = self.logits.shape[1]
        shares = [layer.scores[:, :, -answers:].softmax(-1) for layer in self.layers]
        return torch.stack(shares, dim=1)


def capture(
    model: Transformer, tables: FirstLayerTables, tokens: Int[Tensor, "batch position"]
) -> Capture:
    """The state of a batch without interventions."""
    rows, last = model.config.layout.answer_rows, model.config.layers - 1
    tokens = tokens[:, : rows.stop]
    states = [_first_layer(model, tables, tokens, first_row=0 if last else rows.start)]
    for layer in range(1, last + 1):
        first_row = rows.start if layer == last else 0
        states.append(_later_layer(block_of(model, layer), states[-1].after, first_row))
    return Capture(states, logits_of(model, states[-1].after))


def block_of(model: Transformer, layer: int) -> Block:
    """One block of the model."""
    block = model.blocks[layer]
    assert isinstance(block, Block)
    return block


def mlp_of(
    block: Block, middle: Float[Tensor, "*batch d_model"]
) -> Float[Tensor, "*batch d_model"]:
    """What the MLP adds to a residual stream."""
    if block.mlp is None:
        return torch.zeros_like(middle)
    hidden = hidden_of(block, middle)
    return torch.addmm(block.mlp.b_out, hidden.flatten(0, -2), block.mlp.W_out).view(middle.shape)


def before_mlp(block: Block, middle: Float[Tensor, "*batch d_model"]) -> Unwritten:
    """A block about to add its MLP to a residual stream."""
    return Unwritten(block, middle, None if block.mlp is None else hidden_of(block, middle))


def hidden_of(
    block: Block, middle: Float[Tensor, "*batch d_model"]
) -> Float[Tensor, "*batch d_mlp"]:
    """The activations of the MLP's neurons."""
    assert block.mlp is not None
    flat = normalized(block.ln2, middle).flatten(0, -2)
    hidden = torch.addmm(block.mlp.b_in, flat, block.mlp.W_in).relu_()
    return hidden.view(*middle.shape[:-1], hidden.shape[-1])


def attend(
    scores: Float[Tensor, "batch head row position"],
    written: Float[Tensor, "batch position head d_model"],
) -> Float[Tensor, "batch row head d_model"]:
    """What each head adds. A row that can see nothing at all reads nothing."""
    pattern = scores.softmax(-1).nan_to_num_(0.0)
    return torch.einsum("bhrp,bphd->brhd", pattern, written)


def _first_layer(
    model: Transformer,
    tables: FirstLayerTables,
    tokens: Int[Tensor, "batch position"],
    first_row: int,
) -> LayerState:
    where = torch.arange(tokens.shape[1])
    at_rows = where[first_row:], tokens[:, first_row:]
    return _state(
        block_of(model, 0),
        first_row,
        before=tables.embedded[at_rows],
        query=tables.query[at_rows],
        key=tables.key[where, tokens],
        written=tables.written[where, tokens],
    )


def _later_layer(
    block: Block, residual: Float[Tensor, "batch row d_model"], first_row: int
) -> LayerState:
    attn, x = block.attn, normalized(block.ln1, residual)
    query = torch.einsum("brd,hde->brhe", x[:, first_row:], attn.W_Q) + attn.b_Q
    value = torch.einsum("bpd,hde->bphe", x, attn.W_V) + attn.b_V
    return _state(
        block,
        first_row,
        before=residual[:, first_row:],
        query=query / math.sqrt(query.shape[-1]),
        key=torch.einsum("bpd,hde->bphe", x, attn.W_K) + attn.b_K,
        written=torch.einsum("bphe,hed->bphd", value, attn.W_O),
    )


def _state(
    block: Block,
    first_row: int,
    *,
    before: Float[Tensor, "batch row d_model"],
    query: Float[Tensor, "batch row head d_head"],
    key: Float[Tensor, "batch position head d_head"],
    written: Float[Tensor, "batch position head d_model"],
) -> LayerState:
    scores = torch.einsum("brhe,bphe->bhrp", query, key)
    unseen = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(first_row + 1)
    scores = scores.masked_fill(unseen, -torch.inf)
    heads = attend(scores, written)
    middle = before + heads.sum(2) + block.attn.b_O
    mlp = mlp_of(block, middle)
    return LayerState(first_row, written, scores, heads, middle, mlp)
