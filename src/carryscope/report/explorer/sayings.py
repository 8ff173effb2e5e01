"""What the findings say about the parts of a model, in words for a person.

In: a dissection, or none. Out: data for the page. All of it is text: the page shows it as such,
whatever characters a finding holds.
"""

from __future__ import annotations

from typing import Any

from carryscope.dissection.dissect import Dissection
from carryscope.report.nodes import UNKNOWN, UNUSED, node_words

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
    words = node_words(dissection) if dissection else {}
    return {
        "looked": bool(words),
        "nodes": {node: known.sentence for node, known in words.items()},
        "carries": {node: known.carries for node, known in words.items() if _named(known.carries)},
        "roles": {
            f"L{head.layer}.H{head.head}": head.role
            for head in (attention.heads if attention else [])
            if head.role
        },
        "staircase": attention.statement if attention else "",
        "source": _source(dissection) if dissection else NOTHING,
    }


def _named(carries: str) -> bool:
    """Whether a node carries something by itself."""
    return bool(carries) and carries not in (UNUSED, UNKNOWN) and " with " not in carries


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
