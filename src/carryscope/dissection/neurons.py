"""Which neurons of an MLP respond to which part of a key.

In: a block, its residual streams, and the key of each question. Out: how many neurons follow
each part of the key, and the strongest ones by name.

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

STRONGEST = 5
"""Neurons named for each digit: those that write most."""


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


class Neuron(msgspec.Struct, frozen=True, kw_only=True):
    """One neuron."""

    neuron: int
    explained: dict[str, float]
    """Share of its variance that each part of the key explains, and the whole key."""
    prefers: dict[str, int]
    """The key at which it is most active, on average."""
    active: float
    """Share of the questions in which it is active."""


def study_neurons(
    block: Block,
    middle: Float[Tensor, "batch d_model"],
    parts: dict[str, Int[Array, " batch"]],
    code: Int[Array, " batch"],
) -> tuple[NeuronCount, list[Neuron]]:
    """Count what the neurons of a block follow, and look at the strongest."""
    assert block.mlp is not None
    hidden = hidden_of(block, middle).numpy()
    explained = {name: _explained(hidden, part) for name, part in parts.items()}
    explained["key"] = _explained(hidden, code)
    alive = np.asarray(hidden.any(0))
    follows = {name: alive & (share > EXPLAINS) for name, share in explained.items()}
    best = np.stack([explained[name] for name in parts]).argmax(0)
    by_part = {name: int((follows[name] & (best == i)).sum()) for i, name in enumerate(parts)}
    any_part = np.any([follows[name] for name in parts], axis=0)
    combined = follows["key"] & ~any_part
    count = NeuronCount(
        neurons=len(alive),
        silent=int((~alive).sum()),
        part=by_part,
        combined=int(combined.sum()),
        other=int((alive & ~any_part & ~combined).sum()),
    )
    writes = hidden.std(0) * block.mlp.W_out.norm(dim=1).numpy()
    strongest = np.argsort(-writes, kind="stable")[:STRONGEST]
    return count, [_neuron(int(i), hidden[:, i], explained, parts, code) for i in strongest]


def _explained(hidden: Float[Array, "batch d_mlp"], group: Int[Array, " batch"]) -> Array:
    """Eta squared: the variance between the groups over all variance."""
    membership = np.eye(int(group.max()) + 1, dtype=hidden.dtype)[group]
    counts = membership.sum(0)
    means = membership.T @ hidden / counts.clip(min=1)[:, None]
    between = (counts[:, None] * (means - hidden.mean(0)) ** 2).sum(0) / len(hidden)
    total = hidden.var(0)
    share: Array = np.divide(between, total, out=np.zeros_like(total), where=total > 0)
    return share


def _neuron(
    i: int,
    activation: Float[Array, " batch"],
    explained: dict[str, Array],
    parts: dict[str, Int[Array, " batch"]],
    code: Int[Array, " batch"],
) -> Neuron:
    means = np.bincount(code, weights=activation) / np.bincount(code).clip(min=1)
    example = int(np.flatnonzero(code == means.argmax())[0])
    return Neuron(
        neuron=i,
        explained={name: round(float(share[i]), 3) for name, share in explained.items()},
        prefers={name: int(part[example]) for name, part in parts.items()},
        active=round(float((activation > 0).mean()), 3),
    )
