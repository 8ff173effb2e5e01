"""How far an evaluation of the model may be off, from sums of absolute values.

In: the weights of a model, and the relative error of one operation (`unit`). Out: `Errors`.

An evaluation goes through the stages of `model/transformer.py`. Every sum may be added up in any
order, fused or not, and a linear map may be applied to a sum or to its parts: to the position and
the token of an embedding, or to what each of them makes a head write. So a sum of k products is
off by at most k units of the sum of their absolute values, part by part. docs/certificate.md
goes through the stages one by one.

The bound is computed in float64. Its own rounding is counted in the same way, as that of one more
evaluation: with a unit of 2^-40 instead of 2^-53, so that 8,192 roundings count as one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from carryscope.certificate.proof import About
from carryscope.model.config import ModelConfig
from carryscope.model.transformer import LAYER_NORM_EPSILON
from carryscope.task.operation import Array

OURS = 2.0**-40
"""8,192 units of float64: more roundings than follow one another in the bound."""

UNITS: dict[About, float] = {"exact": OURS, "float32": 1.01 * 2.0**-24 + OURS}
"""The relative error of one operation. A hundredth more, because k roundings are off by slightly
more than k times one: by less than that if k is below 150,000."""

Weights = Mapping[str, Array]
"""Weights by their TransformerLens names, in float64."""


@dataclass(frozen=True, eq=False)
class Projected:
    """Queries, keys or values of every (position, token)."""

    value: Float[Array, "*some head d_head"]
    size: Float[Array, "*some head d_head"]
    """Their absolute values, if position, token and biases did not cancel."""
    off: Float[Array, "*some head d_head"]
    """How far they may be off, in units."""

    def __getitem__(self, at: tuple[int, ...] | slice) -> Projected:
        return Projected(self.value[at], self.size[at], self.off[at])

    def product_off(
        self, other: Projected, terms: int, unit: float
    ) -> Float[Array, "*others head"]:
        """How far the product with others may be off, in units."""
        off = self.off * (np.abs(other.value) + unit * other.off) + np.abs(self.value) * other.off
        return np.asarray((1.01 * off + terms * self.size * other.size).sum(-1))


@dataclass(frozen=True, eq=False)
class Embeddings:
    """What the first LayerNorm makes of every (position, token)."""

    position: Float[Array, "position d_model"]
    token: Float[Array, "token d_model"]
    """Centred, and not divided by the scale."""
    scale: Float[Array, "position token 1"]
    shift: Float[Array, "position token 1"]
    """How far the mean may be off: in units, and parts of the scale."""
    rough: Float[Array, "position token d_model"]
    """How far each coordinate may be off besides: in units, and parts of the scale."""

    @classmethod
    def of(cls, weights: Weights, config: ModelConfig) -> Embeddings:
        """The embeddings of a model."""
        where, what = weights["pos_embed.W_pos"], weights["embed.W_E"]
        added = np.abs(where)[:, None] + np.abs(what)
        mean = added.mean(-1, keepdims=True)
        x = centred(where)[:, None] + centred(what)
        scale = np.sqrt(np.square(x).mean(-1, keepdims=True) + LAYER_NORM_EPSILON)
        shift = (config.d_model + 4) * mean / scale
        return cls(centred(where), centred(what), scale, shift, 4 * (added + mean) / scale)

    @property
    def relative(self) -> Float[Array, "position token 1"]:
        """How far the scale may be off: in units, and parts of itself."""
        d = self.position.shape[-1]
        return self.shift + length(self.rough)[..., None] / math.sqrt(d) + d / 2 + 16

    def projected(self, weights: Weights, name: str) -> Projected:
        """The queries (Q), keys (K) or values (V)."""
        matrix, bias = (weights[f"blocks.0.attn.{kind}_{name}"] for kind in "Wb")
        w, b = weights["blocks.0.ln1.w"], weights["blocks.0.ln1.b"]
        position, token = (
            np.einsum("kd,hde->khe", part * w, matrix) for part in (self.position, self.token)
        )
        scale, shift, d = self.scale[..., None], self.shift[..., None], len(w)
        signed = (position[:, None] + token) / scale
        parts = (np.abs(position)[:, None] + np.abs(token)) / scale
        biases = np.abs(np.einsum("d,hde->he", b, matrix)) + np.abs(bias)
        read = (np.abs(self.position)[:, None] + np.abs(self.token)) / self.scale
        rough = (d + 16) * (read * np.abs(w) + np.abs(b)) + self.rough * np.abs(w)
        off = (
            shift * np.abs(np.einsum("d,hde->he", w, matrix))
            + self.relative[..., None] * np.abs(signed)
            + np.einsum("ptd,hde->pthe", rough, np.abs(matrix))
            + (d + 16) * np.abs(bias)
        )
        value = signed + np.einsum("d,hde->he", b, matrix) + bias
        return Projected(value, parts + biases, off)


@dataclass(frozen=True, eq=False)
class Errors:
    """What an evaluation may be off by. Vectors in the stream are bounded by their length."""

    unit: float
    query: Projected
    key: Projected
    stream: float
    """The stream of a row, given the attention."""
    neurons: Float[Array, " d_mlp"]
    neurons_per_scale: Float[Array, " d_mlp"]
    """A neuron's input times sigma, given the stream: the first, and sigma times the second."""
    after_neurons: float
    after_scale: float
    """Twice the stream after the MLP, times sigma, given its neurons, for each of `terms` and of
    the active neurons: the first times the length of relu(z), and sigma times the second."""
    terms: int
    tokens: Float[Array, " token"]
    """A logit, given the last stream."""
    token_lengths: Float[Array, " token"]
    """How a logit changes with the last stream, over its scale."""

    @classmethod
    def of(
        cls,
        weights: Weights,
        config: ModelConfig,
        unit: float,
        *,
        query: Projected,
        key: Projected,
        value: Projected,
        lost: float,
    ) -> Errors:
        """The errors of a model; `lost` is what coordinates lack of any vector in the stream."""
        out = np.abs(weights["blocks.0.attn.W_O"])
        basis = (config.context + config.vocabulary) * (config.heads + 1)
        terms = max(config.heads * config.d_head, config.d_head + 2 * basis)
        terms += config.d_model + 2 * config.context + 32
        off, size = (
            float(length(np.einsum("pthe,hed->pthd", part, out)).max((0, 1)).sum())
            for part in (value.off + terms * value.size, value.size)
        )
        own = sum(length(weights[name]).max() for name in ("pos_embed.W_pos", "embed.W_E"))
        own = float(own + length(weights["blocks.0.attn.b_O"]))
        return cls(
            unit=unit,
            query=query,
            key=key,
            stream=unit * (off + terms * own) + 2 * lost,
            **_after_attention(weights, config, unit, gross=own + size, lost=lost, basis=basis),
        )

    def shares(self, row: int, query: int, scores: Float[Array, "key token head"]) -> Array:
        """How much of each head's attention may go astray: the sum of all changes of shares."""
        asking, keys = self.query[row, query], self.key[: row + 1]
        d_head = asking.value.shape[-1]
        off = asking.product_off(keys, d_head + 24, self.unit).max((0, 1)) / math.sqrt(d_head)
        off = self.unit * (off + 3 * np.abs(scores).max((0, 1)) + 8)
        with np.errstate(over="ignore"):
            return np.minimum(np.expm1(2 * off) + self.unit * (row + 32), 2.0)


