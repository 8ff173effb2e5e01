"""The clean state of a batch of questions, at every place where a part can be exchanged.

In: a model and tokens. Out: `Capture`, one `LayerState` per layer and the answer logits.
Layer 0 comes from tables over (position, token). In the last layer only the answer rows are
computed. What each head adds to the residual stream is kept, so that to ablate or patch a
head is one subtraction and one addition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from carryscope.model.answer_path import Unwritten, logits_of, normalized
from carryscope.model.products import mlp_out
from carryscope.model.tables import FirstLayerTables, projected
from carryscope.model.transformer import Block, Transformer


class LayerState(NamedTuple):
    """One layer. Rows are counted from `first_row`; positions, which are read, from 0."""

    first_row: int
    query: Float[Tensor, "batch position head d_head"]
    key: Float[Tensor, "batch position head d_head"]
    written: Float[Tensor, "batch head position d_model"]
    """What a head adds to a row that attends to this position alone."""
    scores: Float[Tensor, "batch row head position"]
    """Attention scores, minus infinity where a position comes after its row."""
    heads: Float[Tensor, "batch row head d_model"]
    """What each head adds to the residual stream."""
    middle: Float[Tensor, "batch row d_model"]
    """The residual stream after attention."""
    after: Float[Tensor, "batch row d_model"]
    """The residual stream after the block."""

    @property
    def mlp(self) -> Float[Tensor, "batch row d_model"]:
        """What the MLP adds; zero in an attention-only model."""
        return self.after - self.middle


@dataclass(frozen=True, eq=False)
class Capture:
    """The clean state of a batch."""

    layers: list[LayerState]
    logits: Float[Tensor, "batch answer token"]

    def patterns(self) -> Float[Tensor, "batch layer head answer position"]:
        """The attention of every head at the answer rows; none where a row can see nothing."""
        answers = self.logits.shape[1]
        shares = [layer.scores[:, -answers:].softmax(-1) for layer in self.layers]
        return torch.stack(shares, dim=1).nan_to_num_(0.0).transpose(2, 3)


def capture(
    model: Transformer, tables: FirstLayerTables, tokens: Int[Tensor, "batch position"]
) -> Capture:
    """The state of a batch without interventions."""
    rows, last = model.config.layout.answer_rows, model.config.layers - 1
    tokens = tokens[:, : rows.stop]
    cells = torch.arange(tokens.shape[1]), tokens
    residual, states = tables.embedded[cells], list[LayerState]()
    for layer in range(last + 1):
        block = block_of(model, layer)
        read = (
            projected(block.attn, normalized(block.ln1, residual))
            if layer
            else (tables.query[cells], tables.key[cells], tables.written[cells])
        )
        states.append(layer_state(block, rows.start if layer == last else 0, residual, *read))
        residual = states[-1].after
    return Capture(states, logits_of(model, residual))


def layer_state(
    block: Block,
    first_row: int,
    before: Float[Tensor, "batch position d_model"],
    query: Float[Tensor, "batch position head d_head"],
    key: Float[Tensor, "batch position head d_head"],
    written: Float[Tensor, "batch position head d_model"],
) -> LayerState:
    """A layer, for the rows from `first_row` on."""
    by_head = written.transpose(1, 2).contiguous()
    scores = torch.einsum("brhe,bphe->brhp", query[:, first_row:], key)
    rows, keys = range(first_row, query.shape[1]), range(key.shape[1])
    scores.masked_fill_(unseen(rows, keys), -torch.inf)
    heads = attend(scores, by_head)
    middle = before[:, first_row:] + heads.sum(2) + block.attn.b_O
    after = after_mlp(block, middle)
    return LayerState(first_row, query, key, by_head, scores, heads, middle, after)


def unseen(rows: Sequence[int], keys: Sequence[int]) -> Bool[Tensor, "row 1 key"]:
    """Which keys come after which rows."""
    return torch.tensor(rows)[:, None, None] < torch.tensor(keys)


def attend(
    scores: Float[Tensor, "batch row head position"],
    written: Float[Tensor, "batch head position d_model"],
) -> Float[Tensor, "batch row head d_model"]:
    """What each head adds. A row that can see nothing at all reads nothing."""
    pattern = scores.softmax(-1).nan_to_num_(0.0)
    return torch.einsum("brhp,bhpd->brhd", pattern, written)


def after_mlp(
    block: Block, middle: Float[Tensor, "*batch d_model"]
) -> Float[Tensor, "*batch d_model"]:
    """The residual stream once the MLP of a block has added to it."""
    if block.mlp is None:
        return middle
    return mlp_out(block.mlp, normalized(block.ln2, middle)).add_(middle)


def before_mlp(block: Block, middle: Float[Tensor, "*batch d_model"]) -> Unwritten:
    """A block about to add its MLP to a residual stream."""
    if block.mlp is None:
        return Unwritten(block, middle, None)
    flat = normalized(block.ln2, middle).flatten(0, -2)
    neurons = torch.addmm(block.mlp.b_in, flat, block.mlp.W_in).relu_()
    return Unwritten(block, middle, neurons.view(*middle.shape[:-1], neurons.shape[-1]))


def block_of(model: Transformer, layer: int) -> Block:
    """One block of the model."""
    block = model.blocks[layer]
    assert isinstance(block, Block)
    return block
