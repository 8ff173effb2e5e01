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
from jaxtyping import Float, Int

from carryscope.core.evidence import Finding
from carryscope.model.plain import PlainModel
from carryscope.task.columns import Columns, Task
from carryscope.task.operation import Array
from carryscope.task.questions import Questions, parse_question
from carryscope.task.tokens import Format

if TYPE_CHECKING:
    from carryscope.dissection.interventions import Intervention, Without
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
    """BA, UC1 or US9; none for a sign."""
    look_ahead: int | None = None
    """How many columns directly below propagate."""
    carrying: bool | None = None
    """Whether a carry arrives."""
    attention: list[Look]


class Answer(Finding, frozen=True, kw_only=True):
    """A model's answer to one question, free-running."""

    question: str
    truth: str
    answer: str
    correct: bool
    digits: list[Digit]


def answers(model: PlainModel, texts: Sequence[str]) -> list[Answer]:
    """A model's answers to sums, computed together."""
    layout = model.layout

    def read(tokens: Array) -> tuple[Array, Array]:
        logits, patterns = model(tokens)
        rows = slice(layout.first_row, -1)
        return logits[:, rows], patterns[:, :, :, rows]

    return _in_chunks(layout, texts, lambda _: read)


def answers_without(model: Transformer, texts: Sequence[str], without: Without) -> list[Answer]:
    """The same with parts of the model taken away: `H1`, `MLP`, or interventions."""
    from carryscope.dissection.interventions import check, taken_away

    changes = taken_away(without, model.config)
    for change in changes:
        check(change, model.config, len(texts))
    return _in_chunks(model.config.layout, texts, lambda chunk: _changed(model, changes, chunk))


def _in_chunks(
    layout: Format, texts: Sequence[str], reader: Callable[[slice], Read]
) -> list[Answer]:
    questions = [parse_question(text, layout.digits) for text in texts]
    given: list[Answer] = []
    for start in range(0, len(questions), CHUNK):
        chunk = slice(start, start + CHUNK)
        given += _answered(layout, Questions.joined(questions[chunk]), reader(chunk))
    return given


def _changed(model: Transformer, changes: Sequence[Intervention], chunk: slice) -> Read:
    """By the instrumented pass, because a change may also move the attention of later layers."""
    import torch

    from carryscope.dissection.hooks import hooks_for
    from carryscope.dissection.interventions import PATTERN
    from carryscope.dissection.samples import Samples

    layout, seen = model.config.layout, dict[str, torch.Tensor]()
    hooks = hooks_for(model, changes, Samples(layout.digits, REFERENCE_SEED).varied, chunk)
    names = [f"blocks.{layer}.{PATTERN}" for layer in range(model.config.layers)]

    def watch(pattern: torch.Tensor, site: Any) -> None:
        seen[site.name] = pattern[:, :, layout.first_row : -1]

    hooks += [(name, watch) for name in names]

    def read(tokens: Array) -> tuple[Array, Array]:
        with torch.inference_mode():
            logits = model.run_with_hooks(torch.from_numpy(tokens), hooks)
        patterns = torch.stack([seen[name] for name in names], dim=1)
        return logits[:, layout.first_row : -1].numpy(), patterns.numpy()

    return read


def _answered(layout: Format, questions: Questions, read: Read) -> list[Answer]:
    """Read and write until the model reads what it wrote.

    Each pass settles at least one more answer token, because no row reads a later one.
    """
    tokens = layout.encode(questions)
    written = layout.answer_part(tokens)
    truth = written.copy()
    for _ in layout.answer_names:
        logits, patterns = read(tokens)
        said = logits.argmax(-1)
        settled = np.array_equal(said[:, :-1], written[:, :-1])
        written[:] = said
        if settled:
            break
    chances = 1 / np.exp(logits - logits.max(-1, keepdims=True)).sum(-1)
    columns = Columns.of(questions)
    return [
        Answer(
            question=text,
            truth=layout.text(truth[i]),
            answer=layout.text(said[i]),
            correct=bool((truth[i] == said[i]).all()),
            digits=[
                Digit(
                    name=name,
                    truth=layout.symbols[truth[i, place]],
                    predicted=layout.symbols[said[i, place]],
                    probability=float(chances[i, place]),
                    attention=_looks(layout, patterns[i, :, :, place]),
                    **_needs(columns, i, layout.answer_length - 1 - place),
                )
                for place, name in enumerate(layout.answer_names)
            ],
        )
        for i, text in enumerate(questions.texts())
    ]


def _needs(columns: Columns, i: int, digit: int) -> dict[str, Any]:
    """What one answer digit needs; nothing is known of a sign."""
    if digit > columns.digits:
        return {}
    return {
        "task": Task(int(columns.task[i, digit])).name,
        "look_ahead": int(columns.look_ahead[i, digit]),
        "carrying": bool(columns.carry_in[i, digit]),
    }


def _looks(layout: Format, shares: Float[Array, "layer head position"]) -> list[Look]:
    looks = []
    for layer, head in np.ndindex(*shares.shape[:2]):
        ours = shares[layer, head]
        most = sorted(np.argsort(-ours, kind="stable")[:MOST_POSITIONS].tolist())
        named = {layout.position_names[p]: float(ours[p]) for p in most}
        looks.append(Look(layer, head, named))
    return looks
