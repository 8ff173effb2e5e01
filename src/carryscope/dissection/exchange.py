"""Findings in the format of the paper's authors, so that their tools can read ours.

In: a `Dissection`. Out: the files `behaviors.json` and `features.json`, lists of nodes with tags:

    {"position": 13, "layer": 0, "is_head": true, "num": 2,
     "tags": ["Fail%:12", "Impact:A3", "Math.Add:S23", "Attn:P3=48", "Attn:P9=47"]}

Fail% is the share of questions that fail without the node, Impact the answer digits hit,
Math.Add the complexities of the failing questions, Attn the positions attended to. Algo (in
`features.json`) is a purpose: SA base add, SC make carry, SS make sum 9, ST tri-state.
"""

from __future__ import annotations

import msgspec

from carryscope.dissection.findings import Dissection
from carryscope.dissection.nodes import NodeEffect

_ALGO = {"BA": "SA", "MC1": "SC", "MS9": "SS", "state": "ST"}
"""Their names for the sub-tasks they have a name for."""


class TaggedNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node in their files."""

    position: int
    layer: int
    is_head: bool
    num: int
    """The head; 0 for an MLP."""
    tags: list[str]


def exchange_files(dissection: Dissection) -> dict[str, bytes]:
    """Both files by name; none if the nodes have not been studied."""
    if dissection.nodes is None:
        return {}
    files = {"behaviors.json": behaviors(dissection), "features.json": features(dissection)}
    return {
        name: msgspec.json.format(msgspec.json.encode(nodes), indent=2) + b"\n"
        for name, nodes in files.items()
    }


def behaviors(dissection: Dissection) -> list[TaggedNode]:
    """What each useful node does to the answers, and where it looks."""
    return [
        _tagged(node, [*_effect_tags(node), *_attention_tags(node, dissection)])
        for node in _useful(dissection)
    ]


def features(dissection: Dissection) -> list[TaggedNode]:
    """What each useful node is for, where the search found it."""
    tags: dict[str, list[str]] = {}
    for p in dissection.subtasks.purposes if dissection.subtasks else []:
        if p.kind in _ALGO:
            tags.setdefault(p.node, []).append(f"Algo:A{p.column}.{_ALGO[p.kind]}")
    return [_tagged(node, tags[node.node]) for node in _useful(dissection) if node.node in tags]


def _useful(dissection: Dissection) -> list[NodeEffect]:
    return [node for node in dissection.nodes.nodes if node.useful] if dissection.nodes else []


def _tagged(node: NodeEffect, tags: list[str]) -> TaggedNode:
    return TaggedNode(
        position=node.row,
        layer=node.layer,
        is_head=node.head is not None,
        num=node.head or 0,
        tags=tags,
    )


def _effect_tags(node: NodeEffect) -> list[str]:
    """Their files join the digits, as in A543. From A10 on that is ambiguous."""
    digits = "".join(name.removeprefix("A") for name in node.digits)
    levels = "".join(level.removeprefix("S") for level in node.complexity)
    return [
        f"Fail%:{node.fails.estimate:.0%}".rstrip("%"),
        f"Impact:A{digits}",
        f"Math.Add:S{levels}",
    ]


def _attention_tags(node: NodeEffect, dissection: Dissection) -> list[str]:
    """Positions by their number and share, at the answer rows."""
    if dissection.attention is None or node.head is None:
        return []
    positions = dissection.model.layout.position_names
    return [
        f"Attn:P{positions.index(token)}={100 * share:.0f}"
        for reading in dissection.attention.readings
        if (reading.row, reading.layer, reading.head) == (node.row, node.layer, node.head)
        for token, share in reading.tokens.items()
    ]
