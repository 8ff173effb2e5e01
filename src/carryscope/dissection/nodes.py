"""Every node taken away, one at a time: what fails, which digits, which questions.

In: an engine and questions. Out: `NodesFinding`, the numbers behind the paper's node maps.
A question counts as failing if it was answered right and no longer is; all teacher-forced.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from carryscope.core.evidence import Share
from carryscope.dissection.engine import UNCHANGED, Engine
from carryscope.dissection.interventions import How, all_nodes
from carryscope.dissection.samples import Samples
from carryscope.task.columns import Columns, QuestionClass

NODE_HOW: How = "mean"
"""As the authors ablate nodes."""


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
    classes: dict[str, Share]
    """Questions that fail by question class, for the classes where any does."""
    complexity: dict[str, int]
    """Failing questions by the authors' complexity: S0 no carry, S1 a carry used where it is
    made, S2 one that passes one nine, .., S5 four nines or more."""

    @property
    def useful(self) -> bool:
        """Whether any question at all needs the node: the authors' meaning of the word."""
        return self.fails.count > 0


class NodesFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The node maps."""

    seed: int
    questions: int
    how: str
    clean: Share
    """Questions answered right with every node in place."""
    nodes: list[NodeEffect]
    unused_rows: list[int]
    """Rows at which no node is useful. In the last layer only answer rows can be."""
    statement: str


def study_nodes(
    engine: Engine, samples: Samples, on_progress: Callable[[int], object] = lambda _: None
) -> NodesFinding:
    """Ablate every node to its mean."""
    questions, nodes = samples.varied, all_nodes(engine.config)
    changes = [UNCHANGED, *(node.ablated(NODE_HOW) for node in nodes)]
    outcomes = engine.answers(questions, changes, on_progress=on_progress)
    correct, right_before = outcomes.correct[0], outcomes.right[0]
    columns = Columns.of(questions)
    effects = [
        NodeEffect(
            node=str(node),
            row=node.row,
            layer=node.layer,
            head=node.head,
            fails=Share.measured(int((correct & ~still).sum()), int(correct.sum())),
            digits=_digits(engine.layout.answer_names, right_before, right),
            classes=_classes(columns, correct, correct & ~still),
            complexity=_complexity(columns, correct & ~still),
        )
        for node, still, right in zip(nodes, outcomes.correct[1:], outcomes.right[1:], strict=True)
    ]
    used = {effect.row for effect in effects if effect.useful}
    return NodesFinding(
        seed=samples.seed,
        questions=len(questions),
        how=NODE_HOW,
        clean=Share.measured(int(correct.sum()), len(correct)),
        nodes=effects,
        unused_rows=[row for row in range(engine.config.context) if row not in used],
        statement=_statement(effects),
    )


def _digits(names: list[str], before: np.ndarray, after: np.ndarray) -> dict[str, Share]:
    lost = (before & ~after).sum(0)
    shares = zip(names, lost, before.sum(0), strict=True)
    return {name: Share.measured(int(count), int(of)) for name, count, of in shares if count}


def _classes(columns: Columns, before: np.ndarray, failing: np.ndarray) -> dict[str, Share]:
    of_kind = {kind.label: columns.question_class == kind for kind in QuestionClass}
    return {
        name: Share.measured(int((failing & mask).sum()), int((before & mask).sum()))
        for name, mask in of_kind.items()
        if (failing & mask).any()
    }


def _complexity(columns: Columns, failing: np.ndarray) -> dict[str, int]:
    """The authors' complexity: by the longest distance that a carry travels."""
    travelled = np.where(columns.carry_in, columns.look_ahead + 1, 0).max(1).clip(max=5)
    counts = np.bincount(travelled[failing], minlength=6)
    return {f"S{level}": int(count) for level, count in enumerate(counts) if count}


def _statement(effects: list[NodeEffect]) -> str:
    useful = [effect for effect in effects if effect.useful]
    if not useful:
        return "No node is useful: no question that was answered right fails without one."
    worst = max(useful, key=lambda effect: effect.fails.estimate)
    return (
        f"{len(useful)} of {len(effects)} nodes are useful, at rows "
        f"{min(e.row for e in useful)} to {max(e.row for e in useful)}. Without {worst.node}, "
        f"{worst.fails.estimate:.0%} of the questions fail."
    )
