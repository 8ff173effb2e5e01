"""Which rows and attention edges the model uses.

In: an engine and questions. Out: `RowsFinding`, for the model and for an untrained one of the
same shape.

The paper ablates the residual stream after the last block, row by row. It concludes that rows
before "=" are not used and that each row computes one digit. In a one-layer model nothing else
is possible, trained or not: a row after the last block reaches only its own logits. So next to
the paper's table there are two tests that could fail. We cut attention edges from each answer
row one by one. With two layers or more, we ablate rows below the last layer.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import get_args

import msgspec
import torch
from jaxtyping import Bool

from carryscope.core.evidence import Mean, Share
from carryscope.core.progress import Advance, unheard
from carryscope.dissection.engine import UNCHANGED, Engine, by_token, hit
from carryscope.dissection.interventions import PATTERN, Ablate, Cut, How
from carryscope.dissection.samples import Samples
from carryscope.model.transformer import Transformer, initialise
from carryscope.task.operation import Array

PAPER_THRESHOLD = 0.08
"""The paper's cut-off, in nats. The paper compares it with the loss. We compare it with the rise
of the loss, because the clean loss depends on how many cascades the questions have."""

EDGE_QUESTIONS = 256
"""Questions, rich in nines, for the tests of edges, of which there are many."""

NOISE = 0.02
"""An edge counts as used only if cutting it surely changes more answers than this."""

UNTRAINED_SEED = 0
"""The weights of the untrained control: those a training with this seed starts from."""

FORCED = (
    "A row after the last block reaches only its own logits. So this table has the same shape "
    "for every model, trained or not, and says nothing about how the model works. The tests of "
    "edges and lower layers could have failed."
)


class RowEffect(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the residual stream after one block, ablated."""

    layer: int
    row: int
    token: str
    how: str
    forced: bool
    """Whether the answer rows it can reach follow from the architecture (the last block)."""
    loss: Mean
    important: bool
    """The loss rises by more than the threshold."""
    changed: dict[str, Share]
    """Answers that change at all, for the answer tokens where any does."""
    patterns: dict[str, int]
    """Wrong answers by which digits are wrong: `yyNyyy` has the third one wrong."""


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


class RowsFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Rows and edges."""

    questions: int
    edge_questions: int
    threshold: float
    clean_loss: Mean
    rows: list[RowEffect]
    edges: list[EdgeEffect]
    remark: str
    untrained: RowsFinding | None
    """The same on an untrained model of this shape: the control."""
    statement: str


def study_rows(engine: Engine, samples: Samples, advance: Advance = unheard) -> RowsFinding:
    """The paper's row table and the tests that could fail, on the model and on the control."""
    found = _measured(engine, samples, advance)
    generator = torch.Generator().manual_seed(UNTRAINED_SEED)
    untrained = initialise(Transformer(engine.config), generator)
    control = _measured(Engine(untrained, engine.reference), samples, advance)
    used, of = sum(edge.used for edge in control.edges), len(control.edges)
    statement = f"{found.statement} In an untrained model of the same shape it is {used} of {of}."
    return msgspec.structs.replace(found, untrained=control, statement=statement)


def _measured(engine: Engine, samples: Samples, advance: Advance) -> RowsFinding:
    clean_loss, rows = _rows(engine, samples, advance)
    edges = _edges(engine, samples, advance)
    return RowsFinding(
        questions=len(samples.varied),
        edge_questions=EDGE_QUESTIONS,
        threshold=PAPER_THRESHOLD,
        clean_loss=clean_loss,
        rows=rows,
        edges=edges,
        remark=FORCED,
        untrained=None,
        statement=_statement(edges),
    )


def _rows(engine: Engine, samples: Samples, advance: Advance) -> tuple[Mean, list[RowEffect]]:
    config, layout = engine.config, engine.layout
    places = list(product(range(config.layers), get_args(How), range(config.context)))
    changes = [
        Ablate(f"blocks.{layer}.hook_resid_post", (row,), how=how) for layer, how, row in places
    ]
    outcomes = engine.answers(samples.varied, [UNCHANGED, *changes], advance)
    clean, limit = outcomes.predicted[0], float(outcomes.loss[0].mean()) + PAPER_THRESHOLD
    effects = [
        RowEffect(
            layer=layer,
            row=row,
            token=layout.position_names[row],
            how=how,
            forced=layer == config.layers - 1,
            loss=Mean.measured(loss.mean(1).tolist()),
            important=bool(loss.mean() > limit),
            changed=hit(by_token(layout.answer_names, said != clean)),
            patterns=_patterns(said == outcomes.truth),
        )
        for (layer, how, row), loss, said in zip(
            places, outcomes.loss[1:], outcomes.predicted[1:], strict=True
        )
    ]
    return Mean.measured(outcomes.loss[0].mean(1).tolist()), effects


def _patterns(right: Bool[Array, "batch answer"]) -> dict[str, int]:
    """Wrong answers grouped by their wrong digits, the commonest group first."""
    wrong = right[~right.all(1)]
    groups = Counter("".join("y" if ok else "N" for ok in row) for row in wrong)
    return dict(sorted(groups.items(), key=lambda item: (-item[1], item[0])))


def _edges(engine: Engine, samples: Samples, advance: Advance) -> list[EdgeEffect]:
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


def _statement(edges: list[EdgeEffect]) -> str:
    """How many edges matter, and which tokens each answer digit depends on."""
    used = {edge.answer: [e for e in edges if e.answer == edge.answer and e.used] for edge in edges}
    needs = []
    for answer, its in used.items():
        tokens = [edge.token for edge in sorted(its, key=lambda e: -e.flipped.estimate)]
        needs.append(f"{answer} needs {' '.join(dict.fromkeys(tokens)) or 'none'}")
    return (
        f"Cutting {sum(map(len, used.values()))} of {len(edges)} attention edges from answer rows "
        f"changes answers: {', '.join(needs)}."
    )
