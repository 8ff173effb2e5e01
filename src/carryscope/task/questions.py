"""Questions as digit arrays, units first.

In: numbers, digits or text. Out: `Questions`, two arrays of shape (batch, column) and the
operation. The question 445+555 for a 5-digit model is

    first  = [[5, 4, 4, 0, 0]]     D0 D1 D2 D3 D4
    second = [[5, 5, 5, 0, 0]]     D'0 D'1 D'2 D'3 D'4

Batches of several operations, joined, are a mixed batch: 445+555 and 445-555.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from carryscope.core.errors import CallError, require
from carryscope.task.operation import ADD, BASE, MIXED, Array, Operation

MAX_DIGITS = 20
"""The largest question size. Nothing but patience limits it."""


_MINUS, _PASTED = "-", "−"  # noqa: RUF001
"""People type the one and paste the other."""


def check_digits(digits: int) -> None:
    """Refuse a question size outside 1..MAX_DIGITS."""
    require(1 <= digits <= MAX_DIGITS, f"digits must be between 1 and {MAX_DIGITS}", digits)


@dataclass(frozen=True, eq=False)
class Questions:
    """A batch of questions such as `first + second`, all with the same number of digits."""

    first: Int[Array, "batch column"]
    second: Int[Array, "batch column"]
    operation: Operation = ADD
    kind: Int[Array, " batch"] | None = None
    """In a mixed batch, the place of each question's operation in `operation.parts`."""

    @property
    def digits(self) -> int:
        """How many digits each number has, leading zeros included."""
        return int(self.first.shape[1])

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, chosen: Any) -> Questions:
        """The questions picked by a slice, a mask or an index array."""
        kind = None if self.kind is None else self.kind[chosen]
        return Questions(self.first[chosen], self.second[chosen], self.operation, kind)

    def swapped(self) -> Questions:
        """The same questions with the two numbers exchanged."""
        return replace(self, first=self.second, second=self.first)

    def each(self, of: Callable[[Operation], Any]) -> Array:
        """What `of` gives for each question's own operation."""
        return self.operation.each(self.kind, of)

    @property
    def negative(self) -> Bool[Array, " batch"]:
        """Where the answer is negative: a smaller number less a larger one.

        The highest digit in which the two numbers differ decides.
        """
        apart = np.sign(self.first - self.second)[:, ::-1]
        highest = apart[np.arange(len(self)), (apart != 0).argmax(1)]
        signed = self.each(lambda one: np.full(len(self), one.signed))
        return np.asarray((highest < 0) & signed)

    def ordered(self, negative: Bool[Array, " batch"]) -> Questions:
        """The same questions, with the numbers exchanged where this says so."""
        negative = negative[:, None]
        return replace(
            self,
            first=np.where(negative, self.second, self.first),
            second=np.where(negative, self.first, self.second),
        )

    def integers(self) -> list[tuple[int, int]]:
        """The questions as pairs of Python integers, exact for any number of digits."""
        return list(zip(_to_integers(self.first), _to_integers(self.second), strict=True))

    def texts(self) -> list[str]:
        """The questions as a person writes them: `445+555`."""
        operations = self.operation.each_part
        kinds = [0] * len(self) if self.kind is None else self.kind.tolist()
        return [
            operations[kind].text(*pair) for kind, pair in zip(kinds, self.integers(), strict=True)
        ]

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
        """Several batches as one; of several operations they make a mixed one."""
        operation, kind = batches[0].operation, None
        if operation.parts or any(batch.operation is not operation for batch in batches):
            operation, kind = MIXED, np.concatenate([batch.kinds for batch in batches])
        first = np.concatenate([batch.first for batch in batches])
        second = np.concatenate([batch.second for batch in batches])
        return cls(first, second, operation, kind)

    @property
    def kinds(self) -> Int[Array, " batch"]:
        """The place of each question's operation among those of a mixed batch."""
        if self.kind is not None:
            return self.kind
        return np.full(len(self), MIXED.parts.index(self.operation), dtype=np.int8)


def _to_digits(numbers: Sequence[int], digits: int) -> Int[Array, "batch column"]:
    size = f"The numbers must have at most {digits} digit{'s' * (digits > 1)}"
    for number in numbers:
        require(0 <= number < BASE**digits, size, number)
    rows = [[int(d) for d in str(number).zfill(digits)[::-1]] for number in numbers]
    return np.array(rows, dtype=np.int8).reshape(len(numbers), digits)


def _to_integers(digits: Int[Array, "batch column"]) -> list[int]:
    return [int("".join(map(str, row[::-1]))) for row in digits.tolist()]


def parse_question(text: str, digits: int, operation: Operation = ADD) -> Questions:
    """One question from what a person types: `445+555`, ` 0445 + 555 =`, `123-456`.

    A mixture takes a question of any of its operations. Each kind of mistake has its own one-line
    message.
    """
    words, known = operation.words, {one.symbol: one for one in operation.each_part}
    typed = text.strip().removesuffix("=").strip()
    if not typed:
        example = next(iter(known.values())).text(445, 555)
        raise CallError(f"Type a {words.question} such as {example}. Got an empty question.")
    typed = typed.replace(_PASTED, _MINUS)
    for one, sign in zip(MIXED.parts, ("plus", "minus"), strict=True):
        if one.symbol not in known and one.symbol in typed:
            raise CallError(
                f"This model only {words.verb}, without signs. Got a {sign} sign in '{text}'."
            )
    symbols, named = re.escape("".join(known)), " or ".join(f"'{symbol}'" for symbol in known)
    stray = re.search(rf"[^0-9{symbols}\s]", typed)
    if stray:
        raise CallError(
            f"A {words.question} has only digits and one {named}. Got '{stray[0]}' in '{text}'."
        )
    parts = [part.strip() for part in re.split(f"[{symbols}]", typed)]
    if len(parts) != 2 or not all(parts):
        raise CallError(
            f"A {words.question} is two numbers with one {named} between them. Got '{text}'."
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
    asked = next(one for symbol, one in known.items() if symbol in typed)
    return Questions.from_integers([(int(numbers[0]), int(numbers[1]))], digits, asked)
