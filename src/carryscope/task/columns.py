"""Columns and sub-tasks: what each digit pair contributes, and what each answer digit needs.

In: `Questions`. Out: `Columns`, whose attributes are arrays over (batch, column) or
(batch, digit). Worked sum, 00445+00555=001000 (column 0 on the right):

    column         4 3 2 1 0           answer digit     5 4 3 2 1 0
    raw value      0 0 9 9 10          carry-in         0 0 1 1 1 0
    state          K K P P G           look-ahead       0 0 2 1 0 0
                                       decided in       3 2 0 0 0 -
                                       task class       BA BA UC1 US9 US9 BA

A3 is 1 only because of the carry that column 0 generates and columns 1 and 2 pass on: a
carrying cascade of depth 2.

In subtraction a borrow travels in the same way: 01000-00001=+000999 has the states P K P P G. If
the answer is negative, these are the columns of the exchanged question: 1-1000 has those of
1000-1. The borrow out of the highest column of the question as written is the sign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from carryscope.task.operation import ADD, Array, Operation, State
from carryscope.task.questions import Questions

ALGORITHM_1_REACH = 2
"""The paper's Algorithm 1 looks two columns below each answer digit."""


class Task(IntEnum):
    """Task class of one answer digit in one question: an exact partition."""

    BA = 0
    """Base add: no carry arrives."""
    UC1 = 1
    """Use carry 1: a carry arrives at a column that does not propagate."""
    US9 = 2
    """Use sum 9: a carry arrives at a column that propagates, so the carry travels on."""


