"""`carryscope ask`: one sum, and each digit of the model's answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.table import Table

from carryscope.cli.console import print_json, screen
from carryscope.errors import CallError

if TYPE_CHECKING:
    from carryscope.model.transformer import Transformer
    from carryscope.task.questions import Questions

MOST_POSITIONS = 2
"""How many of the tokens a head attends to are named: a head reads a pair of digits."""


ANSWER_WIDTH, LOOK_WIDTH = 40, 13
"""Characters that the table of digits takes, and each head beside it."""


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


def ask(*words: Annotated[str, Parameter(allow_leading_hyphen=True)], json: bool = False) -> None:
    """Ask a model a sum and see each digit of its answer.

    Call it as `carryscope ask [RUN] "445+555"`. It shows, for each digit of the answer: the
    model's choice and its probability, the truth, the digit's task class (BA no carry
    arrives, UC1 a carry arrives, US9 it arrives at a column that sums to 9), how many
    columns of nines lie below it, and which tokens each head looks at. RUN defaults to the
    model that comes with carryscope.

    Parameters
    ----------
    words
        A run directory, if it is not the shipped model, and the sum.
    json
        Print the answer as JSON.
    """
    from carryscope.runs import SHIPPED, Run

    _check_words(words)
    run = Run(Path(words[0]) if len(words) == 2 else SHIPPED)
    model = run.model()
    if json:
        print_json(answer(model, words[-1]))
    else:
        show_answer(model, words[-1])


def _check_words(words: tuple[str, ...]) -> None:
    """Tell what is wrong with a call that is not `[RUN] SUM`."""
    for word in words:
        if word.startswith("--"):
            raise CallError(f"There is no option {word}. See carryscope ask --help.")
    if len(words) not in (1, 2):
        raise CallError(f'Call it as: carryscope ask [RUN] "445+555". Got {len(words)} arguments.')
    if len(words) == 1 and words[0] and Path(words[0]).is_dir():
        raise CallError(f'Type a sum after the run: carryscope ask {words[0]} "445+555".')
    if len(words) == 2 and "+" in words[0] and not Path(words[0]).exists():
        raise CallError(f'The run comes first: carryscope ask RUN "{words[0]}".')


def answer(model: Transformer, text: str) -> Answer:
    """The model's answer to what a person typed."""
    from carryscope.model.prediction import predict
    from carryscope.task.columns import Columns, Task
    from carryscope.task.questions import parse_question

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


def _attention(model: Transformer, question: Questions, predicted: object) -> list[list[Look]]:
    """For each answer row, where each head looks while the model reads its own answer."""
    import numpy as np
    import torch

    layout = model.config.layout
    tokens = layout.encode(question)
    layout.answer_part(tokens)[:] = np.asarray(predicted)
    names = [f"blocks.{layer}.attn.hook_pattern" for layer in range(model.config.layers)]
    with torch.inference_mode():
        _, cache = model.run_with_cache(torch.from_numpy(tokens), names)
    rows = []
    for row in layout.answer_rows:
        looks = []
        for layer, name in enumerate(names):
            for head, pattern in enumerate(cache[name][0, :, row]):
                most = sorted(pattern.topk(MOST_POSITIONS).indices.tolist())
                positions = {layout.position_names[at]: float(pattern[at]) for at in most}
                looks.append(Look(layer, head, positions))
        rows.append(looks)
    return rows


def show_answer(model: Transformer, text: str) -> None:
    """The answer as a table for a person, and beside it, or below where it is narrow, the looks."""
    given = answer(model, text)
    mark = "[green]right[/]" if given.correct else f"[red]wrong[/], it is {given.truth}"
    digits = _table(("", "says", "truth", "sure", "task", "nines"))
    looks = _table(("",))
    beside = screen.width >= ANSWER_WIDTH + LOOK_WIDTH * len(given.digits[0].attention)
    for look in given.digits[0].attention:
        layer = f"L{look.layer} " if model.config.layers > 1 else ""
        (digits if beside else looks).add_column(f"{layer}H{look.head} reads")
    for digit in given.digits:
        cells = [_look(look) for look in digit.attention]
        digits.add_row(*_cells(digit), *(cells if beside else ()))
        looks.add_row(digit.name, *(() if beside else cells))
    digits.title = f"{given.question} = {given.answer}  {mark}"
    screen.print(digits)
    if not beside:
        screen.print(looks)


def _table(columns: tuple[str, ...]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _cells(digit: Digit) -> tuple[str, ...]:
    """One answer digit, but for where the heads look."""
    colour = "green" if digit.predicted == digit.truth else "red"
    nines = "" if digit.look_ahead is None else str(digit.look_ahead)
    if digit.look_ahead:
        nines += " carry" if digit.carrying else " quiet"
    says, sure = f"[{colour}]{digit.predicted}[/]", f"{digit.probability:.1%}"
    return digit.name, says, digit.truth, sure, digit.task or "", nines


def _look(look: Look) -> str:
    """The positions a head reads, and their share of its attention."""
    return f"{' '.join(look.positions)} {sum(look.positions.values()):.0%}"
