"""Which rows, tokens and attention edges the model uses: the paper's tables, and what could fail.

In: an engine, questions, and an untrained model of the same shape. Out: `RowsFinding`.

The paper ablates the residual stream after the last block, row by row, and concludes that
rows before "=" are not used and that each row computes one digit. In a one-layer model that
cannot come out otherwise, trained or not: what stands at a row after the last block reaches
the logits of that row and nothing else. So beside the paper's table stand three tests that
could have failed: attention edges from each answer row cut one by one, keys and values of
each token ablated, and, with two layers or more, rows ablated below the last layer. And all
of it again on an untrained model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec
import numpy as np

from carryscope.core.evidence import Mean, Share
from carryscope.dissection.engine import UNCHANGED, Engine
from carryscope.dissection.interventions import Ablate, Cut, How
from carryscope.dissection.samples import Samples

PAPER_THRESHOLD = 0.08
"""The paper's cut-off, in nats. It compares it with the loss; we, with the rise of the loss,
because the loss without any ablation depends on how many cascades the questions have."""

EDGE_QUESTIONS = 256
"""Questions, rich in nines, for the tests of edges and tokens, of which there are many."""

NOISE = 0.02
"""An edge counts as used only if cutting it surely changes more answers than this."""

FORCED = (
    "What stands at a row after the last block reaches the logits of that row alone. So this "
    "table has the same shape for every model, trained or not, and says nothing about "
    "how the model works. The tests of edges, tokens and lower layers could have failed."
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


class TokenEffect(msgspec.Struct, frozen=True, kw_only=True):
    """What one token offers to be read, its keys and values, ablated in one layer."""

    layer: int
    token: str
    site: str
    how: str
    flipped: dict[str, Share]
    """Answers that change, by answer token."""


class RowsFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Rows, edges and tokens."""

    seed: int
    questions: int
    edge_questions: int
    threshold: float
    clean_loss: Mean
    rows: list[RowEffect]
    edges: list[EdgeEffect]
    tokens: list[TokenEffect]
    remark: str
    untrained: RowsFinding | None
    """The same on an untrained model of this shape: the control."""
    statement: str


def study_rows(
    engine: Engine,
    samples: Samples,
    untrained: Engine | None = None,
    on_progress: Callable[[int], object] = lambda _: None,
) -> RowsFinding:
    """The paper's row table, the tests that could have failed, and both on the control."""
    clean_loss, rows = _rows(engine, samples, on_progress)
    edges = _edges(engine, samples, on_progress)
    control = study_rows(untrained, samples, None, on_progress) if untrained else None
    return RowsFinding(
        seed=samples.seed,
        questions=len(samples.varied),
        edge_questions=EDGE_QUESTIONS,
        threshold=PAPER_THRESHOLD,
        clean_loss=clean_loss,
        rows=rows,
        edges=edges,
        tokens=_tokens(engine, samples, on_progress),
        remark=FORCED,
        untrained=control,
        statement=_statement(edges, control),
    )


def _rows(
    engine: Engine, samples: Samples, on_progress: Callable[[int], object]
) -> tuple[Mean, list[RowEffect]]:
    names, last = engine.layout.position_names, engine.config.layers - 1
    ways: list[How] = ["zero", "mean"]
    wanted = [
        (layer, row, how)
        for layer in range(engine.config.layers)
        for how in ways
        for row in range(engine.config.context)
    ]
    changes = [
        Ablate(f"blocks.{layer}.hook_resid_post", (row,), how=how) for layer, row, how in wanted
    ]
    outcomes = engine.answers(samples.varied, [UNCHANGED, *changes], on_progress=on_progress)
    limit = float(outcomes.loss[0].mean()) + PAPER_THRESHOLD
    effects = [
        RowEffect(
            layer=layer,
            row=row,
            token=names[row],
            how=how,
            forced=layer == last,
            loss=Mean.measured(loss.mean(1).tolist()),
            important=bool(loss.mean() > limit),
            changed=_changed(engine.layout.answer_names, outcomes.predicted[0], said),
            patterns=_patterns(said == outcomes.truth),
        )
        for (layer, row, how), loss, said in zip(
            wanted, outcomes.loss[1:], outcomes.predicted[1:], strict=True
        )
    ]
    return Mean.measured(outcomes.loss[0].mean(1).tolist()), effects


