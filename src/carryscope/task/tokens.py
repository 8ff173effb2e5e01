"""Questions as the tokens a model reads, in both formats.

In: `Questions`. Out: token arrays of shape (batch, position), highest digit first.

    plain    12345+67890=080235      context 3n+3
    signed   12345+67890=+080235     context 3n+4
             12345-67890=-055545     subtraction, which needs the sign and 15 tokens

A *row* is a position whose output predicts the next token. For five plain digits, rows 11
("=") to 16 (A1) predict A5 .. A0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

import numpy as np
from jaxtyping import Int

from carryscope.core.errors import CallError, require
from carryscope.task.columns import Columns
from carryscope.task.operation import ADD, SUBTRACT, Array, Operation
from carryscope.task.questions import Questions, check_digits, parse_question

T = TypeVar("T")

FormatName = Literal["plain", "signed"]

VOCABULARIES = {12: "0123456789+=", 15: "0123456789+-=*\\"}
"""Tokens by vocabulary size: the paper's twelve, and the fifteen of its authors' later library."""

POSITIVE, NEGATIVE = ADD.symbol, SUBTRACT.symbol
"""The sign that opens a signed answer; a sum is never negative."""


@dataclass(frozen=True)
class Format:
    """How a question and its answer are laid out as tokens."""

    digits: int
    name: FormatName = "plain"
    vocabulary: int = 12
    operation: Operation = ADD
    """What is asked: one operation, or a mixture."""

    def __post_init__(self) -> None:
        check_digits(self.digits)
        known = self.name in get_args(FormatName)
        require(known, "format must be 'plain' or 'signed'", f"'{self.name}'")
        require(self.vocabulary in VOCABULARIES, "vocabulary must be 12 or 15", self.vocabulary)
        if self.operation.signed and not (self.signs and NEGATIVE in self.symbols):
            raise CallError(
                f"{self.operation.name.capitalize()} needs the signed format and 15 tokens. "
                f"Got {self.name} and {self.vocabulary}."
            )

    @property
    def symbols(self) -> str:
        """The text of each token."""
        return VOCABULARIES[self.vocabulary]

    @property
    def signs(self) -> int:
        """How many sign tokens open the answer: 0 or 1."""
        return int(self.name == "signed")

    @property
    def context(self) -> int:
        """Tokens in a question with its answer."""
        return 3 * self.digits + 3 + self.signs

    @property
    def answer_length(self) -> int:
        """Tokens in the answer, its sign included."""
        return self.digits + 1 + self.signs

    @property
    def first_row(self) -> int:
        """The row of "=", which predicts the first answer token."""
        return 2 * self.digits + 1

    @property
    def answer_rows(self) -> range:
        """The rows that predict the answer tokens."""
        return range(self.first_row, self.first_row + self.answer_length)

    @property
    def answer_names(self) -> list[str]:
        """A5 .. A0, or in the signed format A6 (the sign) .. A0."""
        return [f"A{k}" for k in reversed(range(self.answer_length))]

    @property
    def position_names(self) -> list[str]:
        """D4 .. D0, +, D'4 .. D'0, =, A5 .. A0."""
        columns = list(reversed(range(self.digits)))
        first, second = [f"D{i}" for i in columns], [f"D'{i}" for i in columns]
        return [*first, self.operation.symbol, *second, "=", *self.answer_names]

    @property
    def row_names(self) -> list[str]:
        """D4 .. D'0, A5 .. A0: a row is named by the token that it writes, or if it writes none by
        the one that it reads."""
        return [*self.position_names[: self.first_row], *self.answer_names]

    def parse(self, text: str) -> Questions:
        """One question from what a person types."""
        return parse_question(text, self.digits, self.operation)

    def encode(
        self, questions: Questions, answer: Int[Array, "batch digit"] | None = None
    ) -> Int[Array, "batch position"]:
        """The questions as tokens, with their true answers or with the given digits."""
        asked, known = questions.operation.each_part, self.operation.each_part
        if not set(asked) <= set(known):
            raise CallError(
                f"The questions must be of {self.operation.name}. Got {questions.operation.name}."
            )
        same = questions.digits == self.digits
        require(same, f"The questions must have {self.digits} digits", questions.digits)
        tokens = np.empty((len(questions), self.context), dtype=np.int64)
        tokens[:, : self.digits] = questions.first[:, ::-1]
        tokens[:, self.digits] = questions.each(
            lambda one: np.full(len(questions), self.symbols.index(one.symbol))
        )
        tokens[:, self.digits + 1 : self.first_row] = questions.second[:, ::-1]
        tokens[:, self.first_row] = self.symbols.index("=")
        tokens[:, self.first_row + 1] = self.symbols.index(POSITIVE)
        if self.operation.signed:
            tokens[questions.negative, self.first_row + 1] = self.symbols.index(NEGATIVE)
        digits = Columns.of(questions).answer() if answer is None else answer
        tokens[:, self.first_row + 1 + self.signs :] = digits[:, ::-1]
        return tokens

    def answer_part(self, tokens: T) -> T:
        """The answer part of encoded questions (an array or a tensor), as the model writes it."""
        return tokens[:, self.first_row + 1 :]  # type: ignore[index, no-any-return]

    def text(self, tokens: Int[Array, " position"]) -> str:
        """Tokens as text."""
        return "".join(self.symbols[token] for token in tokens)
