"""One question: each digit of the model's answer, and where every head looks meanwhile.

In: a model and what a person typed. Out: `Answer`, free-running: what a user gets.
"""

from __future__ import annotations

import msgspec
import numpy as np
from jaxtyping import Float

from carryscope.dissection.attention import pattern
from carryscope.model.prediction import predict
from carryscope.model.transformer import Transformer
from carryscope.task.columns import Columns, Task
from carryscope.task.operation import Array
from carryscope.task.questions import Questions, parse_question
from carryscope.task.tokens import Format

MOST_POSITIONS = 2
"""How many of the tokens a head attends to are named: a head reads a pair of digits."""


class Look(msgspec.Struct, frozen=True):
    """Where one head looks while an answer digit is computed."""

    layer: int
    head: int
    positions: dict[str, float]
    """The positions it attends to most, with their share of its attention."""


class Digit(msgspec.Struct, frozen=True, kw_only=True):
    """One answer token."""

    name: str
    truth: str
    predicted: str
    probability: float
    """Of the token the model chose."""
    task: str | None
    """BA, UC1 or US9; none for a sign."""
    look_ahead: int | None
    carrying: bool | None
    attention: list[Look]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A model's answer to one question, free-running."""

    question: str
    truth: str
    answer: str
    correct: bool
    digits: list[Digit]


def answer(model: Transformer, text: str) -> Answer:
    """The model's answer to what a person typed."""
    layout = model.config.layout
    question = parse_question(text, layout.digits)
    given = predict(model, question, free_running=True)
    columns = Columns.of(question)
    looks = _attention(model, question, given.predicted)
    digits = []
    for place, name in enumerate(layout.answer_names):
        k = layout.answer_length - 1 - place
        is_digit = k <= layout.digits
        digits.append(
            Digit(
                name=name,
                truth=layout.symbols[given.truth[0, place]],
                predicted=layout.symbols[given.predicted[0, place]],
                probability=float(given.probability[0, place]),
                task=Task(int(columns.task[0, k])).name if is_digit else None,
                look_ahead=int(columns.look_ahead[0, k]) if is_digit else None,
                carrying=bool(columns.carrying[0, k]) if is_digit else None,
                attention=looks[place],
            )
        )
    return Answer(
        question=question.texts()[0],
        truth=layout.text(given.truth[0]),
        answer=layout.text(given.predicted[0]),
        correct=bool(given.correct[0]),
        digits=digits,
    )


def _attention(model: Transformer, question: Questions, predicted: Array) -> list[list[Look]]:
    """For each answer row, where each head looks while the model reads its own answer."""
    layout = model.config.layout
    tokens = layout.encode(question)
    layout.answer_part(tokens)[:] = predicted
    patterns = pattern(model, tokens)
    return [
        [
            _look(layer, head, patterns[layer, head, row], layout)
            for layer, head in np.ndindex(*patterns.shape[:2])
        ]
        for row in layout.answer_rows
    ]


def _look(layer: int, head: int, shares: Float[Array, " position"], layout: Format) -> Look:
    most = sorted(np.argsort(-shares, kind="stable")[:MOST_POSITIONS].tolist())
    return Look(layer, head, {layout.position_names[p]: float(shares[p]) for p in most})
