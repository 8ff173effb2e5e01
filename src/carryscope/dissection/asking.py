"""Questions as a person types them: each digit of the answer, and where every head looks.

In: a model and sums as text. Out: an `Answer` for each, free-running: the model reads its own
digits, as it does for a user.

    answers(PlainModel.read(directory), ["445+555"])
    answers_without(model, ["23816+15327"], "H1")

torch is loaded only to take parts of a model away: a plain question is answered in numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from jaxtyping import Bool, Float, Int

from carryscope.core.evidence import Finding
from carryscope.dissection.explaining import Explanation, digit_shares, explain
from carryscope.dissection.interventions import (
    HEADS,
    Intervention,
    Without,
    check,
    layer_and_part,
    taken_away,
)
from carryscope.model.config import ModelConfig
from carryscope.model.plain import PlainModel
from carryscope.task.columns import Columns
from carryscope.task.operation import Array
from carryscope.task.questions import Questions
from carryscope.task.tokens import Format

if TYPE_CHECKING:
    from carryscope.dissection.engine import Engine
    from carryscope.model.transformer import Transformer

CHUNK = 512
"""Questions that are answered together."""

MOST_POSITIONS = 2
"""How many of the tokens a head attends to are named: a head reads a pair of digits."""

REFERENCE_SEED = 0
"""Mean ablation takes the mean over the varied questions of this seed."""

Read = Callable[[Int[Array, "batch position"]], tuple[Array, Array]]
"""From tokens to the logits and the attention patterns of the answer rows."""


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
    task: str | None = None
    """BA, UC1 or US9; in subtraction MD, UB or UZ; none for a sign."""
    look_ahead: int | None = None
    """How many columns directly below propagate."""
    carrying: bool | None = None
    """Whether a carry arrives."""
    attention: list[Look]
    explanation: Explanation | None = None
    """Why it is wrong; none for a right digit, or a sign."""


class Answer(Finding, frozen=True, kw_only=True):
    """A model's answer to one question, free-running."""

    question: str
    truth: str
    answer: str
    correct: bool
    digits: list[Digit]


def answers(model: PlainModel, texts: Sequence[str]) -> list[Answer]:
    """A model's answers to sums, computed together."""

    def read(tokens: Array) -> tuple[Array, Array]:
        logits, patterns = model(tokens)
        rows = slice(model.layout.first_row, -1)
        return logits[:, rows], patterns[:, :, :, rows]

    return _in_chunks(model.config, texts, lambda _: read, _silenced([], model.config))


def answers_without(model: Transformer, texts: Sequence[str], without: Without) -> list[Answer]:
    """The same with parts of the model taken away: `H1`, `MLP`, or interventions."""
    from carryscope.dissection.engine import Engine
    from carryscope.dissection.samples import Samples

    config = model.config
    changes = taken_away(without, config)
    for change in changes:
        check(change, config, len(texts))
    engine = Engine(model, Samples.of(config.layout, REFERENCE_SEED).varied)
    silent = _silenced(changes, config)
    return _in_chunks(config, texts, lambda chunk: _changed(engine, changes, chunk), silent)


def _silenced(
    changes: Sequence[Intervention], config: ModelConfig
) -> Bool[Array, "layer head answer 1"]:
    """Heads whose output is replaced at an answer row: it does not matter what they read there."""
    rows = config.layout.answer_rows
    silent = np.zeros((config.layers, config.heads, len(rows), 1), dtype=bool)
    for change in changes:
        layer, part = layer_and_part(change, config)
        if part == HEADS:
            heads = range(config.heads) if change.heads is None else change.heads
            places = [row - rows.start for row in change.rows if row in rows]
            silent[layer][np.ix_(heads, places)] = True
    return silent


def _in_chunks(
    config: ModelConfig, texts: Sequence[str], reader: Callable[[slice], Read], silent: Array
) -> list[Answer]:
    questions = [config.layout.parse(text) for text in texts]
    given: list[Answer] = []
    for start in range(0, len(questions), CHUNK):
        chunk = slice(start, start + CHUNK)
        given += _answered(config, Questions.joined(questions[chunk]), reader(chunk), silent)
    return given


def _changed(engine: Engine, changes: Sequence[Intervention], chunk: slice) -> Read:
    def read(tokens: Array) -> tuple[Array, Array]:
        logits, patterns = engine.reading(tokens, tuple(changes), chunk)
        return logits.numpy(), patterns.numpy()

    return read


def _answered(config: ModelConfig, questions: Questions, read: Read, silent: Array) -> list[Answer]:
    """Read and write until the model reads what it wrote.

    Each pass settles at least one more answer token, because no row reads a later one. In the
    first pass the model reads the true digits.
    """
    tokens = config.layout.encode(questions)
    written = config.layout.answer_part(tokens)
    truth, passes = written.copy(), list[Array]()
    for _ in config.layout.answer_names:
        logits, patterns = read(tokens)
        passes.append(logits.argmax(-1))
        settled = np.array_equal(passes[-1][:, :-1], written[:, :-1])
        written[:] = passes[-1]
        if settled:
            break
    chances = 1 / np.exp(logits - logits.max(-1, keepdims=True)).sum(-1)
    shares = digit_shares(np.where(silent, 0.0, patterns), config.layout)
    text, symbols = config.layout.text, config.layout.symbols

    def digit(i: int, place: int, columns: Columns) -> Digit:
        k = config.layout.answer_length - 1 - place
        needs, wrong = _needs(columns, k), written[i, place] != truth[i, place]
        said, misled = symbols[written[i, place]], bool(passes[0][i, place] == truth[i, place])
        return Digit(
            name=config.layout.answer_names[place],
            truth=symbols[truth[i, place]],
            predicted=said,
            probability=float(chances[i, place]),
            attention=_looks(config.layout, patterns[i, :, :, place]),
            explanation=explain(columns, k, said, shares[i, :, :, k], config, misled=misled)
            if needs and wrong
            else None,
            **needs,
        )

    def answer(i: int, question: Questions) -> Answer:
        columns = Columns.of(question)
        return Answer(
            question=question.texts()[0],
            truth=text(truth[i]),
            answer=text(written[i]),
            correct=bool((truth[i] == written[i]).all()),
            digits=[digit(i, place, columns) for place in range(config.layout.answer_length)],
        )

    return [answer(i, questions[i : i + 1]) for i in range(len(questions))]


def _needs(columns: Columns, digit: int) -> dict[str, Any]:
    """What an answer digit of one question needs; nothing is known of a sign."""
    if digit > columns.digits:
        return {}
    return {
        "task": next(t for t in columns.operation.classes if columns.in_task(t)[0, digit]),
        "look_ahead": int(columns.look_ahead[0, digit]),
        "carrying": bool(columns.carry_in[0, digit]),
    }


def _looks(layout: Format, shares: Float[Array, "layer head position"]) -> list[Look]:
    looks = []
    for layer, head in np.ndindex(*shares.shape[:2]):
        ours = shares[layer, head]
        most = sorted(np.argsort(-ours, kind="stable")[:MOST_POSITIONS].tolist())
        named = {layout.position_names[p]: float(ours[p]) for p in most}
        looks.append(Look(layer, head, named))
    return looks
