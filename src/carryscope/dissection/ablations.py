"""What fails without a part: attention edges cut, heads and nodes ablated, one at a time.

In: an engine and questions. Out: `EdgesFinding`, `HeadsFinding` and `NodesFinding`, which has the
numbers behind the paper's node maps. All answers are teacher-forced. In the shipped model the loss
on BA questions rises from 0.02 to 5.3 without the head that reads its own column, and without
P13.L0.H1 only A3 fails.

The paper ablates the residual stream after the last block, row by row, and concludes that each
row computes one digit. In a one-layer model nothing else is possible, trained or not: a row after
the last block reaches only its own logits. A cut edge can come out either way.
"""

from __future__ import annotations

from itertools import product

import msgspec
import torch
from jaxtyping import Bool

from carryscope.core.evidence import Mean, Share
from carryscope.core.progress import Advance, unheard
from carryscope.core.words import percent
from carryscope.dissection.attention import AttentionFinding, HeadRole, column_at, predicted_at
from carryscope.dissection.engine import UNCHANGED, Engine
from carryscope.dissection.interventions import (
    HEADS,
    PATTERN,
    Ablate,
    Cut,
    all_nodes,
    head_name,
)
from carryscope.dissection.samples import Samples
from carryscope.model.config import ModelConfig
from carryscope.model.transformer import Transformer, initialise
from carryscope.task.columns import QuestionClass
from carryscope.task.operation import Array

EDGE_QUESTIONS = 256
"""Questions, rich in nines; there are many edges."""

NOISE = 0.02
"""An edge counts as used only if cutting it surely changes more answers than this."""

UNTRAINED_SEED = 0
"""The weights of the untrained control: those a training with this seed starts from."""


class EdgeEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The attention of all heads from one row to one token, cut."""

    layer: int
    row: int
    answer: str
    """The answer token that the row predicts; at a question row its own: `at D'2`."""
    token: str
    flipped: Share
    """Answers of that row that change, of all; for a question row whole answers."""

    @property
    def used(self) -> bool:
        """Whether cutting the edge surely changes answers."""
        return self.flipped.low > NOISE


class EdgesFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Attention edges."""

    questions: int
    edges: list[EdgeEffect]
    untrained: list[EdgeEffect]
    """The same in an untrained model of this shape: the control."""
    statement: str


def study_edges(engine: Engine, samples: Samples, advance: Advance = unheard) -> EdgesFinding:
    """Cut every edge that can reach an answer, in the model and in the control."""
    generator = torch.Generator().manual_seed(UNTRAINED_SEED)
    untrained = initialise(Transformer(engine.config), generator)
    found = _cut(engine, samples, advance)
    control = _cut(Engine(untrained, engine.reference), samples, advance)
    return EdgesFinding(
        questions=EDGE_QUESTIONS,
        edges=found,
        untrained=control,
        statement=_edges_statement(found, control),
    )


def _cut(engine: Engine, samples: Samples, advance: Advance) -> list[EdgeEffect]:
    """We count changes, not mistakes, because an untrained model has no right answers to lose."""
    layout, last = engine.layout, engine.config.layers - 1
    places = [
        (layer, row, key)
        for layer in range(last + 1)
        for row in (range(layout.answer_rows.stop) if layer < last else layout.answer_rows)
        for key in range(row + 1)
    ]
    cuts = [Cut(f"blocks.{layer}.{PATTERN}", (row,), (key,)) for layer, row, key in places]
    questions = samples.nines_rich("edges", EDGE_QUESTIONS)
    clean, *said = engine.answers(questions, [UNCHANGED, *cuts], advance).predicted
    return [
        EdgeEffect(
            layer=layer,
            row=row,
            answer=predicted_at(row, layout),
            token=layout.position_names[key],
            flipped=Share.of_hits(
                changed[:, row - layout.first_row]
                if row in layout.answer_rows
                else changed.any(axis=1)
            ),
        )
        for (layer, row, key), changed in zip(places, (one != clean for one in said), strict=True)
    ]