class QuestionClass(IntEnum):
    """The hardest thing in a question, after the paper's table by category."""

    BA = 0
    """No column receives a carry."""
    UC1 = 1
    """Some column receives a carry; none passes one on."""
    SIMPLE_US9 = 2
    """A carry travels through one column that propagates, never through two in a row."""
    CASCADE_US9 = 3
    """A carry travels through two or more columns in a row."""

    @property
    def label(self) -> str:
        return ("BA", "UC1", "simple US9", "cascade US9")[self]


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a batch of questions, and all that follows from their raw values."""

    sums: Int[Array, "batch column"]
    """Raw values; in addition the sums D + D'."""
    operation: Operation = ADD
    kind: Int[Array, " batch"] | None = None
    """In a mixed batch, the place of each question's operation in `operation.parts`."""
    negative: Bool[Array, " batch"] | None = None
    """Where the two numbers were exchanged; None for sums."""

    @classmethod
    def of(cls, questions: Questions, negative: Bool[Array, " batch"] | None = None) -> Columns:
        """The columns of these questions, the numbers exchanged where the answer is negative.

        With `negative` they are exchanged where it says so.
        """
        if questions.operation.signed:
            negative = questions.negative if negative is None else negative
            questions = questions.ordered(negative)
        sums = questions.each(lambda one: one.raw[questions.first, questions.second])
        return cls(sums, questions.operation, questions.kind, negative)

    def __getitem__(self, chosen: Any) -> Columns:
        """The columns of the questions picked by a slice, a mask or an index array."""
        kind, negative = (x if x is None else x[chosen] for x in (self.kind, self.negative))
        return Columns(self.sums[chosen], self.operation, kind, negative)

    def each(self, of: Callable[[Operation], Any]) -> Array:
        """What `of` gives for each question's own operation."""
        return self.operation.each(self.kind, of)

    @property
    def digits(self) -> int:
        return int(self.sums.shape[1])

    @property
    def signed(self) -> Bool[Array, " batch"]:
        """Which questions are differences, whose answers can be negative."""
        return self.each(lambda one: np.full(len(self.sums), one.signed))

    @property
    def reading(self) -> Int[Array, " batch"]:
        """A number for how the two digits of a column are read: by which operation, exchanged or
        not. It is the same for all sums."""
        reading: Array = np.zeros(len(self.sums), dtype=np.int64)
        for factor, each in ((2, self.kind), (1, self.negative)):
            reading += 0 if each is None else factor * each
        return reading

    @cached_property
    def state(self) -> Int[Array, "batch column"]:
        """The `State` of each column; MC1 and MS9 together, hence "tri-state"."""
        return self.each(lambda one: one.state_of(self.sums))

    @property
    def base_add(self) -> Int[Array, "batch column"]:
        """BA: the answer digit if no carry arrives."""
        return self.each(lambda one: one.digit_of(self.sums))

    @property
    def make_carry(self) -> Bool[Array, "batch column"]:
        """MC1: the column generates."""
        return np.equal(self.state, State.GENERATE)

    @property
    def make_sum_9(self) -> Bool[Array, "batch column"]:
        """MS9: the column propagates."""
        return np.equal(self.state, State.PROPAGATE)

    @cached_property
    def carry_in(self) -> Bool[Array, "batch digit"]:
        """UC1: the true carry arriving at column k; at k = n it is the answer digit A_n itself.

        It is also whether the look-ahead of digit k ends in *generate* (*carrying*), or not
        (*quiet*): the first column below that does not propagate decides it.
        """
        made, passed_on = self.make_carry, self.make_sum_9
        carry = np.zeros((len(self.sums), self.digits + 1), dtype=bool)
        for i in range(self.digits):
            carry[:, i + 1] = made[:, i] | (passed_on[:, i] & carry[:, i])
        return carry

    def answer_digit(self, digit: int, carry: Bool[Array, " batch"]) -> Int[Array, " batch"]:
        """An answer digit, if this is the carry that arrives; A_n is the carry itself.

        In subtraction no borrow leaves the highest column once the numbers are in order: A_n is 0.
        """
        if digit == self.digits:
            return np.asarray(carry & ~self.signed).astype(self.sums.dtype)
        return self.each(lambda one: one.digit_of(self.sums[:, digit], carry))

    def answer(self, carry: Bool[Array, "batch digit"] | None = None) -> Int[Array, "batch digit"]:
        """All answer digits, if these are the carries that arrive; by default the true ones.

        The sign of a difference is apart: it is `questions.negative`.
        """
        carry = self.carry_in if carry is None else carry
        low = self.each(lambda one: one.digit_of(self.sums, carry[:, :-1]))
        top = self.answer_digit(self.digits, carry[:, -1])
        return np.concatenate([low, top[:, None].astype(low.dtype)], axis=1)

    @cached_property
    def look_ahead(self) -> Int[Array, "batch digit"]:
        """Depth L: how many columns directly below digit k propagate before one does not."""
        passes = self.make_sum_9
        depth = np.zeros((len(self.sums), self.digits + 1), dtype=np.int8)
        for i in range(self.digits):
            depth[:, i + 1] = np.where(passes[:, i], depth[:, i] + 1, 0)
        return depth

    def carry_seen(self, reach: int | Int[Array, " digit"]) -> Bool[Array, "batch digit"]:
        """The carries that an adder sees which looks `reach` columns below each digit.

        If every column in reach propagates, it assumes that none arrives. Reach n is exact. Reach 2
        is the paper's Algorithm 1, completed: as printed it never produces A_n.
        """
        return np.asarray(self.carry_in & (self.look_ahead < reach))

    @property
    def sign_look_ahead(self) -> Int[Array, " batch"]:
        """How many of the highest columns have equal digits: the sign is decided below them.

        Of sums, which have no sign, it is how many of the highest columns propagate.
        """
        return np.asarray(self.make_sum_9[:, ::-1].cumprod(axis=1).sum(axis=1))

    @property
    def deciding(self) -> Int[Array, "batch digit"]:
        """The column that decides which carry arrives: the first below that does not propagate.

        If all of them do, it is column 0, which receives no carry to pass on. -1 at the units.
        """
        first = np.arange(self.digits + 1) - 1 - self.look_ahead
        first[:, 1:] = first[:, 1:].clip(min=0)
        return first

    @cached_property
    def task(self) -> Int[Array, "batch digit"]:
        """The `Task` of each answer digit. A_n has no column to propagate: BA or UC1."""
        task = self.carry_in.astype(np.int8)
        task[:, :-1] += self.make_sum_9 & self.carry_in[:, :-1]
        return task

    def in_task(self, name: str) -> Bool[Array, "batch digit"]:
        """Which answer digits are of a task class of an operation: of BA, or of MD."""

        def where(one: Operation) -> Array:
            named = dict(zip(one.subtasks.classes, Task, strict=True))
            return np.equal(self.task, named.get(name, -1))

        return self.each(where)

    @cached_property
    def question_class(self) -> Int[Array, " batch"]:
        """The `QuestionClass`: by the longest distance any carry travels."""
        travelled: Array = np.where(self.carry_in, self.look_ahead + 1, 0).max(axis=1)
        return travelled.clip(max=QuestionClass.CASCADE_US9)
