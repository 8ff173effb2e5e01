"""Findings in the format of the paper's authors, so that their tools can read ours.

In: a `Dissection`. Out: `behaviors.json` and `features.json`, lists of nodes with tags:

    {"position": 13, "layer": 0, "is_head": true, "num": 2,
     "tags": ["Fail%:12", "Impact:A3", "Math.Add:S23", "Attn:P3=48", "Attn:P9=47"]}

Fail% is the share of questions that fail without the node, Impact the answer digits hit,
Math.Add the complexities of the failing questions, Attn the positions attended to. Algo (in
`features.json`) is a purpose: SA base add, SC make carry, SS make sum 9, ST tri-state.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from carryscope.core.storage import write_json
from carryscope.dissection.attention import AttentionFinding
from carryscope.dissection.findings import Dissection
from carryscope.dissection.nodes import NodeEffect

BEHAVIORS_FILE = Path("findings") / "behaviors.json"
FEATURES_FILE = Path("findings") / "features.json"

_ALGO = {"BA": "SA", "MC1": "SC", "MS9": "SS", "state": "ST"}
"""Their names for the sub-tasks they have a name for."""


class TaggedNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node as their files hold it."""

    position: int
    layer: int
    is_head: bool
    num: int
    """The head; 0 for an MLP."""
    tags: list[str]


def behaviors(dissection: Dissection) -> list[TaggedNode]:
    """What each useful node does to the answers, and where it looks."""
    if dissection.nodes is None:
        return []
    return [
        _tagged(node, [*_effect_tags(node), *_attention_tags(node, dissection)])
        for node in dissection.nodes.nodes
        if node.useful
    ]


def features(dissection: Dissection) -> list[TaggedNode]:
    """What each useful node is for, where the search found it."""
    if dissection.nodes is None or dissection.subtasks is None:
        return []
    tagged = []
    for node in dissection.nodes.nodes:
        tags = [
            f"Algo:A{p.column}.{_ALGO[p.kind]}"
            for p in dissection.subtasks.purposes
            if p.kind in _ALGO and p.node == node.node
        ]
        if node.useful and tags:
            tagged.append(_tagged(node, tags))
    return tagged


def write_exchange(dissection: Dissection, directory: Path) -> list[Path]:
    """Leave both files in a run directory, if the nodes have been studied."""
    if dissection.nodes is None:
        return []
    paths = [directory / BEHAVIORS_FILE, directory / FEATURES_FILE]
    for path, nodes in zip(paths, (behaviors(dissection), features(dissection)), strict=True):
        write_json(path, nodes)
    return paths


def _tagged(node: NodeEffect, tags: list[str]) -> TaggedNode:
    return TaggedNode(
        position=node.row,
        layer=node.layer,
        is_head=node.head is not None,
        num=node.head or 0,
        tags=tags,
    )


def _effect_tags(node: NodeEffect) -> list[str]:
    """Their files write digits one after the other, A543; from A10 on that is ambiguous there."""
    digits = "".join(name.removeprefix("A") for name in node.digits)
    levels = "".join(level.removeprefix("S") for level in node.complexity)
    return [
        f"Fail%:{node.fails.estimate:.0%}".rstrip("%"),
        f"Impact:A{digits}",
        f"Math.Add:S{levels}",
    ]


def _attention_tags(node: NodeEffect, dissection: Dissection) -> list[str]:
    """Positions by their number and share. The last layer's answer rows are what we watch."""
    found: AttentionFinding | None = dissection.attention
    if found is None or node.head is None:
        return []
    positions = dissection.model.layout.position_names
    return [
        f"Attn:P{positions.index(token)}={100 * share:.0f}"
        for reading in found.readings
        if (reading.row, reading.layer, reading.head) == (node.row, node.layer, node.head)
        for token, share in reading.tokens.items()
    ]
