"""What can be done to a model, as values: take a part away, or put another question's in.

In: a site of the model (its TransformerLens name), rows and heads. Out: frozen values that
the engine evaluates. Nothing here touches a model.

    Ablate("blocks.0.attn.hook_z", rows=(13,), heads=(2,), how="mean")
    Patch("blocks.0.hook_mlp_out", rows=(13,), source=other_questions)
    Cut("blocks.0.attn.hook_pattern", rows=(13,), keys=(2, 8))
    Route((Node(8, 0),), Node(13, 1, (0,)), other_questions, into=("value",))

A *node* is one head, or the MLP, of one layer at one row: `P13.L0.H2`, `P13.L0.MLP`. Without
a row (`L0H2`, or `H2` in a model of one layer) the name means the part at every row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from carryscope.core.errors import CallError
from carryscope.model.config import ModelConfig
from carryscope.task.questions import Questions

How = Literal["zero", "mean"]
"""Ablated to zero, or to the mean over the engine's reference questions at the same row."""

PATTERN, HEADS, MLP = "attn.hook_pattern", "attn.hook_z", "hook_mlp_out"
STREAM = "hook_resid_post"
REPLACEABLE = (HEADS, MLP, STREAM)
"""The sites, within a block, that can be ablated or patched."""


@dataclass(frozen=True)
class Ablate:
    """Replace the value at a site by zero or by its mean."""

    site: str
    rows: tuple[int, ...]
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
    """Remove attention edges: the rows no longer see the keys. The rest is scaled up to 1."""

    site: str
    rows: tuple[int, ...]
    keys: tuple[int, ...]
    heads: tuple[int, ...] | None = None


class Node(NamedTuple):
    """One head of a layer at a row, or several taken together; with no heads, the MLP."""

    row: int
    layer: int
    heads: tuple[int, ...] = ()

    def __str__(self) -> str:
        part = "+".join(f"H{head}" for head in self.heads) or "MLP"
        return f"P{self.row}.L{self.layer}.{part}"

    @property
    def head(self) -> int | None:
        """The first head; none for an MLP."""
        return self.heads[0] if self.heads else None

    @property
    def site(self) -> str:
        return f"blocks.{self.layer}.{HEADS if self.heads else MLP}"

    def ablated(self, how: How = "mean") -> Ablate:
        return Ablate(self.site, (self.row,), self.heads or None, how)

    def patched(self, source: Questions) -> Patch:
        return Patch(self.site, (self.row,), source, self.heads or None)

    @classmethod
    def parse(cls, text: str) -> Node:
        """A node from its name."""
        row, layer, heads = _parsed(text)
        if row is None or layer is None:
            raise CallError(f"A node is written like P13.L0.H2 or P13.L0.MLP. Got '{text}'.")
        return cls(row, layer, heads)


Into = Literal["query", "key", "value"]
"""How a head reads a position: as its own row, when it looks where to attend, when it attends."""


@dataclass(frozen=True, eq=False)
class Route:
    """Replace what nodes write by its value in other questions, but only as one reader sees it.

    All else stays clean, other readers of the same nodes included: this is the direct path from
    the senders to the receiver. What the receiver then writes goes wherever it goes.
    """

    senders: tuple[Node, ...]
    receiver: Node
    """Heads of a later layer, which can read any row up to theirs, or an MLP, which reads its own
    row: of a later layer, or of the senders' own if they are heads."""
    source: Questions
    into: tuple[Into, ...] = ("query", "key", "value")
    """For heads, through what they read the senders."""

    @property
    def site(self) -> str:
        return self.receiver.site

    @property
    def rows(self) -> tuple[int, ...]:
        return (self.receiver.row,)

    @property
    def heads(self) -> tuple[int, ...] | None:
        return self.receiver.heads or None


Intervention = Ablate | Patch | Cut | Route


def _parsed(text: str) -> tuple[int | None, int | None, tuple[int, ...]]:
    """The row, layer and head in a name; row and layer may be missing."""
    match = re.fullmatch(r"(?:P(\d+)\.)?(?:L(\d+)\.?)?(?:H(\d+)|MLP)", text)
    if not match:
        raise CallError(f"A part is written like H1, L0H1, MLP or P13.L0.H2. Got '{text}'.")
    row, layer, head = (None if number is None else int(number) for number in match.groups())
    return row, layer, () if head is None else (head,)


