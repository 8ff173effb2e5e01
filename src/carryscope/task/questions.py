"""Questions as digit arrays, units first.

In: numbers, digits or text. Out: `Questions`, two arrays of shape (batch, column) and the
operation. The question 445+555 for a 5-digit model is

    first  = [[5, 4, 4, 0, 0]]     D0 D1 D2 D3 D4
    second = [[5, 5, 5, 0, 0]]     D'0 D'1 D'2 D'3 D'4
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int

from carryscope.core.errors import CallError
from carryscope.task.operation import ADD, BASE, Array, Operation

MAX_DIGITS = 20
"""The largest question size. Nothing but patience limits it."""


_MINUS = "-−"  # noqa: RUF001
"""People type the one and paste the other."""


def check_digits(digits: int) -> None:
    """Refuse a question size outside 1..MAX_DIGITS."""
    if not 1 <= digits <= MAX_DIGITS:
        raise CallError(f"digits must be between 1 and {MAX_DIGITS}. Got {digits}.")


@dataclass(frozen=True, eq=False)
class Questions:
    """A batch of questions such as `first + second`, all with the same number of digits."""

    first: Int[Array, "batch column"]
    second: Int[Array, "batch column"]
    operation: Operation = ADD

    @property
    def digits(self) -> int:
        """How many digits each number has, leading zeros included."""
        return int(self.first.shape[1])

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, chosen: Any) -> Questions:
        """The questions picked by a slice, a mask or an index array."""
        return Questions(self.first[chosen], self.second[chosen], self.operation)

    def swapped(self) -> Questions:
        """The same questions with the two numbers exchanged."""
        return Questions(self.second, self.first, self.operation)

    def integers(self) -> list[tuple[int, int]]:
        """The questions as pairs of Python integers, exact for any number of digits."""
        return list(zip(_to_integers(self.first), _to_integers(self.second), strict=True))

    def texts(self) -> list[str]:
        """The questions as a person writes them: `445+555`."""
        return [self.operation.text(*pair) for pair in self.integers()]

    @classmethod
    def from_integers(
        cls, pairs: Iterable[tuple[int, int]], digits: int, operation: Operation = ADD
    ) -> Questions:
        """Questions from pairs of integers, each of which must fit in `digits` digits."""
        check_digits(digits)
        pairs = list(pairs)
        first = _to_digits([pair[0] for pair in pairs], digits)
        return cls(first, _to_digits([pair[1] for pair in pairs], digits), operation)

    def frozen(self) -> Questions:
        """The same questions, with arrays that cannot be written to."""
        self.first.setflags(write=False)
        self.second.setflags(write=False)
        return self

    @classmethod
    def joined(cls, batches: Sequence[Questions]) -> Questions:
        """Several batches of one operation as one."""
        operation = batches[0].operation
        assert all(batch.operation is operation for batch in batches)
        first = np.concatenate([batch.first for batch in batches])
        return cls(first, np.concatenate([batch.second for batch in batches]), operation)


def _to_digits(numbers: Sequence[int], digits: int) -> Int[Array, "batch column"]:
    for number in numbers:
        if not 0 <= number < BASE**digits:
            raise CallError(
                f"The numbers must have at most {digits} digit{'s' * (digits > 1)}. Got {number}."
            )
    rows = [[int(d) for d in str(number).zfill(digits)[::-1]] for number in numbers]
    return np.array(rows, dtype=np.int8).reshape(len(numbers), digits)


def _to_integers(digits: Int[Array, "batch column"]) -> list[int]:
    return [int("".join(map(str, row[::-1]))) for row in digits.tolist()]


def parse_question(text: str, digits: int, operation: Operation = ADD) -> Questions:
    """One question from what a person types: `445+555`, ` 0445 + 555 =`.

    Each kind of mistake has its own one-line message.
    """
    symbol, words = operation.symbol, operation.words
    typed = text.strip().removesuffix("=").strip()
    if not typed:
        example = operation.text(445, 555)
        raise CallError(f"Type a {words.question} such as {example}. Got an empty question.")
    if symbol not in _MINUS and any(minus in typed for minus in _MINUS):
        raise CallError(
            f"This model only {words.verb}, without signs. Got a minus sign in '{text}'."
        )
    stray = re.search(rf"[^0-9{re.escape(symbol)}\s]", typed)
    if stray:
        raise CallError(
            f"A {words.question} has only digits and one '{symbol}'. Got '{stray[0]}' in '{text}'."
        )
    parts = [part.strip() for part in typed.split(symbol)]
    if len(parts) != 2 or not all(parts):
        raise CallError(
            f"A {words.question} is two numbers with one '{symbol}' between them. Got '{text}'."
        )
    if any(re.search(r"\s", part) for part in parts):
        raise CallError(f"A number has no spaces inside it. Got '{text}'.")
    numbers = [part.lstrip("0") or "0" for part in parts]
    for number in numbers:
        if len(number) > digits:
            raise CallError(
                f"This model {words.verb} numbers of at most {digits} digit{'s' * (digits > 1)}. "
                f"Got {number}, which has {len(number)}."
            )
    return Questions.from_integers([(int(numbers[0]), int(numbers[1]))], digits, operation)