def _edges_statement(edges: list[EdgeEffect], untrained: list[EdgeEffect]) -> str:
    used, by_chance = (sum(edge.used for edge in cut) for cut in (edges, untrained))
    return (
        f"Cutting {used} of {len(edges)} attention edges changes answers. In an "
        f"untrained model of the same shape it is {by_chance} of {len(untrained)}."
    )


class HeadEffect(msgspec.Struct, frozen=True, kw_only=True):
    """Questions of one class without one head; with no head named, the whole model."""

    layer: int | None = None
    head: int | None = None
    question_class: str
    loss: Mean
    """Mean over all answer tokens."""
    correct: Share
    """Whole answers right."""


class HeadsFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Heads by question class."""

    questions: int
    effects: list[HeadEffect]
    statement: str


def study_heads(
    engine: Engine, samples: Samples, attention: AttentionFinding, advance: Advance = unheard
) -> HeadsFinding:
    """Ablate each head to its mean at all rows."""
    config = engine.config
    rows = tuple(range(config.context))
    places = list(product(range(config.layers), range(config.heads)))
    changes = [Ablate(f"blocks.{layer}.{HEADS}", rows, (head,)) for layer, head in places]
    effects = []
    for kind, questions in samples.by_class.items():
        outcomes = engine.answers(questions, [UNCHANGED, *changes], advance)
        effects += [
            HeadEffect(
                layer=layer,
                head=head,
                question_class=kind.label,
                loss=Mean.measured(loss.mean(1).tolist()),
                correct=Share.of_hits(correct),
            )
            for (layer, head), loss, correct in zip(
                [(None, None), *places], outcomes.loss, outcomes.correct, strict=True
            )
        ]
    return HeadsFinding(
        questions=sum(map(len, samples.by_class.values())),
        effects=effects,
        statement=_heads_statement(effects, attention.heads, config),
    )


def _heads_statement(effects: list[HeadEffect], roles: list[HeadRole], config: ModelConfig) -> str:
    """The head without which BA questions lose most, if intervals say that it is one head."""
    whole, *without = (e for e in effects if e.question_class == QuestionClass.BA.label)
    first, *others = sorted(without, key=lambda effect: -effect.loss.estimate)
    if any(first.loss.low <= rival.loss.high for rival in [whole, *others]):
        return "No single head stands out for base addition."
    read = [r for r in roles if (r.layer, r.head) == (first.layer, first.head) and r.role]
    reads = f", which reads {column_at(read[0].offset)}" if read else ""
    name = head_name(first.layer or 0, first.head or 0, config.layers)
    return (
        f"Base addition needs {name}{reads}. "
        f"Without it, questions without carries (BA) have a loss of {first.loss.estimate:.3f} "
        f"instead of {whole.loss.estimate:.3f}."
    )


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
    """How nodes are ablated: to their mean, as the authors do."""
    clean: Share
    """Questions answered right with every node in place."""
    nodes: list[NodeEffect]
    statement: str


def study_nodes(engine: Engine, samples: Samples, advance: Advance = unheard) -> NodesFinding:
    """Ablate every node to its mean."""
    questions, nodes = samples.varied, all_nodes(engine.config)
    changes = [UNCHANGED, *(node.ablated() for node in nodes)]
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
        how="mean",
        clean=Share.of_hits(correct),
        nodes=effects,
        statement=_nodes_statement(effects),
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


def _nodes_statement(effects: list[NodeEffect]) -> str:
    useful = [effect for effect in effects if effect.useful]
    if not useful:
        return "No node is useful: without any one of them, no question fails."
    worst = max(useful, key=lambda effect: effect.fails.estimate)
    rows = [effect.row for effect in useful]
    return (
        f"{len(useful)} of {len(effects)} nodes are useful, at rows {min(rows)} to {max(rows)}. "
        f"Without {worst.node}, {percent(worst.fails.estimate)} of the questions fail."
    )
