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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from carryscope.task.columns import ALGORITHM_1_REACH, Columns
from carryscope.task.operation import ADD, Array, State
from carryscope.task.questions import Questions

BASE_ADD, MAKES, PASSES = ADD.subtasks.base, ADD.subtasks.makes, ADD.subtasks.passes
STATE, CARRY_IN, DIGIT = "state", "carry_in", "digit"
"""What a part can carry: the paper's sub-tasks; the state, MC1 and MS9 together; the arriving
carry; the finished answer digit."""

IN_WORDS = {
    BASE_ADD: f"the base sum ({BASE_ADD}) of {{}}",
    MAKES: f"the {ADD.words.carry} made ({MAKES}) in {{}}",
    PASSES: f"whether {{}} {ADD.words.column[State.PROPAGATE]} ({PASSES})",
    STATE: "the state of {}",
    CARRY_IN: f"the arriving {ADD.words.carry}",
    DIGIT: "the finished digit",
}
"""Each of them in words, with the column it is about."""


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
        below = self.digit - self.column
        needed = {MAKES: below, PASSES: below + 1, STATE: below + 1}.get(self.kind, 0)
        return max(ALGORITHM_1_REACH, needed)


def hypotheses_for(digit: int, digits: int) -> list[Hypothesis]:
    """Everything a part could carry that one answer digit depends on.

    If two predict the same and score the same, the first, which says less, is named.
    """
    own = [Hypothesis(BASE_ADD, digit, digit)] if digit < digits else []
    below = [
        Hypothesis(kind, column, digit)
        for column in reversed(range(digit))
        for kind in (MAKES, PASSES, STATE)
    ]
    carry = [Hypothesis(CARRY_IN, digit, digit)] if digit else []
    return [*own, *below, *carry, Hypothesis(DIGIT, digit, digit)]


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
        self.base, self.source = base, source
        self._base, self._source = Columns.of(base), Columns.of(source)

    def __len__(self) -> int:
        return len(self.base)

    def decided_in(self, digit: int, column: int, *, carrying: bool) -> Bool[Array, " pair"]:
        """Where the source's carry into a digit is decided in a column, and arrives or not."""
        source = self._source
        here: Array = (source.deciding == column) & (source.carry_in == carrying)
        return here[:, digit]

    def own_digit(self, digit: int) -> Int[Array, " pair"]:
        """The base's true answer digit."""
        return self._base.answer_digit(digit, self._base.carry_in[:, digit])

    def predict(
        self, hypothesis: Hypothesis, right: Bool[Array, " pair"] | None = None
    ) -> Prediction:
        """The digit that follows if the variable comes from the source and the rest does not.

        `right` says where the model's own answer to the base is right. Elsewhere an answer could
        land on the predicted digit with nothing patched at all.
        """
        digit = hypothesis.digit
        value = self._value(hypothesis, reach=digit)
        own = self.own_digit(digit)
        seen = self._base.look_ahead[:, digit] < hypothesis.reach
        shallow = self._base.answer_digit(digit, self._base.carry_in[:, digit] & seen)
        sure = (value == self._value(hypothesis, reach=hypothesis.reach)) & (own == shallow)
        sure &= ~self._shown_by_token(digit)
        sure = sure if right is None else sure & right
        return Prediction(value, sure, sure & (value != own))

    def _shown_by_token(self, digit: int) -> Bool[Array, " pair"]:
        """Where the token before the digit, which stays the base's, shows the carry.

        This happens to A_n-1 if its column propagates, in the base or in the source: A_n is then
        the carry itself, and no part has to carry it.
        """
        if digit != self.base.digits - 1:
            return np.zeros(len(self), dtype=bool)
        nine: Array = self._base.make_sum_9[:, digit] | self._source.make_sum_9[:, digit]
        return nine

    def _value(self, hypothesis: Hypothesis, reach: int) -> Int[Array, " pair"]:
        kind, column, digit = hypothesis
        own = self._source if kind in (BASE_ADD, DIGIT) else self._base
        below = self._source if kind in (CARRY_IN, DIGIT) else self._base
        made, nine = below.make_carry.copy(), below.make_sum_9.copy()
        if kind in (MAKES, STATE):
            made[:, column] = self._source.make_carry[:, column]
        if kind in (PASSES, STATE):
            nine[:, column] = self._source.make_sum_9[:, column]
        return own.answer_digit(digit, _carried(made, nine, digit, reach))


def _carried(
    made: Bool[Array, "batch column"], nine: Bool[Array, "batch column"], digit: int, reach: int
) -> Bool[Array, " batch"]:
    """The carry that an adder of this reach sees arriving at a digit."""
    carry = np.zeros(len(made), dtype=bool)
    for column in range(max(0, digit - reach), digit):
        carry = made[:, column] | (nine[:, column] & carry)
    return carry
