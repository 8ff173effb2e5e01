"""Where the heads look: patterns by question class, the column each head reads, the staircase.

In: an engine and questions. Out: `AttentionFinding`.

At the row that predicts A3, a head of the paper's model attends to one pair of tokens: D3 and
D'3, or D2 and D'2, or D1 and D'1. One row on, it attends to the pair to the right. Drawn with
rows downwards this is a staircase. A head is named by its *offset*: how many columns below its
answer digit it reads.
"""

from __future__ import annotations

from itertools import count

import msgspec
import numpy as np
import torch
from jaxtyping import Float

from carryscope.core.evidence import Mean
from carryscope.core.progress import Advance, unheard
from carryscope.core.words import NUMBERS, listed, percent
from carryscope.dissection.comparing import comparison_statement, comparisons
from carryscope.dissection.engine import Engine
from carryscope.dissection.explaining import READS, column_shares, digit_shares
from carryscope.dissection.interventions import head_name
from carryscope.dissection.samples import Samples
from carryscope.model.config import ModelConfig
from carryscope.task.operation import Array
from carryscope.task.questions import Questions
from carryscope.task.tokens import Format

TOP_TOKENS, LEAST_SHARE = 4, 0.01
"""Like the authors, we name the four tokens a head attends to most, from 1 % on."""

STEPS = 2 / 3
"""A head has a staircase if it reads its column in at least this share of the rows."""

LEAST_ROWS = 2
"""And in at least this many rows: one row is not a staircase."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What one head reads at one row, on average over the questions."""

    layer: int
    head: int
    row: int
    answer: str
    """The answer token that the row predicts; at a question row its own: `at D'2`."""
    tokens: dict[str, float]
    """The tokens attended to most, with their shares."""
    column: int | None
    """The column that gets more than half of the attention, if one does."""
    top_column: int
    """The column that gets most."""
    share: Mean
    """The share of attention that the top column's two tokens get."""


class HeadRole(msgspec.Struct, frozen=True, kw_only=True):
    """One head, named by what it attends to. Head numbers mean nothing between seeds."""

    layer: int
    head: int
    offset: int
    """How many columns below its answer digit the head reads, as nearly as can be said."""
    role: str | None
    """`own column`, `one below`, ...; none if the head has no staircase."""
    rows: int
    """Answer rows at which it reads just that column,"""
    of: int
    """of the rows at which there is such a column."""
    sharpness: float
    """Mean share of attention that the column gets over those rows."""


class AttentionFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Where the heads look."""

    questions: int
    patterns: dict[str, list[list[list[list[float]]]]]
    """By question class: layer, head, answer row, position. Means over the class."""
    questions_by_class: dict[str, int]
    readings: list[Reading]
    """At the answer rows."""
    heads: list[HeadRole]
    staircase: str
    """`present`: two heads of a layer or more, each with its own offset. `partial`: one offset
    only. `absent`: no head has a staircase."""
    statement: str
    question_readings: list[Reading] = []
    """At the question rows, in layers below the last: only they can reach an answer."""

    def reach(self, digit: int) -> int:
        """How many columns directly below a digit are read at its row, without a gap."""
        read = {reading.column for reading in self.readings if reading.answer == f"A{digit}"}
        return next(r for r in count() if digit - 1 - r not in read)


def study_attention(
    engine: Engine, samples: Samples, advance: Advance = unheard
) -> AttentionFinding:
    """Watch every head at every row that can reach an answer."""
    patterns = {
        kind.label: _answer_patterns(engine, questions, advance)
        for kind, questions in samples.by_class.items()
    }
    everything = np.concatenate(list(patterns.values()))
    shares = digit_shares(everything, engine.layout).mean(0)
    places = np.ndindex(*shares.shape[:2])
    heads = [_role(layer, head, shares[layer, head]) for layer, head in places]
    asked = Questions.joined(list(samples.by_class.values()))
    compared = comparisons(everything, asked, engine.layout)
    return AttentionFinding(
        questions=len(everything),
        patterns={name: values.mean(0).round(4).tolist() for name, values in patterns.items()},
        questions_by_class={name: len(values) for name, values in patterns.items()},
        readings=_readings(everything, engine.layout, engine.layout.first_row),
        heads=heads,
        staircase=_verdict(heads),
        statement=f"{_statement(heads, engine.config)} {comparison_statement(compared)}".strip(),
        question_readings=_at_question_rows(engine, samples),
    )


def _at_question_rows(engine: Engine, samples: Samples) -> list[Reading]:
    first = engine.layout.first_row
    if engine.config.layers == 1:
        return []
    shares = [
        torch.stack([s.scores[:, :first].softmax(-1).transpose(1, 2) for s in state.layers[:-1]], 1)
        for state in engine.captures(samples.varied)
    ]
    return _readings(torch.cat(shares).numpy(), engine.layout, 0)


def _answer_patterns(
    engine: Engine, questions: Questions, advance: Advance
) -> Float[Array, "batch layer head answer position"]:
    chunks = []
    for state in engine.captures(questions):
        chunks.append(state.patterns().numpy())
        advance(len(chunks[-1]))
    return np.concatenate(chunks)


def _readings(patterns: Array, layout: Format, first_row: int) -> list[Reading]:
    """What each head reads at the rows from `first_row` on."""
    shares, mean = column_shares(patterns, layout), patterns.mean(0)
    readings = []
    for layer, head, place in np.ndindex(*mean.shape[:3]):
        row = first_row + place
        attended = mean[layer, head, place]
        most = [p for p in np.argsort(-attended)[:TOP_TOKENS] if attended[p] >= LEAST_SHARE]
        top = int(shares[:, layer, head, place].mean(0).argmax())
        share = Mean.measured(shares[:, layer, head, place, top].tolist())
        readings.append(
            Reading(
                layer=layer,
                head=head,
                row=row,
                answer=predicted_at(row, layout),
                tokens={layout.position_names[p]: round(float(attended[p]), 4) for p in most},
                column=top if share.estimate > READS else None,
                top_column=top,
                share=share,
            )
        )
    return readings


def predicted_at(row: int, layout: Format) -> str:
    """The answer token that a row predicts; a question row, which predicts none, is `at D'2`."""
    names = layout.position_names
    return names[row + 1] if row in layout.answer_rows else f"at {names[row]}"


def _role(layer: int, head: int, shares: Float[Array, "digit column"]) -> HeadRole:
    """The offset at which a head sees most, and whether it steps along with it."""
    digits = shares.shape[1]

    def steps(offset: int) -> list[tuple[int, int]]:
        return [(k, k - offset) for k in range(digits + 1) if 0 <= k - offset < digits]

    def sharpness(offset: int) -> float:
        return float(np.mean([shares[step] for step in steps(offset)]))

    least_rows = min(3, digits)
    offsets = [o for o in range(1 - digits, digits + 1) if len(steps(o)) >= least_rows]
    best = max(offsets, key=sharpness)
    of = len(steps(best))
    rows = sum(shares[k].argmax() == i and shares[k, i] > READS for k, i in steps(best))
    return HeadRole(
        layer=layer,
        head=head,
        offset=best,
        role=role_name(best) if rows >= max(STEPS * of, LEAST_ROWS) else None,
        rows=int(rows),
        of=of,
        sharpness=round(sharpness(best), 4),
    )


def role_name(offset: int) -> str:
    """An offset in words: `own column`, `two below`."""
    size = abs(offset)
    number = NUMBERS[size] if size < len(NUMBERS) else str(size)
    return "own column" if offset == 0 else f"{number} {'below' if offset > 0 else 'above'}"


def column_at(offset: int) -> str:
    """The column at an offset, in a sentence."""
    return "the digit's own column" if offset == 0 else f"the column {role_name(offset)}"


def _verdict(heads: list[HeadRole]) -> str:
    steps = {(head.layer, head.offset) for head in heads if head.role is not None}
    layers = [layer for layer, _ in steps]
    if not steps:
        return "absent"
    return "present" if len(set(layers)) < len(layers) else "partial"


def _statement(heads: list[HeadRole], config: ModelConfig) -> str:
    def name(head: HeadRole) -> str:
        return head_name(head.layer, head.head, config.layers)

    stepping = [head for head in heads if head.role is not None]
    if not stepping:
        best = max(heads, key=lambda head: head.sharpness)
        return (
            "There is no staircase: no head reads one column at each row. The nearest is "
            f"{name(best)}. Its best column gets {percent(best.sharpness)} of its attention."
        )
    said = [
        f"{name(head)} reads {column_at(head.offset)} ({percent(head.sharpness)} of its attention)"
        for head in stepping
    ]
    rest = [name(head) for head in heads if head.role is None]
    without = f" No single column gets the attention of {listed(rest)}." if rest else ""
    return (
        f"To write a digit, {listed(said)}. From row to row they step one column to the right."
        f"{without}"
    )
