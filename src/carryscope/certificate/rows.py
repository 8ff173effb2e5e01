"""Answer rows: what each of them reads and writes.

In: the layout of a model's tokens. Out: `Row`, and the `SignAndQuery` by which its boxes share
tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from carryscope.task.operation import ADD, Operation
from carryscope.task.tokens import NEGATIVE, POSITIVE, Format


@dataclass(frozen=True)
class Row:
    """One answer row: what it reads and what it writes."""

    layout: Format
    index: int
    """0 for the row of "="."""
    operation: Operation = ADD
    """Of the questions; a mixture is proved operation by operation."""
    negative: bool = False
    """The sign of the answers."""

    @property
    def position(self) -> int:
        return self.layout.answer_rows[self.index]

    @property
    def name(self) -> str:
        """The answer token it writes: A5, say; in a mixture with its operation, as in "A5 (-)"."""
        name = self.layout.answer_names[self.index]
        return f"{name} ({self.operation.symbol})" if self.layout.operation.parts else name

    @property
    def digit(self) -> int | None:
        """The answer digit it writes; None for the sign."""
        digit = self.layout.digits + self.layout.signs - self.index
        return digit if digit <= self.layout.digits else None

    @property
    def query_digit(self) -> int | None:
        """The answer digit it reads last; None where that is "=" or the sign."""
        digit = self.layout.digits + self.layout.signs - self.index + 1
        return digit if digit <= self.layout.digits else None

    @property
    def query_symbol(self) -> int:
        """The token it reads last where that is no digit: "=" or the sign."""
        return self.sign if self.index else self.layout.symbols.index("=")

    @property
    def sign(self) -> int:
        """The token of the answers' sign."""
        return self.layout.symbols.index(NEGATIVE if self.negative else POSITIVE)

    @property
    def fixed(self) -> list[tuple[int, int]]:
        """The (position, token) that are the same in every question with this sign."""
        symbols, equals = self.layout.symbols, self.layout.first_row
        fixed = [
            (self.layout.digits, symbols.index(self.operation.symbol)),
            (equals, symbols.index("=")),
            (equals + 1, self.sign),
        ]
        return fixed if self.layout.signs and self.index else fixed[:2]

    @property
    def earlier(self) -> list[tuple[int, int]]:
        """The (answer digit, position) before the query."""
        last = self.layout.digits if self.query_digit is None else self.query_digit
        first = self.layout.first_row + 1 + self.layout.signs
        count = self.layout.digits - last
        return [(self.layout.digits - i, first + i) for i in range(count)]

    def unchanging(self, query: int) -> list[tuple[int, int]]:
        """The (position, token) that are the same in every question with this query."""
        return list(dict([*self.fixed, (self.position, query)]).items())

    def positions_of(self, column: int) -> tuple[int, int]:
        """Where the two digits of a column stand."""
        return self.layout.digits - 1 - column, 2 * self.layout.digits - column


class SignAndQuery(NamedTuple):
    """What is the same for questions that share tables: the sign, and the token read last."""

    negative: bool
    query: int
