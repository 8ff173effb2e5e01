"""`carryscope ask`: one sum, and each digit of the model's answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.table import Table

from carryscope.cli.console import print_json, screen
from carryscope.core.errors import CallError

if TYPE_CHECKING:
    from carryscope.dissection.asking import Digit, Look
    from carryscope.model.transformer import Transformer

ANSWER_WIDTH, LOOK_WIDTH = 40, 13
"""Characters that the table of digits takes, and each head beside it."""

SIGNS = ("+", "=")
"""Positions whose names could be read as something done to the others."""


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
    from carryscope.dissection.asking import answer
    from carryscope.stages import SHIPPED, Run

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
        raise CallError(
            f'Call it as: carryscope ask [RUN] "445+555", with the sum in quotes. '
            f"Got {len(words)} arguments."
        )
    if len(words) == 1 and words[0] and Path(words[0]).is_dir():
        raise CallError(f'Type a sum after the run: carryscope ask {words[0]} "445+555".')
    if len(words) == 2 and "+" in words[0] and not Path(words[0]).exists():
        raise CallError(f'The run comes first: carryscope ask RUN "{words[0]}".')


def show_answer(model: Transformer, text: str) -> None:
    """The answer as a table for a person, and beside it, or below where it is narrow, the looks."""
    from carryscope.dissection.asking import answer

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
    named = [f'"{name}"' if name in SIGNS else name for name in look.positions]
    return f"{' '.join(named)} {sum(look.positions.values()):.0%}"
