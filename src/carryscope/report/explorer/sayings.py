"""What the findings say about the parts of a model, in words for a person.

In: a dissection, or none. Out: data for the page. All of it is text: the page shows it as such,
whatever characters a finding holds.
"""

from __future__ import annotations

from typing import Any

from carryscope.core.words import brief
from carryscope.dissection.findings import Dissection
from carryscope.dissection.purposes import Purpose, SubtasksFinding
from carryscope.report.words import CARRIED

NOTHING = (
    "This run has no findings, so the page cannot say what each part is for. "
    "carryscope dissect RUN finds out; then write the page again."
)


def sayings(dissection: Dissection | None) -> dict[str, Any]:
    """What is known about each part, by its name.

    `looked`: whether anyone looked for what nodes do; then nothing said is nothing found. `nodes`:
    a sentence or two about each, such as `P13.L0.H2`. `carries`: the same as short as can be,
    `BA(3)`. `roles`: what each head attends to. `staircase`: where they look, in a sentence.
    `source`: what all this rests on; without findings, how to get them.
    """
    attention = dissection.attention if dissection else None
    subtasks = dissection.subtasks if dissection else None
    return {
        "looked": dissection is not None and bool(dissection.nodes or subtasks),
        "nodes": _nodes(dissection) if dissection else {},
        "carries": _carries(subtasks),
        "roles": {
            f"L{head.layer}.H{head.head}": head.role
            for head in (attention.heads if attention else [])
            if head.role
        },
        "staircase": attention.statement if attention else "",
        "source": _source(dissection) if dissection else NOTHING,
    }


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
