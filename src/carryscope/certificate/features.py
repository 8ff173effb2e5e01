"""A one-layer model as tables.

In: a model. Out: `Features`. The residual stream x of a row after attention is

    x = e(query) + sum over heads of (mixture of what the head writes for each position it reads)

and all that follows reads only linear *features* of x: the input x . V_i of every neuron, and
x . g_t for every token t. Hence one table of the features of what each head writes for each
(position, token), and one of the vectors themselves. All vectors are centred, because both
LayerNorms subtract the mean. With sigma and sigma_f their scales, and z_i = x . V_i + sigma beta_i,

    sigma sigma_f (logit_c - logit_r)
        = sigma (x + b_out) . (g_c - g_r) + sum_i relu(z_i) (A_ic - A_ir)
          + sigma sigma_f (offset_c - offset_r)

since relu(z / sigma) = relu(z) / sigma. docs/certificate.md derives it all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from carryscope.certificate.proof import About
from carryscope.certificate.rounding import (
    OURS,
    UNITS,
    Embeddings,
    Errors,
    Mlp,
    Weights,
    centred,
    length,
)
from carryscope.core.errors import CallError, WorkError
from carryscope.model.config import ModelConfig
from carryscope.model.transformer import Transformer
from carryscope.task.operation import Array

LARGEST = 1e6
"""No weight and no number in the tables may be larger. Then nothing overflows."""

LARGEST_LOSS = 5e-3
"""The first scale may be off by this part of itself: rounding is counted to first order in it."""

OUT_OF_REACH = 1e-10
"""Directions of the stream in which vectors reach less than this part of the furthest are left
out: fewer coordinates are faster. What that loses is counted."""


@dataclass(frozen=True, eq=False)
class Features:
    """A one-layer model, as the certificate reads it, in float64. Features: neurons, then tokens.

    `coordinate` is an axis of the subspace of the stream that embeddings and heads reach.
    """

    config: ModelConfig
    about: About
    query: Float[Array, "position token head d_head"]
    """Divided by sqrt(d_head), so that query times key is the attention score."""
    key: Float[Array, "position token head d_head"]
    written: Float[Array, "position token head feature"]
    stream: Float[Array, "position token head coordinate"]
    """What a head writes for a token, as features and as coordinates."""
    embedded: Float[Array, "position token feature"]
    embedded_stream: Float[Array, "position token coordinate"]
    basis: Float[Array, "coordinate d_model"]
    into: Float[Array, "d_mlp coordinate"]
    """V: what each neuron reads."""
    beta: Float[Array, " d_mlp"]
    """What LayerNorm's bias and the neuron's own add to its input."""
    token_into: Float[Array, "token coordinate"]
    """g: what each token reads."""
    outside: Float[Array, " feature"]
    """The length of what a neuron or token reads that no coordinate reaches: rounding does."""
    to_tokens: Float[Array, "token d_mlp"]
    """A: what each neuron adds to each token's logit."""
    to_stream: Float[Array, "d_mlp d_model"]
    """What each neuron adds to the residual stream."""
    out_norm: float
    """No vector of neurons becomes longer in the stream than by this factor."""
    out_bias: Float[Array, " d_model"]
    bias_tokens: Float[Array, " token"]
    """b_out . g."""
    offset: Float[Array, " token"]
    """What the last LayerNorm's bias and the unembedding's add to each logit."""
    errors: Errors

    @classmethod
    def of(cls, model: Transformer, about: About = "float32") -> Features:
        """The tables of a model; more than one layer is refused."""
        check_supported(model.config)
        weights = {name: weight.double().numpy() for name, weight in model.state_dict().items()}
        if not all((np.abs(weight) <= LARGEST).all() for weight in weights.values()):
            raise _uncertifiable()
        features = _features(weights, model.config, about)
        tables = [table for table in vars(features).values() if isinstance(table, np.ndarray)]
        if not all((np.abs(table) <= LARGEST).all() for table in tables):
            raise _uncertifiable()
        return features


def check_supported(config: ModelConfig) -> None:
    """Refuse a model whose answers cannot be bounded here."""
    if config.layers != 1:
        raise CallError(
            "A certificate is for models of 1 layer: in a second one keys and values depend on the "
            f"whole question. Got {config.layers} layers. `carryscope risk` takes any model."
        )


def _uncertifiable() -> WorkError:
    return WorkError(
        "This model cannot be certified: a weight is not a number, or products of its weights "
        f"are too large (over {LARGEST:,.0f})."
    )


def _features(weights: Weights, config: ModelConfig, about: About) -> Features:
    mlp, g = Mlp.of(weights, config), centred(weights["ln_final.w"] * weights["unembed.W_U"].T)
    into, out, out_bias = centred(mlp.into), centred(mlp.out), centred(mlp.out_bias)
    reads, read = np.concatenate([into, g]), Embeddings.of(weights, config)
    if not (UNITS[about] * read.relative <= LARGEST_LOSS).all():
        raise _uncertifiable()
    query, key, value = (read.projected(weights, name) for name in "QKV")
    written = centred(np.einsum("pthe,hed->pthd", value.value, weights["blocks.0.attn.W_O"]))
    embedded = weights["pos_embed.W_pos"][:, None] + weights["embed.W_E"]
    embedded = centred(embedded + weights["blocks.0.attn.b_O"])
    basis, lost = _basis(np.concatenate([written.reshape(-1, config.d_model), *embedded]))
    lost *= 1 + config.heads
    return Features(
        config=config,
        about=about,
        query=query.value / math.sqrt(config.d_head),
        key=key.value,
        written=written @ reads.T,
        stream=written @ basis.T,
        embedded=embedded @ reads.T,
        embedded_stream=embedded @ basis.T,
        basis=basis,
        into=into @ basis.T,
        beta=mlp.beta,
        token_into=g @ basis.T,
        outside=length(reads - reads @ basis.T @ basis),
        to_tokens=g @ out.T,
        to_stream=out,
        out_norm=float(np.linalg.norm(out, 2)) * (1 + OURS) if len(out) else 0.0,
        out_bias=out_bias,
        bias_tokens=g @ out_bias,
        offset=weights["ln_final.b"] @ weights["unembed.W_U"] + weights["unembed.b_U"],
        errors=Errors.of(
            weights, config, UNITS[about], query=query, key=key, value=value, lost=lost
        ),
    )


def _basis(vectors: Float[Array, "vector d_model"]) -> tuple[Float[Array, "k d_model"], float]:
    """An orthonormal basis of what vectors span, and what they lack in it at most."""
    _, reach, directions = np.linalg.svd(vectors, full_matrices=False)
    basis = directions[reach > OUT_OF_REACH * reach[0]]
    return basis, float(length(vectors - vectors @ basis.T @ basis).max())
