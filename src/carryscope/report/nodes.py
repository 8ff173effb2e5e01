"""What a dissection found about each node, in words: for tables, pictures and the explorer.

In: a dissection. Out: `NodeWords` by the node's name, such as `P13.L0.H2`.
"""

from __future__ import annotations

from typing import NamedTuple

from carryscope.core.words import brief
from carryscope.dissection.ablations import NodeEffect
from carryscope.dissection.dissect import Dissection
from carryscope.dissection.hypotheses import in_words
from carryscope.dissection.subtasks import Purpose
from carryscope.report.words import in_short

UNUSED, UNKNOWN = "unused", "??"
"""In place of what a node carries: no question needs it, or nothing was found."""


class NodeWords(NamedTuple):
    """What is known about a node."""

    carries: str
    """"base sum of column 3", or one of the two words above."""
    sentence: str
    fails: float | None
    """The share of questions that fail without it; none if none does, or it was not tested."""


def node_words(found: Dissection) -> dict[str, NodeWords]:
    """All nodes that were tested."""
    effects = {effect.node: effect for effect in found.nodes.nodes} if found.nodes else {}
    purposes: dict[str, list[Purpose]] = {}
    for purpose in found.subtasks.purposes if found.subtasks else []:
        for node in _members(purpose):
            purposes.setdefault(node, []).append(purpose)
    names = dict.fromkeys([*purposes, *effects])
    return {node: _words(found, node, purposes.get(node, []), effects.get(node)) for node in names}


def _words(
    found: Dissection, node: str, purposes: list[Purpose], effect: NodeEffect | None
) -> NodeWords:
    known = in_words(found.model.layout.operation)
    lines = [_purpose(purpose, node, known) for purpose in purposes]
    if effect is not None and not effect.useful:
        lines.append("Not used: no question that is answered right fails without it.")
        return NodeWords(UNUSED, " ".join(lines), None)
    if found.subtasks and not lines:
        lines.append("What it carries was not found.")
    if effect is not None:
        lines.append(_without(effect))
    carries = found.subtasks.purpose_of(node) if found.subtasks else ""
    row, layer = (int(part[1:]) for part in node.split(".")[:2])
    if layer == found.model.layers - 1:  # such a node serves one digit, which needs no name
        carries = carries.replace(f"{found.model.layout.position_names[row + 1]}.", "")
    short = in_short(carries, found.model.layout.operation)
    return NodeWords(short, " ".join(lines), effect.fails.estimate if effect else None)


def _without(effect: NodeEffect) -> str:
    fails = effect.fails
    return (
        f"Without it {brief(fails.estimate)} of questions fail ({brief(fails.low)} to "
        f"{brief(fails.high)}); digits that turn wrong: {', '.join(effect.digits)}."
    )


def _members(purpose: Purpose) -> list[str]:
    """The nodes that a purpose is about: one, or all heads that carry it together."""
    place = f"P{purpose.row}.L{purpose.layer}"
    return [f"{place}.H{head}" for head in purpose.heads] or [purpose.node]


def _purpose(purpose: Purpose, node: str, known: dict[str, str]) -> str:
    meaning = known.get(purpose.kind, purpose.variable).replace("{}", f"column {purpose.column}")
    others = [f"H{head}" for head in purpose.heads if not node.endswith(f".H{head}")]
    carries = f"Together with {' and '.join(others)} it carries" if others else "Carries"
    return (
        f"{carries} {meaning}. Put in from another question, {purpose.digit} follows it in "
        f"{brief(purpose.follows.estimate)} of pairs."
    )
