"""What the findings say about the parts of a model, in words for a person.

In: a dissection, or none. Out: `Sayings`. All of it is text: the page shows it as such,
whatever characters a finding holds.
"""

from __future__ import annotations

import msgspec

from carryscope.core.words import brief
from carryscope.dissection.findings import Dissection
from carryscope.dissection.purposes import Purpose, SubtasksFinding
from carryscope.report.words import CARRIED


class Sayings(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about each part, by its name."""

    looked: bool
    """Whether anyone looked for what nodes do: then nothing said is nothing found."""
    nodes: dict[str, str]
    """A sentence or two about each node, such as `P13.L0.H2`."""
    carries: dict[str, str]
    """What a node carries, as short as can be: `BA(3)`."""
    roles: dict[str, str]
    """What each head attends to: `L0.H0` its `own column`."""
    staircase: str
    """Where the heads look, in a sentence."""
    source: str
    """What all this rests on; without findings, how to get them."""


def sayings(dissection: Dissection | None) -> Sayings:
    """What the findings say."""
    if dissection is None:
        return Sayings(
            looked=False,
            nodes={},
            carries={},
            roles={},
            staircase="",
            source=(
                "This run has no findings, so the page cannot say what each part is for. "
                "carryscope dissect RUN finds out; then write the page again."
            ),
        )
    attention = dissection.attention
    return Sayings(
        looked=dissection.nodes is not None or dissection.subtasks is not None,
        nodes=_nodes(dissection),
        carries=_carries(dissection.subtasks),
        roles={f"L{h.layer}.H{h.head}": h.role for h in attention.heads if h.role}
        if attention
        else {},
        staircase=attention.statement if attention else "",
        source=_source(dissection),
    )


def _carries(subtasks: SubtasksFinding | None) -> dict[str, str]:
    """The variables each node was found to carry by itself."""
    carried: dict[str, list[str]] = {}
    for purpose in subtasks.purposes if subtasks else []:
        if len(purpose.heads) <= 1:
            carried.setdefault(purpose.node, []).append(purpose.variable)
    return {node: ", ".join(variables) for node, variables in carried.items()}


def _nodes(dissection: Dissection) -> dict[str, str]:
    told: dict[str, list[str]] = {}
    for purpose in dissection.subtasks.purposes if dissection.subtasks else []:
        for node in _members(purpose):
            told.setdefault(node, []).append(_purpose(purpose, node))
    for effect in dissection.nodes.nodes if dissection.nodes else []:
        lines = told.setdefault(effect.node, [])
        if not effect.useful:
            lines.append("Not used: no question that is answered right fails without it.")
            continue
        if not lines and dissection.subtasks:
            lines.append("What it carries was not found.")
        lines.append(
            f"Without it {brief(effect.fails.estimate)} of questions fail "
            f"({brief(effect.fails.low)} to {brief(effect.fails.high)})."
        )
    return {node: " ".join(lines) for node, lines in told.items()}


def _members(purpose: Purpose) -> list[str]:
    """The nodes that a purpose is about: one, or all heads that carry it together."""
    place = f"P{purpose.row}.L{purpose.layer}"
    return [f"{place}.H{head}" for head in purpose.heads] or [purpose.node]


def _purpose(purpose: Purpose, node: str) -> str:
    carried = CARRIED.get(purpose.kind, purpose.variable)
    meaning = carried.replace("{column}", f"column {purpose.column}")
    others = [f"H{head}" for head in purpose.heads if not node.endswith(f".H{head}")]
    together = f", together with {' and '.join(others)}" if others else ""
    follows = brief(purpose.follows.estimate)
    return (
        f"Carries {purpose.variable}{together}: {meaning}. Put in from another question, "
        f"{purpose.digit} follows it in {follows} of pairs."
    )


def _source(dissection: Dissection) -> str:
    """The evidence behind the sentences, and what was not looked for."""
    told = []
    if dissection.subtasks:
        told.append(f"purposes by interchange ({dissection.subtasks.pairs:,} pairs of questions)")
    if dissection.nodes:
        nodes = dissection.nodes
        told.append(f"failures by {nodes.how} ablation ({nodes.questions:,} questions)")
    missing = [part for part in ("attention", "nodes", "subtasks") if not getattr(dissection, part)]
    lines = f"From the run's findings: {'; '.join(told)}; teacher-forced." if told else ""
    rest = f"Not looked for: {', '.join(missing)} (carryscope dissect RUN)." if missing else ""
    return f"{lines} {rest}".strip()