def _after_attention(
    weights: Weights, config: ModelConfig, unit: float, *, gross: float, lost: float, basis: int
) -> dict[str, Any]:
    """The errors of the MLP, of the last LayerNorm and of the unembedding.

    `gross` bounds the stream if nothing cancelled; `basis` is how many vectors may be added up.
    """
    d, w_u = config.d_model, weights["unembed.W_U"]
    mlp, half = Mlp.of(weights, config), d / 2 + 16
    lengths, reads = length(mlp.into), length(weights["ln_final.w"] * w_u.T)
    constant = np.abs(weights["ln_final.b"]) @ np.abs(w_u) + np.abs(weights["unembed.b_U"])
    tokens = half * math.sqrt(d) * reads + (d + 16) * (math.sqrt(d) * reads + constant)
    return {
        "neurons": lengths * (unit * (4 * d + 4 * basis + 24) * gross + 2 * lost),
        "neurons_per_scale": unit * (half * math.sqrt(d) * lengths + (d + 16) * mlp.biases),
        "after_neurons": 2 * unit * float(np.linalg.norm(mlp.out)),
        "after_scale": 2 * (unit * (gross + float(length(mlp.out_bias))) + 2 * lost),
        "terms": 2 * d + 2 * basis + 16,
        "tokens": unit * tokens,
        "token_lengths": reads,
    }


@dataclass(frozen=True, eq=False)
class Mlp:
    """The MLP with the LayerNorm before it; nothing is centred."""

    into: Float[Array, "d_mlp d_model"]
    """What each neuron reads."""
    beta: Float[Array, " d_mlp"]
    """What LayerNorm's bias and its own add to its input."""
    biases: Float[Array, " d_mlp"]
    """The same, if nothing cancelled."""
    out: Float[Array, "d_mlp d_model"]
    out_bias: Float[Array, " d_model"]

    @classmethod
    def of(cls, weights: Weights, config: ModelConfig) -> Mlp:
        """The MLP of a model; one without neurons, if it has none."""
        if not config.d_mlp:
            none = np.zeros((0, config.d_model))
            return cls(none, none[:, 0], none[:, 0], none, np.zeros(config.d_model))
        w, b, w_in, b_in, out, out_bias = (
            weights[f"blocks.0.{name}"]
            for name in ("ln2.w", "ln2.b", "mlp.W_in", "mlp.b_in", "mlp.W_out", "mlp.b_out")
        )
        biases = np.abs(b) @ np.abs(w_in) + np.abs(b_in)
        return cls(w * w_in.T, b @ w_in + b_in, biases, out, out_bias)


def centred(vectors: Float[Array, "*some d_model"]) -> Float[Array, "*some d_model"]:
    """What a LayerNorm sees of vectors."""
    return np.asarray(vectors - vectors.mean(-1, keepdims=True))


def length(vectors: Float[Array, "*some d_model"]) -> Float[Array, "*some"]:
    """The lengths of vectors."""
    return np.asarray(np.linalg.norm(vectors, axis=-1))
