"""Whether a finding that was read can be about a model: its names, places and lengths fit.

In: a record from a file, and the shape of the run's model. Out: nothing, or an error in one line.

A file may come from elsewhere. msgspec checks the types of its values, and shares, means and rates
check themselves. What is left follows from the model: a two-digit model has no digit A7.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from carryscope.core.errors import CallError
from carryscope.model.config import ModelConfig
from carryscope.task.columns import QuestionClass
from carryscope.task.operation import PAIRS

ANY_SIGN = ("offset", "below")
"""Whole numbers that may be negative; all others count something."""

PER_TOKEN = ("answer_names", "per_digit", "last_steps_digit_loss", "held_out_digit_loss")
"""Lists of a finding that have an entry for each answer token."""

NEVER_EMPTY = ("cases", "strata", "rules")
"""Lists that have something in them whatever the model is."""

LONGEST_NAME = 200
"""Letters of a name, at most."""

MOST_DIGITS = 41
"""Decimal digits of the largest number of questions, 10^40."""


def check_fit(found: Any, model: ModelConfig) -> None:
    """Refuse a record that does not fit this model."""
    rules, tokens = _rules(model), model.layout.answer_length
    if getattr(found, "model", model) != model:
        raise CallError("It is about a model of another shape.")
    for name, value in _fields(found):
        if isinstance(value, int) and name not in ANY_SIGN and value < 0:
            raise CallError(f"{name} must be at least 0. Got {value}.")
        if name in rules and isinstance(value, int | str) and not rules[name](value):
            raise CallError(f"{name} does not fit the model. Got {str(value)[:40]!r}.")
        if name in NEVER_EMPTY and isinstance(value, list) and not value:
            raise CallError(f"{name} must not be empty.")
        if name == "attention" and value is not None:
            _check_patterns(value, model)
    operations = len(model.layout.operation.each_part)
    for name in PER_TOKEN:
        entries = tokens * operations if name == "per_digit" else tokens
        if len(getattr(found, name, range(entries))) != entries:
            raise CallError(f"{name} must have an entry for each answer token.")
    _check_counts(found, model)


def _check_patterns(attention: Any, model: ModelConfig) -> None:
    """Attention patterns by question class: each has all layers, heads, rows and positions."""
    shape: tuple[int, ...] = ()
    with suppress(ValueError):  # lists of different lengths
        shape = np.array([*attention.patterns.values()], dtype=float).shape[1:]
    fits = len(shape) == 4 and shape[:2] == (model.layers, model.heads)
    if not fits or attention.patterns.keys() != attention.questions_by_class.keys():
        raise CallError("patterns do not fit the model.")


def _rules(model: ModelConfig) -> dict[str, Callable[[Any], bool]]:
    """What the values of fields must be, by the names of the fields."""
    answers = {*model.layout.answer_names, "all", "answer"}
    # A proof of a mixed model has a tree for each operation: "A3 (+)", "A3 (-)".
    parts = model.layout.operation.parts
    answers |= {f"{name} ({one.symbol})" for one in parts for name in model.layout.answer_names}
    question = {f"at {name}" for name in model.layout.position_names}
    stratum = re.compile(rf"([+-] )?[+-]?[KPG*]{{{model.digits}}}")
    below = {
        "layer": model.layers,
        "head": model.heads,
        "row": model.context,
        "column": model.layout.answer_length,
        "top_column": model.digits + 1,
        "depth": model.digits + 1,
        "reach": model.digits + 1,
    }
    named: dict[str, Callable[[Any], bool]] = {
        "digits": lambda number: number == model.digits,
        "name": lambda text: len(text) <= LONGEST_NAME,
        "digit": lambda text: text in answers,
        "answer": lambda text: text in answers | question,
        "task": lambda text: text in model.layout.operation.classes,
        "question_class": lambda text: text in {kind.label for kind in QuestionClass},
        "staircase": lambda text: text in ("present", "partial", "absent"),
        "stratum": lambda text: bool(stratum.fullmatch(text)),
        "states": lambda text: bool(stratum.fullmatch(text)),
        "node": lambda text: bool(re.fullmatch(r"P\d+\.L\d+\.(M|MLP|[H\d+]+)", text)),
    }
    return named | {name: (lambda n, most=most: n < most) for name, most in below.items()}


def _fields(record: Any) -> Iterator[tuple[str, Any]]:
    """Every field of a record, and of the records in it."""
    if isinstance(record, ModelConfig):
        return
    named: dict[str, Any] = record if isinstance(record, dict) else {}
    if isinstance(record, msgspec.Struct):
        named = msgspec.structs.asdict(record)
    yield from named.items()
    for value in record if isinstance(record, list) else named.values():
        if isinstance(value, msgspec.Struct | dict | list):
            yield from _fields(value)


def _check_counts(found: Any, model: ModelConfig) -> None:
    """Numbers of questions, as text, are those of a model with so many digits."""
    operations = len(model.layout.operation.each_part)
    everything, given = operations * PAIRS**model.digits, getattr(found, "questions", 0)
    if isinstance(given, str) and given != str(everything):
        raise CallError(f"questions must be {everything}. Got {given[:40]!r}.")
    for one in (found, *getattr(found, "per_digit", ())):
        parts = [getattr(one, name, "") for name in ("proved_right", "proved_wrong", "undecided")]
        counts = [int(part) for part in parts if part and len(part) <= MOST_DIGITS]
        of = everything if one is found else everything // operations
        if any(parts) and (len(counts) < len(parts) or sum(counts) != of):
            raise CallError(f"What is proved and undecided must be {of} questions in all.")
