"""Which neurons of an MLP respond to which part of a key.

In: a block, its residual streams, and the key of each question. Out: how many neurons follow
each part of the key.

A neuron *follows* a part if the part explains more than half of the variance of its
activation (the correlation ratio eta squared). A neuron that is active only if the base sum is
7, for example, follows BA.
"""

from __future__ import annotations

import msgspec
import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from carryscope.dissection.capture import hidden_of
from carryscope.model.transformer import Block
from carryscope.task.operation import Array

EXPLAINS = 0.5
"""A neuron follows what explains more than half of its variance."""


class NeuronCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many neurons follow what."""

    neurons: int
    silent: int
    """Never active in these questions."""
    part: dict[str, int]
    """Follow one part of the key alone."""
    combined: int
    """Follow the whole key and no single part of it: the trigrams of the paper."""
    other: int
    """Follow neither."""


def count_neurons(
    block: Block,
    middle: Float[Tensor, "batch d_model"],
    parts: dict[str, Int[Array, " batch"]],
    code: Int[Array, " batch"],
) -> NeuronCount:
    """Count what the neurons of a block follow."""
    hidden = hidden_of(block, middle).numpy()
    alive = np.asarray(hidden.any(0))
    explained = np.stack([_explained(hidden, part) for part in parts.values()])
    follows = alive & (explained > EXPLAINS)
    best = explained.argmax(0)
    combined = alive & (_explained(hidden, code) > EXPLAINS) & ~follows.any(0)
    return NeuronCount(
        neurons=len(alive),
        silent=int((~alive).sum()),
        part={name: int((follows[i] & (best == i)).sum()) for i, name in enumerate(parts)},
        combined=int(combined.sum()),
        other=int((alive & ~follows.any(0) & ~combined).sum()),
    )


def _explained(hidden: Float[Array, "batch d_mlp"], group: Int[Array, " batch"]) -> Array:
    """Eta squared: the variance between the groups over all variance."""
    membership = np.eye(int(group.max()) + 1, dtype=hidden.dtype)[group]
    counts = membership.sum(0)
    means = membership.T @ hidden / counts.clip(min=1)[:, None]
    between = (counts[:, None] * (means - hidden.mean(0)) ** 2).sum(0) / len(hidden)
    total = hidden.var(0)
    share: Array = np.divide(between, total, out=np.zeros_like(total), where=total > 0)
    return share
