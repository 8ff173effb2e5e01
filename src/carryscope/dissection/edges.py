"""Which tokens each answer digit needs: attention edges, cut one by one.

In: an engine and questions. Out: `EdgesFinding`, for the model and for an untrained one of the
same shape.

The paper ablates the residual stream after the last block, row by row, and concludes that each
row computes one digit. In a one-layer model nothing else is possible, trained or not: a row after
the last block reaches only its own logits. A cut edge can come out either way.
"""

from __future__ import annotations

from itertools import product

import msgspec
import torch

from carryscope.core.evidence import Share
from carryscope.core.progress import Advance, unheard
from carryscope.dissection.engine import UNCHANGED, Engine
from carryscope.dissection.interventions import PATTERN, Cut
from carryscope.dissection.samples import Samples
from carryscope.model.transformer import Transformer, initialise

EDGE_QUESTIONS = 256
"""Questions, rich in nines; there are many edges."""

NOISE = 0.02
"""An edge counts as used only if cutting it surely changes more answers than this."""

UNTRAINED_SEED = 0
"""The weights of the untrained control: those a training with this seed starts from."""


class EdgeEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The attention of all heads from one answer row to one token, cut."""

    layer: int
    row: int
    answer: str
    """The answer token that the row predicts."""
    token: str
    flipped: Share
    """Answers of that row that change, of all."""

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
    """Cut every edge from an answer row, in the model and in the control."""
    generator = torch.Generator().manual_seed(UNTRAINED_SEED)
    untrained = initialise(Transformer(engine.config), generator)
    found = _cut(engine, samples, advance)
    control = _cut(Engine(untrained, engine.reference[:1]), samples, advance)
    return EdgesFinding(
        questions=EDGE_QUESTIONS,
        edges=found,
        untrained=control,
        statement=_statement(found, control),
    )


def _cut(engine: Engine, samples: Samples, advance: Advance) -> list[EdgeEffect]:
    """We count changes, not mistakes, because an untrained model has no right answers to lose."""
    layout = engine.layout
    places = [
        (layer, row, key)
        for layer, row in product(range(engine.config.layers), layout.answer_rows)
        for key in range(row + 1)
    ]
    cuts = [Cut(f"blocks.{layer}.{PATTERN}", (row,), (key,)) for layer, row, key in places]
    questions = samples.nines_rich("edges", EDGE_QUESTIONS)
    clean, *said = engine.answers(questions, [UNCHANGED, *cuts], advance).predicted
    return [
        EdgeEffect(
            layer=layer,
            row=row,
            answer=layout.answer_names[row - layout.first_row],
            token=layout.position_names[key],
            flipped=Share.of_hits((one != clean)[:, row - layout.first_row]),
        )
        for (layer, row, key), one in zip(places, said, strict=True)
    ]


def _statement(edges: list[EdgeEffect], untrained: list[EdgeEffect]) -> str:
    """How many edges matter, and which tokens each answer digit depends on."""
    used = sorted((edge for edge in edges if edge.used), key=lambda e: -e.flipped.estimate)
    needs = []
    for answer in dict.fromkeys(edge.answer for edge in edges):
        tokens = dict.fromkeys(edge.token for edge in used if edge.answer == answer)
        needs.append(f"{answer} needs {' '.join(tokens) or 'none'}")
    return (
        f"Cutting {len(used)} of {len(edges)} attention edges from answer rows changes answers: "
        f"{', '.join(needs)}. In an untrained model of the same shape it is "
        f"{sum(edge.used for edge in untrained)} of {len(untrained)}."
    )
