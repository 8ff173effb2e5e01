"""What a column computes, as a value: the one place where 9 and 10 stand.

An `Operation` has three tables over the two digits of a column. For addition:

    digits    raw value    state                              answer digit
    4, 4      8            kill: no carry leaves              8, or 9 if a carry arrives
    4, 5      9            propagate: passes a carry on       9, or 0
    5, 5      10           generate: a carry leaves           0, or 1

In subtraction the raw value is D - D': a column kills above 0, propagates at 0 and generates a
borrow below 0. If the whole answer is negative, the two numbers are exchanged first.

Everything else about the task follows from these: columns, strata, sampling, algorithms,
hypotheses, the certificate's trees and the words of the report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Int

from carryscope.core.errors import CallError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]
else:
    Array = np.ndarray

BASE = 10
"""Digits are decimal."""

PAIRS = BASE**2
"""Digit pairs that a column can hold; the pair (D, D') has the number BASE * D + D'."""


class State(IntEnum):
    """What a column does with a carry arriving from below."""

    KILL = 0
    """No carry leaves, whatever arrives."""
    PROPAGATE = 1
    """The carry that arrives is passed on."""
    GENERATE = 2
    """A carry leaves, whatever arrives."""

    @property
    def letter(self) -> str:
        return self.name[0]


@dataclass(frozen=True)
class Words:
    """How an operation is spoken of. A column "sums to 9"; columns "sum to 9"."""

    question: str
    """What a question is called: a sum."""
    verb: str
    """What the model does: it adds."""
    base_verb: str
    """What it can do: add."""
    carry: str
    """What travels from column to column, and `carries`: several of them."""
    carries: str
    passing: str
    """A column that passes it on, and `passing_plural`: nines."""
    passing_plural: str
    column: dict[State, str]
    """What one column in each state does: "sums to 9"."""
    columns: dict[State, str]
    """The same of several columns: "sum to 9"."""


@dataclass(frozen=True)
class Subtasks:
    """The field's names for what must be computed in a column.

    For subtraction the names are those of the paper's authors. Where the answer is negative they
    write N for M: ND, NB, NZ. The `uses` names are ours.
    """

    base: str
    """The raw value modulo 10: BA; in subtraction MD."""
    makes: str
    """The column generates: MC1, MB."""
    passes: str
    """The column propagates: MS9, MZ."""
    uses: str
    """A carry arrives: UC1, UB."""
    uses_and_passes: str
    """A carry arrives at a column that propagates: US9, UZ."""

    @property
    def classes(self) -> tuple[str, str, str]:
        """The task classes of an answer digit, in the order of `Task`: BA, UC1, US9."""
        return self.base, self.uses, self.uses_and_passes


@dataclass(frozen=True, eq=False)
class Operation:
    """What a column makes of its two digits, and of a carry that arrives."""

    name: str
    symbol: str
    raw: Int[Array, "first second"]
    """The raw value of each digit pair."""
    propagates: int
    """The raw value at which a column passes a carry on."""
    step: int
    """What an arriving carry adds to the raw value: 1, or -1 for a borrow."""
    words: Words = field(repr=False)
    subtasks: Subtasks = field(repr=False)
    signed: bool = False
    """Whether an answer can be negative. Then the numbers are exchanged, and a sign says so."""
    parts: tuple[Operation, ...] = ()
    """The operations of a mixture, in which each question has its own. A mixture has no tables."""

    @property
    def each_part(self) -> tuple[Operation, ...]:
        """The operations that a question can have: those of a mixture, or this one."""
        return self.parts or (self,)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of all task classes: BA, UC1, US9, and in a mixture also MD, UB, UZ."""
        return tuple(name for part in self.each_part for name in part.subtasks.classes)

    def each(self, kind: Int[Array, " batch"] | None, of: Callable[[Operation], Any]) -> Array:
        """What `of` gives for each question's own operation.

        `kind` is its place in `parts`, and None if there is one operation for all questions.
        """
        if kind is None:
            return np.asarray(of(self.alone))
        return np.stack([of(part) for part in self.parts])[kind, np.arange(len(kind))]

    @property
    def alone(self) -> Operation:
        """This operation. A mixture is refused: tables belong to one operation."""
        if self.parts:
            raise CallError(f"This needs one operation at a time. Got {self.name}.")
        return self

    def state_of(self, raw: Int[Array, "*shape"]) -> Int[Array, "*shape"]:
        """The `State` of columns with these raw values."""
        beyond = self.step * (np.asarray(raw, dtype=np.int8) - np.int8(self.propagates))
        state: Array = (np.sign(beyond) + 1).astype(np.int8)
        return state

    def digit_of(self, raw: Int[Array, "*shape"], carry: Any = 0) -> Int[Array, "*shape"]:
        """The answer digit of columns with these raw values, if this carry arrives."""
        return np.asarray((raw + self.step * np.asarray(carry, dtype=np.int8)) % BASE)

    @cached_property
    def state(self) -> Int[Array, "first second"]:
        """The `State` of each digit pair."""
        return self.alone.state_of(self.raw)

    @cached_property
    def pairs_of_state(self) -> dict[State, Int[Array, "pair 2"]]:
        """The digit pairs that leave a column in each state."""
        return {state: np.argwhere(self.state == state).astype(np.int8) for state in State}

    @cached_property
    def pairs_per_state(self) -> dict[State, int]:
        """How many of the 100 digit pairs leave a column in each state: 45, 10, 45."""
        return {state: len(pairs) for state, pairs in self.pairs_of_state.items()}

    @cached_property
    def raws_of_state(self) -> dict[State, Int[Array, " raw"]]:
        """The raw values that leave a column in each state, smallest first.

        Those of kill and generate stand in pairs: the i-th of both have the same answer digit.
        """
        return {state: np.unique(self.raw[self.state == state]) for state in State}

    @cached_property
    def passing_second(self) -> Int[Array, " first"]:
        """For each first digit, the second one with which the column propagates."""
        second: Array = self.pairs_of_state[State.PROPAGATE][:, 1]
        return second

    @cached_property
    def passing_first(self) -> Int[Array, " second"]:
        """For each second digit, the first one with which the column propagates."""
        first: Array = np.argmax(self.raw == self.propagates, axis=0).astype(np.int8)
        return first

    def text(self, first: int, second: int) -> str:
        """A question as a person writes it: `445+555`."""
        return f"{first}{self.symbol}{second}"


_DIGITS = np.arange(BASE, dtype=np.int8)

ADD = Operation(
    name="addition",
    symbol="+",
    raw=np.add.outer(_DIGITS, _DIGITS),
    propagates=BASE - 1,
    step=1,
    words=Words(
        question="sum",
        verb="adds",
        base_verb="add",
        carry="carry",
        carries="carries",
        passing="nine",
        passing_plural="nines",
        column={
            State.KILL: "sums to 8 or less",
            State.PROPAGATE: "sums to 9",
            State.GENERATE: "sums to 10 or more",
        },
        columns={
            State.KILL: "sum to 8 or less",
            State.PROPAGATE: "sum to 9",
            State.GENERATE: "sum to 10 or more",
        },
    ),
    subtasks=Subtasks(base="BA", makes="MC1", passes="MS9", uses="UC1", uses_and_passes="US9"),
)
"""Addition: raw value D + D'; a column propagates at 9 and generates from 10 on."""

SUBTRACT = Operation(
    name="subtraction",
    symbol="-",
    raw=np.subtract.outer(_DIGITS, _DIGITS),
    propagates=0,
    step=-1,
    words=Words(
        question="difference",
        verb="subtracts",
        base_verb="subtract",
        carry="borrow",
        carries="borrows",
        passing="equal pair",
        passing_plural="equal pairs",
        column={
            State.KILL: "has the larger digit first",
            State.PROPAGATE: "has equal digits",
            State.GENERATE: "has the smaller digit first",
        },
        columns={
            State.KILL: "have the larger digit first",
            State.PROPAGATE: "have equal digits",
            State.GENERATE: "have the smaller digit first",
        },
    ),
    subtasks=Subtasks(base="MD", makes="MB", passes="MZ", uses="UB", uses_and_passes="UZ"),
    signed=True,
)
"""Subtraction: raw value D - D'; a column propagates at 0 and generates a borrow below."""

MIXED = Operation(
    name="addition and subtraction",
    symbol="±",
    raw=np.empty((0, 0), dtype=np.int8),
    propagates=0,
    step=0,
    words=Words(
        question="question",
        verb="adds and subtracts",
        base_verb="add and subtract",
        carry="carry",
        carries="carries",
        passing="passing column",
        passing_plural="passing columns",
        column=dict(zip(State, ("kills", "propagates", "generates"), strict=True)),
        columns=dict(zip(State, ("kill", "propagate", "generate"), strict=True)),
    ),
    subtasks=Subtasks(
        **{
            name: f"{added}/{getattr(SUBTRACT.subtasks, name)}"
            for name, added in vars(ADD.subtasks).items()
        }
    ),
    signed=True,
    parts=(ADD, SUBTRACT),
)
"""Both, each question with its own operation."""

OperationName = Literal["addition", "subtraction", "mixed"]

OPERATIONS: dict[OperationName, Operation] = {
    "addition": ADD,
    "subtraction": SUBTRACT,
    "mixed": MIXED,
}
"""What a model can learn, by its name in files and options."""
