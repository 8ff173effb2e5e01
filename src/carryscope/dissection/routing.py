"""What one reader makes of other nodes' exchanged output, everything else being clean.

In: a `Route` and the clean states of base and source questions. Out: the receiver's layer, with
what its heads, or its MLP, would write. No other reader sees the exchange.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from carryscope.dissection.capture import Capture, LayerState, after_mlp, attend, block_of
from carryscope.dissection.interventions import Route
from carryscope.model.answer_path import normalized
from carryscope.model.tables import projected
from carryscope.model.transformer import Block, Transformer


def routed(model: Transformer, route: Route, clean: Capture, other: Capture) -> LayerState:
    """The receiver's layer in the clean state, but for what it makes of the senders' new output."""
    added, receiver = _added(route, clean, other), route.receiver
    state, block = clean.layers[receiver.layer], block_of(model, receiver.layer)
    at = receiver.row - state.first_row
    if not receiver.heads:
        middle, after = state.middle[:, at] + added[receiver.row], state.after.clone()
        after[:, at] = state.middle[:, at] + after_mlp(block, middle) - middle
        return state._replace(after=after)
    heads = state.heads.clone()
    heads[:, at] = _heads(block, route, state, clean.layers[receiver.layer - 1].after, added)
    return state._replace(heads=heads)


def _added(
    route: Route, clean: Capture, other: Capture
) -> dict[int, Float[Tensor, "batch d_model"]]:
    """By row, how the senders' output changes."""
    added: dict[int, Tensor] = {}
    for node in route.senders:
        row, heads = node.row - clean.layers[node.layer].first_row, list(node.heads)
        ours, theirs = (
            state.heads[:, row, heads].sum(1) if heads else state.mlp[:, row]
            for state in (clean.layers[node.layer], other.layers[node.layer])
        )
        added[node.row] = added.get(node.row, 0.0) + theirs - ours
    return added


def _heads(
    block: Block,
    route: Route,
    state: LayerState,
    before: Float[Tensor, "batch position d_model"],
    added: dict[int, Tensor],
) -> Float[Tensor, "batch head d_model"]:
    """What the heads write at the receiver's row, if they read the senders through `into`."""
    positions, row = sorted(added), route.receiver.row
    stream = before[:, positions] + torch.stack([added[p] for p in positions], dim=1)
    new = projected(block.attn, normalized(block.ln1, stream))
    read = {"query": state.query, "key": state.key, "value": state.written.transpose(1, 2)}
    for name, changed in zip(read, new, strict=True):
        if name in route.into:
            read[name] = read[name].clone()
            read[name][:, positions] = changed
    query, key, value = read["query"][:, row], read["key"][:, : row + 1], read["value"]
    scores = torch.einsum("bhe,bphe->bhp", query, key)
    return attend(scores[:, None], value[:, : row + 1].transpose(1, 2))[:, 0]
