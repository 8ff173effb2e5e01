"""What a part of the model might carry, and the answer digit that would follow from it.

In: base and source questions. Out: for each hypothesis, the digit it predicts when the part
is taken from the source and everything else from the base.

    base 17811+22222, source 17311+22222, hypothesis MC1(2) for A3:
    column 2 of the base makes a carry (8+2), that of the source does not (3+2), so a part
    that carries MC1(2) turns A3 = (7+2+1) mod 10 = 0 into 9

A prediction counts only where it is *sure*: where exact addition and Algorithm 1, reaching just
far enough to see the variable, give the same digit. Elsewhere a deeper cascade decides, which a
one-layer model does not follow, and the pair says nothing about the part. A prediction does not
count either where the model's own answer to the base is wrong, or where the token before the
digit shows the carry anyway.

In subtraction a part that brings digits of the source brings them as they are written there. The
sign, which the model has read before, stays the base's, and says which number is taken from which.
A part can also carry the sign itself, or, in a mixed model, the operator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from carryscope.task.columns import ALGORITHM_1_REACH, Columns
from carryscope.task.operation import OPERATIONS, Array, Operation, State
from carryscope.task.questions import Questions
from carryscope.task.tokens import NEGATIVE, POSITIVE, VOCABULARIES, Format

STATE, CARRY_OUT, CARRY_IN, DIGIT = "state", "carry_out", "carry_in", "digit"
SIGN, OPERATOR = "sign", "operator"
"""What a part can carry, besides the sub-tasks of the operation (BA, MC1, MS9): the state, MC1 and
MS9 together; the carry that leaves a column, wherever below it was made; the arriving carry; the
finished answer digit; the answer's sign; the operator."""

MAKING = {one.subtasks.makes for one in OPERATIONS.values()}
PASSING = {one.subtasks.passes for one in OPERATIONS.values()}

PLUS, MINUS = (VOCABULARIES[15].index(sign) for sign in (POSITIVE, NEGATIVE))
"""Signs, as tokens."""


def in_words(operation: Operation) -> dict[str, str]:
    """Each variable in words, with the column it is about."""
    names, words = operation.subtasks, operation.words
    return {
        names.base: f"the base {words.question} ({names.base}) of {{}}",
        names.makes: f"whether {{}} makes a {words.carry} ({names.makes})",
        names.passes: f"whether {{}} {words.column[State.PROPAGATE]} ({names.passes})",
        STATE: f"whether {{}} makes a {words.carry}, passes one on or neither (its state)",
        CARRY_OUT: f"the {words.carry} that leaves {{}}",
        CARRY_IN: f"the arriving {words.carry}",
        DIGIT: "the finished digit",
        SIGN: "the sign",
        OPERATOR: "the operator",
    }


class Hypothesis(NamedTuple):
    """A part carries this variable, and the answer digit follows it."""

    kind: str
    column: int
    digit: int
    """The answer digit that is predicted."""

    def __str__(self) -> str:
        return f"{self.kind}({self.column})"

    @property
    def reach(self) -> int:
        """How far below its digit an adder must look for this variable to matter."""
        if self.kind not in MAKING | PASSING | {STATE}:
            return max(ALGORITHM_1_REACH, self.digit * (self.kind == CARRY_OUT))
        return max(ALGORITHM_1_REACH, self.digit - self.column + (self.kind not in MAKING))


def hypotheses_for(digit: int, layout: Format, *, resolved: bool = False) -> list[Hypothesis]:
    """Everything a part could carry that one answer digit depends on.

    With `resolved` also the carries that leave lower columns: a part at another row than the
    digit's can have resolved some of the cascade. If two predict the same and score the same, the
    first, which says less, is named. The sign of a difference is its highest digit: the borrow out
    of the columns as they are written. A_n of a difference is always 0, and depends on nothing.
    """
    operation, digits = layout.operation, layout.digits
    names = operation.subtasks
    if digit == digits and all(one.signed for one in operation.each_part):
        return []
    own = [Hypothesis(names.base, digit, digit)] if digit < digits else []
    below = [
        Hypothesis(kind, column, digit)
        for column in reversed(range(min(digit, digits)))
        for kind in (names.makes, names.passes, STATE)
    ]
    leaving = [
        Hypothesis(CARRY_OUT, c, digit) for c in range(1, min(digit - 1, digits)) if resolved
    ]
    carry = [Hypothesis(CARRY_IN, digit, digit)] if 0 < digit <= digits else []
    sign = [Hypothesis(SIGN, digit, digit)] if operation.signed and digit < digits else []
    operator = [Hypothesis(OPERATOR, digit, digit)] if operation.parts else []
    return [*own, *below, *leaving, *carry, *sign, *operator, Hypothesis(DIGIT, digit, digit)]


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a hypothesis says about each pair."""

    value: Int[Array, " pair"]
    """The predicted digit."""
    sure: Bool[Array, " pair"]
    """Where the pair can test the hypothesis."""
    telling: Bool[Array, " pair"]
    """Where also the predicted digit is not the base's own."""


