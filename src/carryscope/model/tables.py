"""Layer 0 as tables: query, key and what each head writes, for every (position, token).

In: a model. Out: `FirstLayerTables`. In layer 0 the residual stream at a position depends on
its own token alone, so queries, keys and what a head writes when it reads a position are
functions of (position, token): 18 x 12 rows for five digits, instead of 18 for every
question.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from carryscope.model.products import linear
from carryscope.model.sites import leave_alone
from carryscope.model.transformer import Attention, Block, Transformer


@dataclass(frozen=True, eq=False)
class FirstLayerTables:
    """What layer 0 makes of every token at every position."""

    embedded: Float[Tensor, "position token d_model"]
    query: Float[Tensor, "position token head d_head"]
    """Divided by sqrt(d_head), so that query times key is the attention score."""
    key: Float[Tensor, "position token head d_head"]
    written: Float[Tensor, "position token head d_model"]
    """What a head adds to a row that attends to this position alone (W_V and W_O applied)."""

    @classmethod
    def of(cls, model: Transformer) -> FirstLayerTables:
        """The tables of a model."""
        block = model.blocks[0]
        assert isinstance(block, Block)
        with torch.inference_mode():
            embedded = model.pos_embed.W_pos[:, None] + model.embed.W_E
            return cls(embedded, *projected(block.attn, block.ln1(embedded, leave_alone)))


def projected(
    attn: Attention, x: Float[Tensor, "*batch d_model"]
) -> tuple[
    Float[Tensor, "*batch head d_head"],
    Float[Tensor, "*batch head d_head"],
    Float[Tensor, "*batch head d_model"],
]:
    """Query, key and what is written, from the normalised residual stream."""
    heads, d_model, d_head = attn.W_Q.shape
    scale = 1 / math.sqrt(d_head)
    weights = torch.cat([attn.W_Q * scale, attn.W_K, attn.W_V])
    biases = torch.cat([attn.b_Q * scale, attn.b_K, attn.b_V])
    read = linear(x, weights.transpose(0, 1).reshape(d_model, -1), biases.flatten())
    query, key, value = read.view(*x.shape[:-1], 3, heads, d_head).unbind(-3)
    return query, key, torch.einsum("...he,hed->...hd", value, attn.W_O)
