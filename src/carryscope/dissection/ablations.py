"""What fails without a part: attention edges cut, nodes ablated, one at a time.

In: an engine and questions. Out: `EdgesFinding` and `NodesFinding`, which has the numbers behind
the paper's node maps. All answers are teacher-forced. In the shipped model only A3 fails without
P13.L0.H1.

The paper ablates the residual stream after the last block, row by row, and concludes that each
row computes one digit. In a one-layer model nothing else is possible, trained or not: a row after
the last block reaches only its own logits. A cut edge can come out either way.
"""

from __future__ import annotations

import msgspec
import torch
from jaxtyping import Bool

from carryscope.core.evidence import Share
from carryscope.core.progress import Advance, unheard
from carryscope.core.words import percent
from carryscope.dissection.attention import predicted_at
from carryscope.dissection.engine import UNCHANGED, Engine
from carryscope.dissection.interventions import PATTERN, Cut, all_nodes, head_name
from carryscope.dissection.samples import Samples
from carryscope.model.config import ModelConfig
from carryscope.model.transformer import Transformer, initialise
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
        statement=_nodes_statement(effects, engine.config),
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


def _nodes_statement(effects: list[NodeEffect], config: ModelConfig) -> str:
    useful = [effect for effect in effects if effect.useful]
    if not useful:
        return "No node is useful: without any one of them, no question fails."
    worst = max(useful, key=lambda effect: effect.fails.estimate)
    names, rows = config.layout.row_names, [effect.row for effect in useful]
    part = "the MLP" if worst.head is None else head_name(worst.layer, worst.head, config.layers)
    return (
        f"{len(useful)} of {len(effects)} nodes are useful, at rows {names[min(rows)]} to "
        f"{names[max(rows)]}. Without {part} at row {names[worst.row]}, "
        f"{percent(worst.fails.estimate)} of the questions fail."
    )