class Pairs:
    """Base and source questions, one to one, and what hypotheses predict for them."""

    def __init__(self, base: Questions, source: Questions) -> None:
        self.base, self.source, self._names = base, source, base.operation.subtasks
        # What a part brings: the source's digits, read with the base's operator and sign.
        brought = replace(source, operation=base.operation, kind=base.kind)
        never = np.zeros(len(base), dtype=bool)
        signs = ((base.negative, source.negative), (never, never))
        self._columns = [
            (Columns.of(base, ours), Columns.of(brought, ours), Columns.of(source, theirs))
            for ours, theirs in signs
        ]

    def _at(self, digit: int) -> tuple[int, tuple[Columns, Columns, Columns]]:
        """Where the carry into a digit is, and the columns of the base, of what a part brings and
        of the source. A sign is decided by the columns as they are written."""
        digits = self.base.digits
        return min(digit, digits), self._columns[digit > digits]

    def __len__(self) -> int:
        return len(self.base)

    def decided_in(self, digit: int, column: int, *, carrying: bool) -> Bool[Array, " pair"]:
        """Where the source's carry into a digit is decided in a column, and arrives or not."""
        place, (_, _, source) = self._at(digit)
        here: Array = (source.deciding == column) & (source.carry_in == carrying)
        return here[:, place]

    def own_digit(self, digit: int) -> Int[Array, " pair"]:
        """The base's true answer digit, or its sign."""
        place, (base, _, _) = self._at(digit)
        return _written(base, digit, base.carry_in[:, place])

    def predict(
        self, hypothesis: Hypothesis, right: Bool[Array, " pair"] | None = None
    ) -> Prediction:
        """The digit that follows if the variable comes from the source and the rest does not.

        `right` says where the model's own answer to the base is right. Elsewhere an answer could
        land on the predicted digit with nothing patched at all.
        """
        digit, reach = hypothesis.digit, hypothesis.reach
        place, (base, _, _) = self._at(digit)
        value = self._value(hypothesis, reach=digit)
        own = self.own_digit(digit)
        shallow = _written(
            base, digit, base.carry_in[:, place] & (base.look_ahead[:, place] < reach)
        )
        sure = (value == self._value(hypothesis, reach=reach)) & (own == shallow)
        sure &= ~self._shown_by_token(digit)
        sure = sure if right is None else sure & right
        return Prediction(value, sure, sure & (value != own))

    def _shown_by_token(self, digit: int) -> Bool[Array, " pair"]:
        """Where the token before the digit, which stays the base's, shows the carry.

        This happens to A_n-1 of a sum if its column propagates, in the base or in the source: A_n
        is then the carry itself, and no part has to carry it.
        """
        _, (base, brought, _) = self._at(digit)
        if digit != self.base.digits - 1:
            return np.zeros(len(self), dtype=bool)
        nine: Array = base.make_sum_9[:, digit] | brought.make_sum_9[:, digit]
        return nine & ~base.signed

    def _value(self, hypothesis: Hypothesis, reach: int) -> Int[Array, " pair"]:
        kind, column, digit = hypothesis
        place, (base, brought, source) = self._at(digit)
        own = {self._names.base: brought, DIGIT: source}.get(kind, base)
        below = source if kind in (CARRY_IN, DIGIT) else base
        if kind in (SIGN, OPERATOR):
            own = below = self._read_otherwise(kind, digit)
        made, nine = below.make_carry.copy(), below.make_sum_9.copy()
        if kind in (self._names.makes, STATE):
            made[:, column] = brought.make_carry[:, column]
        if kind in (self._names.passes, STATE):
            nine[:, column] = brought.make_sum_9[:, column]
        if kind == CARRY_OUT:
            made[:, : column + 1] = brought.make_carry[:, : column + 1]
            nine[:, : column + 1] = brought.make_sum_9[:, : column + 1]
        return _written(own, digit, _carried(made, nine, place, reach))

    def _read_otherwise(self, kind: str, digit: int) -> Columns:
        """The base's own digits, with the sign or the operator of the source."""
        if kind == SIGN:
            return Columns.of(self.base, self.source.negative)
        is_sign = digit > self.base.digits
        signs = np.zeros(len(self), dtype=bool) if is_sign else self.base.negative
        return Columns.of(replace(self.base, kind=self.source.kind), signs)


def _written(columns: Columns, digit: int, carry: Bool[Array, " pair"]) -> Int[Array, " pair"]:
    """The answer token if this carry arrives: a digit, or above A_n the sign."""
    if digit <= columns.digits:
        return columns.answer_digit(digit, carry)
    return np.where(carry & columns.signed, MINUS, PLUS)


def _carried(
    made: Bool[Array, "batch column"], nine: Bool[Array, "batch column"], digit: int, reach: int
) -> Bool[Array, " batch"]:
    """The carry that an adder of this reach sees arriving at a digit."""
    carry = np.zeros(len(made), dtype=bool)
    for column in range(max(0, digit - reach), digit):
        carry = made[:, column] | (nine[:, column] & carry)
    return carry
