"""Answers of a model: one of them digit by digit, or many in a table. In: `Answer`s. Out: parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from carryscope.core.words import brief
from carryscope.dissection.interventions import head_name
from carryscope.report.parts import Part, Text
from carryscope.report.tables import Table, Wrong
from carryscope.report.words import carry, nines, spoken_of
from carryscope.task.operation import Operation, State, Words

if TYPE_CHECKING:
    from carryscope.dissection.asking import Answer, Digit, Look

SIGNS = ("+", "-", "±", "=")
"""Positions whose names could be read as something done to the others."""


def answer_parts(given: Answer) -> list[Part]:
    """The answer and why it is wrong, then each digit and where the heads looked."""
    verdict = "right" if given.correct else f"wrong, it is {given.truth}"
    operation = spoken_of(given.question)
    digits = Table.of(
        "answer",
        "Digit by digit",
        given.digits,
        {
            "digit": lambda digit: digit.name,
            "model": _said,
            "truth": lambda digit: digit.truth,
            "sure": lambda digit: brief(digit.probability),
            "what arrives from below": lambda digit: _arrives(digit, operation.words),
        },
        _key(operation),
        text=["model", "truth", "what arrives from below"],
    )
    claim = f"{given.question} = {given.answer}: {verdict}."
    why = [Text(digit.explanation.sentence) for digit in given.digits if digit.explanation]
    return [Text(claim, lead=True), *why, digits, _looks(given)]


def _key(operation: Operation) -> str:
    """How to read the tasks. Those of subtraction are not the paper's."""
    words, (base, uses, passes) = operation.words, operation.subtasks.classes
    whose = "its" if operation.signed else "the paper's"
    return (
        f"In grey, {whose} task: {base} no {words.carry} arrives, {uses} a {words.carry} arrives, "
        f"{passes} it arrives at a column that {words.column[State.PROPAGATE]}. "
        f"A{'n' * operation.signed} {words.passing} is such a column."
    )


def _said(digit: Digit) -> str:
    return digit.predicted if digit.predicted == digit.truth else Wrong(digit.predicted)


def _looks(given: Answer) -> Table:
    layers = 1 + max(look.layer for look in given.digits[0].attention)
    heads = [head_name(look.layer, look.head, layers) for look in given.digits[0].attention]
    return Table(
        "looks",
        "Where the heads look",
        ["digit", *(f"{head} reads" for head in heads)],
        [[digit.name, *map(_look, digit.attention)] for digit in given.digits],
        "The two tokens that get most of a head's attention, and their share of it.",
    )


def _arrives(digit: Digit, words: Words) -> str:
    """ "a carry through two nines `US9`"."""
    if digit.look_ahead is None:
        return ""
    arriving = carry(digit.carrying, words)
    if digit.look_ahead:
        way = "through" if digit.carrying else "above"
        arriving = f"{arriving} {way} {nines(digit.look_ahead, words)}"
    return f"{arriving} `{digit.task}`"


def _look(look: Look) -> str:
    """The positions a head reads, and their share of its attention."""
    named = [f'"{name}"' if name in SIGNS else name for name in look.positions]
    return f"{' '.join(named)} {brief(sum(look.positions.values()))}"


def answer_table(given: Sequence[Answer]) -> Table:
    """Many answers, a line each."""
    right = sum(one.correct for one in given)
    return Table.of(
        "answers",
        f"{right:,} of {len(given):,} answers are right",
        given,
        {
            "question": lambda one: one.question,
            "model": lambda one: one.answer if one.correct else Wrong(one.answer),
            "truth": lambda one: one.truth,
            "": lambda one: "right" if one.correct else Wrong("wrong"),
            "least sure": lambda one: brief(min(digit.probability for digit in one.digits)),
        },
        text=["model", "truth", ""],
    )
