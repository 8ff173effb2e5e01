"""The model in numpy: a few questions are answered before torch would even be loaded.

In: weights by their TransformerLens names, and tokens. Out: logits and attention patterns. It
computes in float64, row by row as `transformer.py` does, and shares no code with it: so it is
also the reference that the torch model is tested against.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from carryscope.model.config import ModelConfig
from carryscope.model.files import read_arrays, read_model_config
from carryscope.task.operation import Array
from carryscope.task.tokens import Format

EPSILON = 1e-5
"""Added to the variance by LayerNorm."""


@dataclass(frozen=True, eq=False)
class PlainModel:
    """A model as numbers."""

    config: ModelConfig
    weights: Mapping[str, Array]

    @classmethod
    def read(cls, directory: Path) -> PlainModel:
        """The model of a run directory."""
        config = read_model_config(directory)
        arrays = read_arrays(directory, config)
        return cls(config, {name: array.astype(np.float64) for name, array in arrays.items()})

    @property
    def layout(self) -> Format:
        """How questions are written as tokens for this model."""
        return self.config.layout

    def __call__(
        self, tokens: Int[Array, "batch row"]
    ) -> tuple[Float[Array, "batch row token"], Float[Array, "batch layer head row key"]]:
        """The logits of every row, and where every head looks."""
        W = self.weights
        residual = W["embed.W_E"][tokens] + W["pos_embed.W_pos"][: tokens.shape[1]]
        patterns = []
        for layer in range(self.config.layers):
            block = f"blocks.{layer}."
            pattern, written = self._attention(self._normalised(residual, f"{block}ln1"), block)
            residual = residual + written
            patterns.append(pattern)
            if self.config.d_mlp:
                hidden = self._normalised(residual, f"{block}ln2") @ W[f"{block}mlp.W_in"]
                active = np.maximum(hidden + W[f"{block}mlp.b_in"], 0)
                residual = residual + active @ W[f"{block}mlp.W_out"] + W[f"{block}mlp.b_out"]
        last = self._normalised(residual, "ln_final")
        return last @ W["unembed.W_U"] + W["unembed.b_U"], np.stack(patterns, axis=1)

    def _normalised(self, x: Array, name: str) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON)
        return np.asarray(centred / scale * self.weights[f"{name}.w"] + self.weights[f"{name}.b"])

    def _attention(self, x: Array, block: str) -> tuple[Array, Array]:
        """The attention pattern, and what the heads write together."""
        W = {name: self.weights[f"{block}attn.{name}"] for name in ("W_Q", "W_K", "W_V", "W_O")}
        b = {name: self.weights[f"{block}attn.{name}"] for name in ("b_Q", "b_K", "b_V", "b_O")}
        # x is (batch, row, d_model); one head at a time is (batch, 1, row, d_model).
        q, k, v = (x[:, None] @ W[f"W_{n}"] + b[f"b_{n}"][:, None] for n in "QKV")
        scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(self.config.d_head)
        unseen = np.triu(np.ones(scores.shape[-2:], dtype=bool), 1)
        scores = np.where(unseen, -np.inf, scores)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        pattern = weights / weights.sum(-1, keepdims=True)
        return pattern, (pattern @ v @ W["W_O"]).sum(1) + b["b_O"]