def all_nodes(config: ModelConfig) -> list[Node]:
    """Every node that can reach an answer, by row, then layer, heads before the MLP.

    In the last layer only the answer rows can.
    """
    rows, last = config.layout.answer_rows, config.layers - 1
    parts = [(head,) for head in range(config.heads)] + [()] * bool(config.d_mlp)
    return [
        Node(row, layer, heads)
        for row in range(rows.stop)
        for layer in range(config.layers)
        if layer < last or row in rows
        for heads in parts
    ]


def head_name(layer: int, head: int, layers: int) -> str:
    """`H1`, or `L0H1` in a model of several layers."""
    return f"L{layer}H{head}" if layers > 1 else f"H{head}"


Without = str | Intervention | Sequence[str | Intervention]
"""What to take away: names such as "H1", "H0,MLP" or "P13.L0.H2", or interventions."""


def taken_away(without: Without | None, config: ModelConfig) -> list[Intervention]:
    """The interventions that take parts away, each named part by mean ablation."""
    if without is None:
        return []
    changes: list[Intervention] = []
    for one in [without] if isinstance(without, str | Intervention) else without:
        if isinstance(one, str):
            changes += [_ablated(name.strip(), config) for name in one.split(",")]
        else:
            changes.append(one)
    return changes


def _ablated(name: str, config: ModelConfig) -> Ablate:
    """A part by its name, ablated to its mean at its row, or at every row."""
    row, layer, heads = _parsed(name)
    if layer is None and config.layers > 1:
        raise CallError(f"This model has {config.layers} layers: write L0{name}. Got '{name}'.")
    if max(heads, default=0) >= config.heads or (layer or 0) >= config.layers:
        first = head_name(0, 0, config.layers)
        last = head_name(config.layers - 1, config.heads - 1, config.layers)
        raise CallError(f"This model has the heads {first} to {last}. Got '{name}'.")
    one = Node(row or 0, layer or 0, heads).ablated()
    return one if row is not None else replace(one, rows=tuple(range(config.context)))


def check(change: Intervention, config: ModelConfig, questions: int) -> None:
    """Refuse what cannot be done to so many questions in a model of this shape."""
    part = layer_and_part(change, config)[1]
    heads = change.heads or ()
    positions = change.rows + (change.keys if isinstance(change, Cut) else ())
    if part == MLP and not config.d_mlp:
        raise CallError("This model has no MLP.")
    if change.heads is not None and part not in (HEADS, PATTERN):
        raise CallError(f"{change.site} has no heads. Got heads {heads}.")
    if not change.rows or not all(0 <= p < config.context for p in positions):
        raise CallError(f"Positions must be between 0 and {config.context - 1}. Got {change}")
    if len(set(heads)) < len(heads):
        raise CallError(f"Each head can be named once. Got heads {heads}.")
    if any(not 0 <= head < config.heads for head in heads):
        raise CallError(f"Heads must be between 0 and {config.heads - 1}. Got {change}")
    if isinstance(change, Route):
        for sender in change.senders:
            reaches = sender.row in _read_by(change, sender)
            if not reaches or sender.row < 0 or max(sender.heads, default=0) >= config.heads:
                raise CallError(f"{change.receiver} does not read {sender}.")
    if isinstance(change, Patch | Route) and len(change.source) != questions:
        raise CallError(
            f"A patch needs one source for each of the {questions} questions. "
            f"Got {len(change.source)}."
        )


def _read_by(route: Route, sender: Node) -> range:
    """The rows at which the receiver of a route reads nodes like the sender."""
    own = range(route.receiver.row, route.receiver.row + 1)
    if route.receiver.layer > sender.layer:
        return range(route.receiver.row + 1) if route.receiver.heads else own
    same = route.receiver.layer == sender.layer and sender.heads and not route.receiver.heads
    return own if same else range(0)


def layer_and_part(change: Intervention, config: ModelConfig) -> tuple[int, str]:
    """Where an intervention acts: the layer, and the site within it; refused if there is none."""
    match = re.fullmatch(r"blocks\.(\d+)\.(.+)", change.site)
    sites = (PATTERN,) if isinstance(change, Cut) else REPLACEABLE
    if not match or match[2] not in sites or int(match[1]) >= config.layers:
        known = ", ".join(f"blocks.L.{site}" for site in sites)
        raise CallError(
            f"{type(change).__name__} works at {known}, with L below {config.layers}. "
            f"Got '{change.site}'."
        )
    return int(match[1]), match[2]
