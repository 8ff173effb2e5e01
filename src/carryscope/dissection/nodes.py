"""Every node ablated, one at a time: which questions and which digits fail.

In: an engine and questions. Out: `NodesFinding`, the numbers behind the paper's node maps.
A question fails if it was answered right before and is not any more. All teacher-forced.
Without P13.L0.H1 of the shipped model, for example, only A3 fails.
"""

from __future__ import annotations

import msgspec
from jaxtyping import Bool

from carryscope.core.evidence import Share
from carryscope.core.progress import Advance, unheard
from carryscope.core.words import percent
from carryscope.dissection.engine import UNCHANGED, Engine
from carryscope.dissection.interventions import How, all_nodes
from carryscope.dissection.samples import Samples
from carryscope.task.operation import Array

NODE_HOW: How = "mean"
"""The authors ablate nodes to their mean too."""


class NodeEffect(msgspec.Struct, frozen=True, kw_only=True):
    """What happens without one node."""

    node: str
    row: int
    layer: int
    head: int | None
    """None for the MLP."""
    fails: Share
    """Questions that fail, of those answered right with the node in place."""
    digits: dict[str, Share]
    """Answer tokens that turn wrong, for the tokens where any does."""

    @property
    def useful(self) -> bool:
        """Whether any question at all needs the node: the authors' meaning of the word."""
        return self.fails.count > 0


class NodesFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The node maps."""

    questions: int
    how: str
    clean: Share
    """Questions answered right with every node in place."""
    nodes: list[NodeEffect]
    statement: str


def study_nodes(engine: Engine, samples: Samples, advance: Advance = unheard) -> NodesFinding:
    """Ablate every node to its mean."""
    questions, nodes = samples.varied, all_nodes(engine.config)
    changes = [UNCHANGED, *(node.ablated(NODE_HOW) for node in nodes)]
    outcomes = engine.answers(questions, changes, advance)
    correct, right_before = outcomes.correct[0], outcomes.right[0]
    names = engine.layout.answer_names
    effects = [
        NodeEffect(
            node=str(node),
            row=node.row,
            layer=node.layer,
            head=node.head,
            fails=Share.of_hits(~still[correct]),
            digits=_turned(names, right_before, right),
        )
        for node, still, right in zip(nodes, outcomes.correct[1:], outcomes.right[1:], strict=True)
    ]
    return NodesFinding(
        questions=len(questions),
        how=NODE_HOW,
        clean=Share.of_hits(correct),
        nodes=effects,
        statement=_statement(effects),
    )


def _turned(
    names: list[str], before: Bool[Array, "batch answer"], after: Bool[Array, "batch answer"]
) -> dict[str, Share]:
    """Of the tokens that were right, those that are not any more."""
    lost = before & ~after
    return {
        name: Share.of_hits(lost[before[:, i], i])
        for i, name in enumerate(names)
        if lost[:, i].any()
    }


def _statement(effects: list[NodeEffect]) -> str:
    useful = [effect for effect in effects if effect.useful]
    if not useful:
        return "No node is useful: without any one of them, no question fails."
    worst = max(useful, key=lambda effect: effect.fails.estimate)
    rows = [effect.row for effect in useful]
    return (
        f"{len(useful)} of {len(effects)} nodes are useful, at rows {min(rows)} to {max(rows)}. "
        f"Without {worst.node}, {percent(worst.fails.estimate)} of the questions fail."
    )