def _changed(names: list[str], before: np.ndarray, after: np.ndarray) -> dict[str, Share]:
    counts = zip(names, (before != after).sum(0), strict=True)
    return {name: Share.measured(int(count), len(before)) for name, count in counts if count}


def _patterns(right: np.ndarray) -> dict[str, int]:
    """Wrong answers grouped by their wrong digits, the commonest group first."""
    wrong = right[~right.all(1)]
    groups = Counter("".join("y" if ok else "N" for ok in row) for row in wrong)
    return dict(sorted(groups.items(), key=lambda item: (-item[1], item[0])))


def _edges(
    engine: Engine, samples: Samples, on_progress: Callable[[int], object]
) -> list[EdgeEffect]:
    layout = engine.layout
    wanted = [
        (layer, row, key)
        for layer in range(engine.config.layers)
        for row in layout.answer_rows
        for key in range(row + 1)
    ]
    cuts = [Cut(f"blocks.{layer}.attn.hook_pattern", (row,), (key,)) for layer, row, key in wanted]
    flipped = _flipped(engine, samples, cuts, on_progress)
    return [
        EdgeEffect(
            layer=layer,
            row=row,
            answer=layout.answer_names[row - layout.first_row],
            token=layout.position_names[key],
            flipped=Share.measured(int(counts[row - layout.first_row]), EDGE_QUESTIONS),
        )
        for (layer, row, key), counts in zip(wanted, flipped, strict=True)
    ]


def _tokens(
    engine: Engine, samples: Samples, on_progress: Callable[[int], object]
) -> list[TokenEffect]:
    """The tokens of the question; those that are always the same have only a zero to go to."""
    layout = engine.layout
    wanted: list[tuple[int, int, str, How]] = [
        (layer, position, site, "mean" if "D" in layout.position_names[position] else "zero")
        for layer in range(engine.config.layers)
        for position in range(layout.first_row + 1)
        for site in ("attn.hook_k", "attn.hook_v")
    ]
    changes = [
        Ablate(f"blocks.{layer}.{site}", (position,), how=how)
        for layer, position, site, how in wanted
    ]
    flipped = _flipped(engine, samples, changes, on_progress)
    return [
        TokenEffect(
            layer=layer,
            token=layout.position_names[position],
            site=site,
            how=how,
            flipped={
                name: Share.measured(int(count), EDGE_QUESTIONS)
                for name, count in zip(layout.answer_names, counts, strict=True)
            },
        )
        for (layer, position, site, how), counts in zip(wanted, flipped, strict=True)
    ]


def _flipped(
    engine: Engine,
    samples: Samples,
    changes: list[Ablate] | list[Cut],
    on_progress: Callable[[int], object],
) -> np.ndarray:
    """How many answers change under each intervention, by answer token.

    Changes, not mistakes, are counted: an untrained model has nothing to unlearn.
    """
    questions = samples.nines_rich("edges", EDGE_QUESTIONS)
    said = engine.answers(questions, [UNCHANGED, *changes], on_progress=on_progress).predicted
    counts: np.ndarray = (said[1:] != said[0]).sum(1)
    return counts


def _statement(edges: list[EdgeEffect], control: RowsFinding | None) -> str:
    """Which tokens each answer digit depends on, and how that looks in an untrained model."""
    used: dict[str, list[EdgeEffect]] = {}
    for edge in edges:
        used.setdefault(edge.answer, []).extend([edge] if edge.flipped.low > NOISE else [])
    told = []
    for answer, cut in used.items():
        tokens = [e.token for e in sorted(cut, key=lambda e: -e.flipped.estimate)]
        told.append(f"{answer} {' '.join(dict.fromkeys(tokens)) or 'none'}")
    beside = ""
    if control:
        spread = sum(edge.flipped.low > NOISE for edge in control.edges)
        beside = f" In the untrained control it is {spread} of {len(control.edges)}."
    count = sum(map(len, used.values()))
    return (
        f"{count} of {len(edges)} edges from answer rows change answers when cut: "
        f"{'; '.join(told)}.{beside}"
    )
