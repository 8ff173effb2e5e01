"""What can be done to a model, as values: take a part away, or put another question's in.

In: a site of the model (its TransformerLens name), rows and heads. Out: frozen values that
the engine evaluates. Nothing here touches a model, and nothing is left behind on one.

    Ablate("blocks.0.attn.hook_z", rows=(13,), heads=(2,), how="mean")
    Patch("blocks.0.hook_mlp_out", rows=(13,), source=other_questions)
    Cut("blocks.0.attn.hook_pattern", rows=(13,), keys=(2, 8))

A *node* is one head, or the MLP, of one layer at one row: `P13.L0.H2`, `P13.L0.MLP`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from carryscope.core.errors import CallError
from carryscope.model.config import ModelConfig
from carryscope.task.questions import Questions

How = Literal["zero", "mean"]
"""Ablated to zero, or to the mean over the engine's reference questions at the same row."""

PER_HEAD = ("attn.hook_z", "attn.hook_k", "attn.hook_v")
PARTS = (*PER_HEAD, "hook_mlp_out", "hook_resid_post")
"""The sites, within a block, that can be ablated or patched."""

PATTERN = "attn.hook_pattern"


@dataclass(frozen=True)
class Ablate:
    """Replace the value at a site by zero or by its mean."""

    site: str
    rows: tuple[int, ...]
    """For keys and values: the positions that are read."""
    heads: tuple[int, ...] | None = None
    """Which heads, at a site that has heads; None means all."""
    how: How = "mean"


@dataclass(frozen=True, eq=False)
class Patch:
    """Replace the value at a site by its value in other questions, one for each base question."""

    site: str
    rows: tuple[int, ...]
    source: Questions
    heads: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Cut:
    """Take attention edges away: the rows no longer see the keys; the rest is scaled up to 1."""

    site: str
    rows: tuple[int, ...]
    keys: tuple[int, ...]
    heads: tuple[int, ...] | None = None


Intervention = Ablate | Patch | Cut


class Node(NamedTuple):
    """One head (or, with no head, the MLP) of one layer at one row."""

    row: int
    layer: int
    head: int | None

    def __str__(self) -> str:
        part = "MLP" if self.head is None else f"H{self.head}"
        return f"P{self.row}.L{self.layer}.{part}"

    @property
    def site(self) -> str:
        part = "hook_mlp_out" if self.head is None else "attn.hook_z"
        return f"blocks.{self.layer}.{part}"

    def ablated(self, how: How = "mean") -> Ablate:
        return NodeSet((self,)).ablated(how)

    def patched(self, source: Questions) -> Patch:
        return NodeSet((self,)).patched(source)

    @classmethod
    def parse(cls, text: str) -> Node:
        """A node from its name."""
        match = re.fullmatch(r"P(\d+)\.L(\d+)\.(?:H(\d+)|MLP)", text)
        if not match:
            raise CallError(f"A node is written like P13.L0.H2 or P13.L0.MLP. Got '{text}'.")
        row, layer, head = match.groups()
        return cls(int(row), int(layer), None if head is None else int(head))


class NodeSet(NamedTuple):
    """A node, or several heads of one layer at one row that are taken together."""

    nodes: tuple[Node, ...]

    def __str__(self) -> str:
        return "+".join([str(self.nodes[0]), *(f"H{node.head}" for node in self.nodes[1:])])

    @property
    def row(self) -> int:
        return self.nodes[0].row

    @property
    def layer(self) -> int:
        return self.nodes[0].layer

    @property
    def heads(self) -> tuple[int, ...]:
        """The heads in the set; none for an MLP."""
        return tuple(node.head for node in self.nodes if node.head is not None)

    def ablated(self, how: How = "mean") -> Ablate:
        return Ablate(self.nodes[0].site, (self.row,), self.heads or None, how)

    def patched(self, source: Questions) -> Patch:
        return Patch(self.nodes[0].site, (self.row,), source, self.heads or None)


def parts_at(config: ModelConfig, row: int, layer: int) -> list[Node]:
    """The nodes of one layer at one row, heads first."""
    heads = [Node(row, layer, head) for head in range(config.heads)]
    return heads + [Node(row, layer, None)] * bool(config.d_mlp)


def rows_that_matter(config: ModelConfig, layer: int) -> range:
    """The rows of a layer that can reach an answer: in the last layer, only the answer rows."""
    rows = config.layout.answer_rows
    return rows if layer == config.layers - 1 else range(rows.stop)


def all_nodes(config: ModelConfig) -> list[Node]:
    """Every node that can reach an answer, by row, then layer."""
    return [
        node
        for row in range(config.layout.answer_rows.stop)
        for layer in range(config.layers)
        if row in rows_that_matter(config, layer)
        for node in parts_at(config, row, layer)
    ]


def layer_and_part(intervention: Intervention, config: ModelConfig) -> tuple[int, str]:
    """Where an intervention acts: the layer, and the site within it; refused if there is none."""
    match = re.fullmatch(r"blocks\.(\d+)\.(.+)", intervention.site)
    parts = (PATTERN,) if isinstance(intervention, Cut) else PARTS
    if not match or match[2] not in parts or int(match[1]) >= config.layers:
        kind = type(intervention).__name__
        known = ", ".join(f"blocks.L.{part}" for part in parts)
        raise CallError(
            f"{kind} works at {known}, with L below {config.layers}. Got '{intervention.site}'."
        )
    _check(intervention, match[2], config)
    return int(match[1]), match[2]


def _check(intervention: Intervention, part: str, config: ModelConfig) -> None:
    """Refuse rows, heads and keys that the model does not have."""
    if part == "hook_mlp_out" and not config.d_mlp:
        raise CallError("This model has no MLP.")
    if intervention.heads is not None and part not in (*PER_HEAD, PATTERN):
        raise CallError(f"{intervention.site} has no heads. Got heads {intervention.heads}.")
    keys = intervention.keys if isinstance(intervention, Cut) else ()
    if not intervention.rows or not all(0 <= p < config.context for p in intervention.rows + keys):
        raise CallError(f"Positions must be between 0 and {config.context - 1}. Got {intervention}")
    if len(set(intervention.heads or ())) < len(intervention.heads or ()):
        raise CallError(f"Each head can be named once. Got heads {intervention.heads}.")
    if any(not 0 <= head < config.heads for head in intervention.heads or ()):
        raise CallError(f"Heads must be between 0 and {config.heads - 1}. Got {intervention}")
