"""The parts of a model that a training can draw anew, or leave alone. No torch here.

In: the name of a parameter. Out: its part. Every parameter belongs to exactly one:

    embeddings   W_E and W_pos: what stands in the residual stream before anything is computed
    attention    of every layer: Q, K, V, O with their biases, and ln1, through which they read
    mlp          of every layer: W_in, b_in, W_out, b_out, and ln2, through which they read
    readout      the final LayerNorm and the unembedding

A LayerNorm goes with what reads through it: a part that stays is then the same function of the
residual stream, and a part that is new has nothing of the old one left.
"""

from __future__ import annotations

from typing import Literal, get_args

Part = Literal["embeddings", "attention", "mlp", "readout"]

PARTS: tuple[Part, ...] = get_args(Part)

_PART_OF: dict[str, Part] = {
    "embed": "embeddings",
    "pos_embed": "embeddings",
    "ln1": "attention",
    "attn": "attention",
    "ln2": "mlp",
    "mlp": "mlp",
    "ln_final": "readout",
    "unembed": "readout",
}


def part_of(parameter: str) -> Part:
    """The part of a parameter such as `blocks.0.attn.W_Q`."""
    first, *rest = parameter.split(".")
    return _PART_OF[rest[1] if first == "blocks" else first]


def all_but(part: Part) -> tuple[Part, ...]:
    """Every other part."""
    return tuple(other for other in PARTS if other != part)
