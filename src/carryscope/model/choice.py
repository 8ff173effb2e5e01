"""Which token each answer row chooses, and nothing else: more than twice as fast as its logits.

In: tokens of shape (batch, position). Out: tokens of shape (batch, answer), those with the
largest logits of the answer path.

Most of a row's work is the product of its neurons with W_out. Let y be the residual stream after
it, less its mean, which the last LayerNorm removes, and g_t one vector for each token:

    logit_t = y . g_t / sigma + offset_t        sigma = sqrt(|y|^2 / d_model + epsilon)

The largest logit is that of the largest y . g_t + sigma offset_t: for each token a line over
sigma. Its start is cheap. With y = x + neurons @ W_out, where x is the stream before plus b_out,
y . g_t takes one number for each neuron and token. And sigma is bounded: neurons are not negative,
so |y| <= |x| + sum of neuron * |its row of W_out|. Lines cross at most once, so a token that leads
at both ends leads in between. Where none does, y is computed.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from carryscope.model.answer_path import Unwritten, answer_rows, centred, logits_of
from carryscope.model.transformer import LAYER_NORM_EPSILON, Transformer

LEAD = 1e-3
"""How far a token must lead at both ends, as a logit: far more than rounding moves a logit."""


@torch.inference_mode()
def answer_tokens(
    model: Transformer, tokens: Int[Tensor, "batch position"]
) -> Int[Tensor, "batch answer"]:
    """The token that the model writes at every answer row."""
    return chosen_tokens(model, answer_rows(model, tokens))


@torch.inference_mode()
def chosen_tokens(model: Transformer, rows: Unwritten) -> Int[Tensor, "*batch"]:
    """The token that each of some rows of the last block chooses."""
    if rows.block.mlp is None:
        return logits_of(model, rows.residual).argmax(-1)
    assert rows.neurons is not None
    low, high = _both_ends(model, rows)
    tokens = low.argmax(-1)
    sure = (tokens == high.argmax(-1)) & (_lead(low) > LEAD) & (_lead(high) > LEAD)
    if not sure.all():
        unsure = ~sure
        again = Unwritten(rows.block, rows.residual[unsure], rows.neurons[unsure])
        tokens[unsure] = logits_of(model, again.written()).argmax(-1)
    return tokens


def _both_ends(
    model: Transformer, rows: Unwritten
) -> tuple[Float[Tensor, "*batch token"], Float[Tensor, "*batch token"]]:
    """Each token's line where sigma is 0 and where it is largest, in units of the largest."""
    norm, mlp, W_U = model.ln_final, rows.block.mlp, model.unembed.W_U
    assert mlp is not None
    assert rows.neurons is not None
    reading = centred(norm.w[:, None] * W_U, dim=0)
    offset = norm.b @ W_U + model.unembed.b_U
    writing = centred(mlp.W_out)
    x = centred(rows.residual + mlp.b_out)

    to_tokens_and_length = torch.cat([writing @ reading, writing.norm(dim=-1)[:, None]], dim=-1)
    added = rows.neurons @ to_tokens_and_length
    longest = x.norm(dim=-1, keepdim=True) + added[..., -1:]
    most_sigma = (longest.square() / x.shape[-1] + LAYER_NORM_EPSILON).sqrt()
    start = (x @ reading + added[..., :-1]) / most_sigma
    return start, start + offset


def _lead(scores: Float[Tensor, "*batch token"]) -> Float[Tensor, "*batch"]:
    """How far the first token is ahead of the second."""
    first, second = scores.topk(2).values.unbind(-1)
    return first - second
