"""The answer path: the logits of the answer rows, and nothing that they do not need.

In: tokens of shape (batch, position). Out: logits of shape (batch, answer, token), equal to
the instrumented pass at the answer rows. For 12345+67890=080235 that is 6 of 18 rows.

Where the time goes is matrix products, so we do fewer of them, exactly:

1. An embedding is a sum of two vectors, one for its position and one for its token. With
   the *basis* U = [W_pos; W_E], m vectors in all (29 for five digits), each embedding has
   the coordinates of a *two-hot* row: x = two_hot @ U.
2. LayerNorm is linear except for its scale, and every (position, token) has a known scale. So
   in layer 0 a query, key or value is scale * two_hot @ (U W): only m rows are projected,
   and attention scores come from a form of m x m numbers per head.
3. What a head adds is a mixture of rows of U W_V W_O. So the residual stream after layer-0
   attention is C @ B, with coordinates C over a basis B of a hundred vectors or so, and the
   MLP's first product becomes C @ (B W_in): half the work, training included. A narrow head
   (d_head < m) has fewer vectors in W_O: those are its part of B.
4. LayerNorm removes the mean of the residual stream wherever it is read. We remove it from
   the basis, once.
5. Later layers are computed for all rows, the last one for answer rows only.

Key biases (and the LayerNorm bias under W_K) add the same amount to every score of a
query, which the softmax cancels: in layer 0 they do not appear.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from carryscope.model.transformer import LAYER_NORM_EPSILON, Block, LayerNorm, Transformer


class Unwritten(NamedTuple):
    """Rows of a block whose MLP has not written yet: the stream it adds to, and its neurons."""

    block: Block
    residual: Float[Tensor, "*batch d_model"]
    neurons: Float[Tensor, "*batch d_mlp"] | None
    """After the ReLU; none in a block without an MLP."""
    pattern: Float[Tensor, "batch head row key"] | None = None
    """How the heads of the block shared out their attention; none if it is not known."""

    def written(self) -> Float[Tensor, "*batch d_model"]:
        """The residual stream after the block."""
        if self.block.mlp is None:
            return self.residual
        assert self.neurons is not None
        before = (self.residual + self.block.mlp.b_out).flatten(0, -2)
        after = torch.addmm(before, self.neurons.flatten(0, -2), self.block.mlp.W_out)
        return after.view_as(self.residual)


def answer_logits(
    model: Transformer, tokens: Int[Tensor, "batch position"]
) -> Float[Tensor, "batch answer token"]:
    """The logits of every answer row."""
    return logits_of(model, answer_rows(model, tokens).written())


def logits_of(
    model: Transformer, residual: Float[Tensor, "*batch d_model"]
) -> Float[Tensor, "*batch token"]:
    """The logits of a residual stream after the last block."""
    return normalized(model.ln_final, residual) @ model.unembed.W_U + model.unembed.b_U


def answer_rows(model: Transformer, tokens: Int[Tensor, "batch position"]) -> Unwritten:
    """The answer rows of the last block, before its MLP writes."""
    rows = model.config.layout.answer_rows
    tokens = tokens[:, : rows.stop]
    last = model.config.layers - 1
    reached = _first_block(model, tokens, first_row=0 if last else rows.start)
    for layer in range(1, last + 1):
        block = model.blocks[layer]
        assert isinstance(block, Block)
        first_row = rows.start if layer == last else 0
        reached = later_block(block, reached.written(), first_row)
    return reached


class _Coordinates(NamedTuple):
    """The embeddings of a batch over the basis of token and position vectors."""

    basis: Float[Tensor, "m d_model"]
    two_hot: Float[Tensor, "batch row m"]
    inverse_scale: Float[Tensor, "batch row"]


def _first_block(model: Transformer, tokens: Int[Tensor, "batch row"], first_row: int) -> Unwritten:
    """Block 0, for the rows from `first_row` on."""
    block = model.blocks[0]
    assert isinstance(block, Block)
    embedded = _embed(model, tokens)
    coordinates, basis, pattern = _attend(block, embedded, first_row)
    batch, rows, _ = coordinates.shape
    flat, neurons = coordinates.flatten(0, 1), None
    residual = flat @ basis
    if block.mlp is not None:
        scale = _inverse_scale(residual)[:, None]
        projected = _with_bias_row(block.ln2, basis) @ block.mlp.W_in
        pre = _with_ones(flat * scale) @ _add_to_last_row(projected, block.mlp.b_in)
        neurons = pre.relu_().view(batch, rows, pre.shape[1])
    return Unwritten(block, residual.view(batch, rows, basis.shape[1]), neurons, pattern)


def _embed(model: Transformer, tokens: Int[Tensor, "batch row"]) -> _Coordinates:
    """The batch as two-hot rows, with the LayerNorm scale of each (position, token)."""
    positions, vocabulary = tokens.shape[1], model.config.vocabulary
    basis = centred(torch.cat([model.pos_embed.W_pos[:positions], model.embed.W_E]))
    one_hot = F.one_hot(tokens.long(), vocabulary).to(basis.dtype)
    where = torch.eye(positions, dtype=basis.dtype, device=basis.device)
    two_hot = torch.cat([where.expand(len(tokens), -1, -1), one_hot], dim=-1)
    every_embedding = basis[:positions, None] + basis[positions:]
    inverse_scale = (one_hot * _inverse_scale(every_embedding)).sum(-1)
    return _Coordinates(basis, two_hot, inverse_scale)


def _attend(
    block: Block, embedded: _Coordinates, first_row: int
) -> tuple[
    Float[Tensor, "batch answer k"],
    Float[Tensor, "k d_model"],
    Float[Tensor, "batch head answer key"],
]:
    """The residual stream after attention as coordinates over a basis, and the attention.

    The basis: the embedding vectors of the rows themselves, then for each head what it
    writes for every embedding vector, or W_O if that has fewer vectors, then the constant that
    the biases write. Positions stand before tokens, so what concerns earlier positions is cut off
    by `first_row`.
    """
    attn, (basis, two_hot, inverse_scale) = block.attn, embedded
    m, d_head = len(basis), attn.W_Q.shape[-1]
    own, queries = basis[first_row:], two_hot[:, first_row:, first_row:]
    scale_of_query = inverse_scale[:, None, first_row:, None]
    scale_of_key = inverse_scale[:, None, None, :]

    read = _with_bias_row(block.ln1, basis).expand(len(attn.W_Q), -1, -1)
    q = _add_to_last_row(torch.bmm(read[:, first_row:], attn.W_Q), attn.b_Q)
    k = torch.bmm(read[:, :m], attn.W_K)
    form = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(d_head)
    query_form = torch.einsum("brm,hmn->bhrn", queries, form[:, :-1])
    query_form = query_form * scale_of_query + form[:, -1:]
    scores = query_form @ two_hot.transpose(1, 2)[:, None] * scale_of_key
    pattern = (scores + _unseen(scores, first_row)).softmax(-1)

    values = _add_to_last_row(torch.bmm(read, attn.W_V), attn.b_V)
    written = torch.bmm(values, attn.W_O)
    constant = written[:, m].sum(0) + attn.b_O
    mixed, vectors = two_hot[:, None], written[:, :m]
    if d_head < m:
        mixed, vectors = torch.einsum("bkm,hme->bhke", two_hot, values[:, :m]), attn.W_O[:]
    mixed = pattern * scale_of_key @ mixed
    coordinates = _with_ones(torch.cat([queries, mixed.transpose(1, 2).flatten(2)], dim=-1))
    basis = centred(torch.cat([own, vectors.flatten(0, 1), constant[None]]))
    return coordinates, basis, pattern


def later_block(
    block: Block, residual: Float[Tensor, "batch row d_model"], first_row: int
) -> Unwritten:
    """Block 1 and up: every row is read, the rows from `first_row` on are computed."""
    attn, neurons = block.attn, None
    x = normalized(block.ln1, residual)
    q = torch.einsum("brd,hde->bhre", x[:, first_row:], attn.W_Q) + attn.b_Q[:, None]
    k = torch.einsum("brd,hde->bhre", x, attn.W_K) + attn.b_K[:, None]
    v = torch.einsum("brd,hde->bhre", x, attn.W_V) + attn.b_V[:, None]
    scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
    pattern = (scores + _unseen(scores, first_row)).softmax(-1)
    z = pattern @ v
    residual = residual[:, first_row:] + attn.b_O
    residual = residual + z.transpose(1, 2).flatten(2) @ attn.W_O.flatten(0, 1)
    if block.mlp is not None:
        pre = normalized(block.ln2, residual) @ block.mlp.W_in + block.mlp.b_in
        neurons = pre.relu_()
    return Unwritten(block, residual, neurons, pattern)


def _unseen(scores: Float[Tensor, "batch head row key"], first_row: int) -> Tensor:
    """Minus infinity where a key comes after its row."""
    rows, keys = scores.shape[-2:]
    blank = torch.full((rows, keys), -torch.inf, dtype=scores.dtype, device=scores.device)
    return blank.triu(first_row + 1)


def centred(vectors: Tensor, dim: int = -1) -> Tensor:
    """The vectors less their mean, which LayerNorm removes wherever it reads."""
    return vectors - vectors.mean(dim, keepdim=True)


def _inverse_scale(centred: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch"]:
    return (centred.square().mean(-1) + LAYER_NORM_EPSILON).rsqrt()


def _with_bias_row(norm: LayerNorm, basis: Float[Tensor, "k d_model"]) -> Tensor:
    """LayerNorm of each basis vector without the scale, then its bias as a row."""
    return torch.cat([basis * norm.w, norm.b[None]])


def _with_ones(coordinates: Float[Tensor, "*batch k"]) -> Float[Tensor, "*batch k+1"]:
    """The coordinate of the bias row: always 1."""
    return F.pad(coordinates, (0, 1), value=1.0)


def _add_to_last_row(
    projected: Float[Tensor, "*head k width"], bias: Float[Tensor, "*head width"]
) -> Float[Tensor, "*head k width"]:
    """Fold a part's own bias into the bias row."""
    last = projected[..., -1:, :] + bias[..., None, :]
    return torch.cat([projected[..., :-1, :], last], dim=-2)


def normalized(norm: LayerNorm, x: Float[Tensor, "*batch d_model"]) -> Tensor:
    """LayerNorm in one fused step."""
    return F.layer_norm(x, norm.w.shape, norm.w, norm.b, LAYER_NORM_EPSILON)
