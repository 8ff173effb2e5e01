"""Every node ablated, one at a time: which questions and which digits fail.

In: an engine and questions. Out: `NodesFinding`, the numbers behind the paper's node maps.
A question fails if it was answered right before and is not any more. All teacher-forced.
Without P13.L0.H1 of the shipped model, for example, only A3 fails.
"""

from __future__ import annotations

import msgspec
import numpy as np
from jaxtyping import Bool

from carryscope.core.evidence import Share
from carryscope.core.progress import Advance, unheard
from carryscope.dissection.engine import UNCHANGED, Engine, by_token, hit
from carryscope.dissection.interventions import How, all_nodes
from carryscope.dissection.samples import Samples
from carryscope.task.columns import Columns
from carryscope.task.operation import Array

NODE_HOW: How = "mean"
"""The authors ablate nodes to their mean too."""

MOST_TRAVELLED = 5
"""The authors' highest complexity, S5: a carry that passes four columns or more."""


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
    complexity: dict[str, int]
    """Failing questions by the authors' complexity: S0 no carry, S1 a carry used where it is
    made, S2 one that passes one nine, .., S5 four nines or more."""

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
    unused_rows: list[int]
    """Rows at which no node is useful. In the last layer only answer rows can be."""
    statement: str


def study_nodes(engine: Engine, samples: Samples, advance: Advance = unheard) -> NodesFinding:
    """Ablate every node to its mean."""
    questions, nodes = samples.varied, all_nodes(engine.config)
    changes = [UNCHANGED, *(node.ablated(NODE_HOW) for node in nodes)]
    outcomes = engine.answers(questions, changes, advance)
    correct, right_before = outcomes.correct[0], outcomes.right[0]
    columns, names = Columns.of(questions), engine.layout.answer_names
    effects = []
    for node, still, right in zip(nodes, outcomes.correct[1:], outcomes.right[1:], strict=True):
        failing = correct & ~still
        effects.append(
            NodeEffect(
                node=str(node),
                row=node.row,
                layer=node.layer,
                head=node.head,
                fails=Share.of_hits(failing[correct]),
                digits=hit(by_token(names, right_before & ~right, right_before)),
                complexity=_complexity(columns, failing),
            )
        )
    used = {effect.row for effect in effects if effect.useful}
    return NodesFinding(
        questions=len(questions),
        how=NODE_HOW,
        clean=Share.of_hits(correct),
        nodes=effects,
        unused_rows=[row for row in range(engine.config.context) if row not in used],
        statement=_statement(effects),
    )


def _complexity(columns: Columns, failing: Bool[Array, " batch"]) -> dict[str, int]:
    """The authors' complexity: the longest distance that a carry travels."""
    travelled = (
        np.where(columns.carry_in, columns.look_ahead + 1, 0).max(1).clip(max=MOST_TRAVELLED)
    )
    counts = np.bincount(travelled[failing])
    return {f"S{level}": int(count) for level, count in enumerate(counts) if count}


def _statement(effects: list[NodeEffect]) -> str:
    useful = [effect for effect in effects if effect.useful]
    if not useful:
        return "No node is useful: without any one of them, no question fails."
    worst = max(useful, key=lambda effect: effect.fails.estimate)
    rows = [effect.row for effect in useful]
    return (
        f"{len(useful)} of {len(effects)} nodes are useful, at rows {min(rows)} to {max(rows)}. "
        f"Without {worst.node}, {worst.fails.estimate:.0%} of the questions fail."
    )
