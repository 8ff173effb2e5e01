"""Boxes of questions, and what one row has to answer in each of them.

In: a row and the trees of its columns. Out: `RowSpace`. A box is one set of digit pairs per
column, written as node numbers of the trees, units first. It holds every question whose columns
lie in those sets, so its size is a product of set sizes. The token that a row reads last (the
*query*), the answer tokens before it and the digit it must write (the *target*) follow from the
question, and as far as possible from the box:

    column      4    3      2  1    0         all kill in column 3, sum 12 in column 2:
    sums        any  0..8  12  any  any       A3's row reads an A4 that depends on column 4,
                                              A4's row has a carry-in of 0

In subtraction the sign comes first. It is the borrow that leaves the highest column, and where it
is negative the two digits of every column are exchanged. So each box is split until it has one
sign, and is then seen in the space of that sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from carryscope.certificate.rows import Row, SignAndQuery
from carryscope.certificate.trees import ColumnTree
from carryscope.core.errors import WorkError
from carryscope.task.operation import ADD, BASE, PAIRS, Array, Operation, State
from carryscope.task.questions import Questions

UNKNOWN = -1
"""In place of a token that is not the same for all questions of a box, or of no column."""

NO_CARRY, CARRY = 1, 2
"""Bits of a set of carries."""

COLUMNS_IN_A_WORD = 9
"""100^9 questions can be counted in 64 bits. Further columns have words of their own; only the
products of words are taken in Python's whole numbers, which are slow."""


class NodeFacts:
    """What each node of a tree says about the raw value, the state and the carry of a column."""

    def __init__(self, tree: ColumnTree, row: Row) -> None:
        held, operation = tree.members, row.operation
        raw = (operation.raw.T if row.negative else operation.raw).ravel().astype(np.int64)
        states = operation.state_of(raw).astype(np.int64)
        self.one_raw = _is_single(_values(held, raw - raw.min()))
        """Whether all pairs have the same raw value."""
        self.one_residue = _is_single(_values(held, operation.digit_of(raw)))
        """Whether all raw values have the same last digit."""
        self.one_state = _is_single(_values(held, states))
        self.state = states[held.argmax(1)]
        """The state of the first pair: of all of them, if there is one state only."""
        leaves = (states == State.GENERATE, states >= State.PROPAGATE)
        self.carries = np.stack([_values(held, carry) for carry in leaves])
        """The set of carries that leave, if no carry arrives, and if one does."""
        self.digits = np.stack([_values(held, operation.digit_of(raw, carry)) for carry in (0, 1)])
        """The set of answer digits as bits, if no carry arrives, and if one does."""


def _values(held: Bool[Array, "node pair"], value: Array) -> Int[Array, " node"]:
    """The set of values that the pairs of each node have, as bits."""
    bits = np.left_shift(1, value.astype(np.int64))
    return np.asarray(np.bitwise_or.reduce(np.where(held, bits, 0), axis=1))


def _is_single(sets: Int[Array, " node"]) -> Bool[Array, " node"]:
    """Whether each set of bits has one member."""
    return np.asarray(sets & (sets - 1) == 0)


@dataclass(frozen=True, eq=False)
class RowSpace:
    """All questions of one operation as one row sees them, in boxes of its own trees.

    Where answers can be negative, what is said of digits holds for questions of the row's sign.
    """

    row: Row
    trees: Sequence[ColumnTree]

    @property
    def columns(self) -> int:
        return len(self.trees)

    @property
    def everything(self) -> Int[Array, "1 column"]:
        """The box of all questions."""
        return np.zeros((1, self.columns), dtype=np.int16)

    @cached_property
    def facts(self) -> list[NodeFacts]:
        return [NodeFacts(tree, self.row) for tree in self.trees]

    @cached_property
    def _other_sign(self) -> RowSpace:
        return RowSpace(replace(self.row, negative=not self.row.negative), self.trees)

    def of_sign(self, negative: bool) -> RowSpace:
        """The same boxes, for questions whose answers have this sign."""
        return self if negative == self.row.negative else self._other_sign

    def negative(self, boxes: Int[Array, "box column"]) -> Int[Array, " box"]:
        """Whether the answers of each box are negative, 0 or 1, where that is the same throughout.

        They are if a borrow leaves the highest column, before any exchange.
        """
        if not self.row.operation.signed:
            return np.zeros(len(boxes), dtype=np.int64)
        return _only(self.of_sign(False).carries(boxes)[:, -1])

    def readings(
        self, boxes: Int[Array, "box column"]
    ) -> Iterator[tuple[SignAndQuery, Int[Array, " some"]]]:
        """The numbers of the boxes that share tables. In each, target and query must be certain."""
        sign = self.negative(boxes)
        for negative in np.unique(sign):
            at = np.flatnonzero(sign == negative)
            seen = self.of_sign(bool(negative))
            digits = seen.digits(boxes[at])
            query = seen.queries(digits)
            if negative == UNKNOWN or UNKNOWN in query or UNKNOWN in seen.targets(digits):
                raise WorkError(f"{self.row.name}: a box has no certain digit to write or to read.")
            for token in np.unique(query):
                yield SignAndQuery(bool(negative), int(token)), at[query == token]

    def share(self, boxes: Int[Array, "box column"]) -> Array:
        """The share of all questions in each box, rounded: for choosing, never for counting."""
        sizes = [tree.sizes[boxes[:, c]] / PAIRS for c, tree in enumerate(self.trees)]
        return np.asarray(np.prod(sizes, axis=0))

    def sizes(self, boxes: Int[Array, "box column"]) -> Array:
        """How many questions each box holds: exactly, in whole numbers of any size."""
        held = [tree.sizes[boxes[:, c]] for c, tree in enumerate(self.trees)]
        words = [
            np.prod(held[start : start + COLUMNS_IN_A_WORD], axis=0, dtype=np.int64)
            for start in range(0, self.columns, COLUMNS_IN_A_WORD)
        ]
        return product_of_words(words)

    def count(self, boxes: Int[Array, "box column"]) -> int:
        """How many questions disjoint boxes hold, exactly."""
        return int(self.sizes(boxes).sum())

    def carries(self, boxes: Int[Array, "box column"]) -> Int[Array, "box digit"]:
        """The set of carries that may arrive at each column, and leave the last, as bits."""
        found = np.full((len(boxes), self.columns + 1), NO_CARRY)
        for c, facts in enumerate(self.facts):
            without, with_carry = facts.carries[:, boxes[:, c]]
            found[:, c + 1] = _either(found[:, c], without, with_carry)
        return found

    def digits(self, boxes: Int[Array, "box column"]) -> Int[Array, "box digit"]:
        """The set of values of each answer digit as bits; the last is the carry itself."""
        carries = self.carries(boxes)
        found = carries.copy()
        for c, facts in enumerate(self.facts):
            found[:, c] = _either(carries[:, c], *facts.digits[:, boxes[:, c]])
        return found

    def targets(self, digits: Int[Array, "box digit"]) -> Int[Array, " box"]:
        """The token the row must write in each box, where it is the same throughout."""
        if self.row.digit is None:
            return np.full(len(digits), self.row.sign)
        return _only(digits[:, self.row.digit])

    def queries(self, digits: Int[Array, "box digit"]) -> Int[Array, " box"]:
        """The token the row reads last in each box, where it is the same throughout."""
        if self.row.query_digit is None:
            return np.full(len(digits), self.row.query_symbol)
        return _only(digits[:, self.row.query_digit])

    def column_to_settle(self, boxes: Int[Array, "box column"]) -> Int[Array, " box"]:
        """The column to split so that sign, target and query become certain, if they are not.

        First what decides the sign. Then the row's own column and the query's, by their raw values,
        and what decides the carry into the own column.
        """
        chosen = np.full(len(boxes), UNKNOWN)
        if self.row.operation.signed:
            chosen = self._where_a_carry_is_open(boxes, self.columns)
        if self.row.digit is None:
            return chosen
        own, query = self.row.digit, self.row.query_digit
        if own < self.columns:
            settled = self.facts[own].one_raw[boxes[:, own]]
            chosen = np.where((chosen == UNKNOWN) & ~settled, own, chosen)
        if query is not None and query < self.columns:
            settled = self.facts[query].one_residue[boxes[:, query]]
            chosen = np.where((chosen == UNKNOWN) & ~settled, query, chosen)
        below = self._where_a_carry_is_open(boxes, own)
        return np.where(chosen == UNKNOWN, below, chosen)

    def _where_a_carry_is_open(
        self, boxes: Int[Array, "box column"], digit: int
    ) -> Int[Array, " box"]:
        """The highest column below a digit whose states leave open which carry arrives there."""
        chosen = np.full(len(boxes), UNKNOWN)
        passed_on = np.ones(len(boxes), dtype=bool)
        for c in reversed(range(digit)):
            facts, nodes = self.facts[c], boxes[:, c]
            mixed = ~facts.one_state[nodes]
            chosen = np.where((chosen == UNKNOWN) & passed_on & mixed, c, chosen)
            passed_on &= (facts.state[nodes] == State.PROPAGATE) & ~mixed
        return chosen

    def parts(
        self, boxes: Int[Array, "box column"], column: Int[Array, " box"]
    ) -> Int[Array, " box"]:
        """Into how many parts each box falls when it is split at its column."""
        counts = np.zeros(len(boxes), dtype=np.int64)
        for c, tree in enumerate(self.trees):
            at = column == c
            counts[at] = tree.parts[boxes[at, c]]
        return counts

    def children(
        self, boxes: Int[Array, "box column"], column: Int[Array, " box"]
    ) -> tuple[Int[Array, "child column"], Int[Array, " box"]]:
        """Every box split at its column: the parts one after the other, and how many each has."""
        counts = self.parts(boxes, column)
        split, at = np.repeat(boxes, counts, axis=0), np.repeat(column, counts)
        number = np.arange(len(split)) - np.repeat(np.cumsum(counts) - counts, counts)
        for c, tree in enumerate(self.trees):
            here = at == c
            first = tree.first_child[split[here, c]]
            split[here, c] = tree.child_list[first + number[here]]
        return split, counts


def product_of_words(words: Sequence[Int[Array, " some"]]) -> Array:
    """The product of numbers of 64 bits, however large it is."""
    if len(words) == 1:
        return words[0]
    return np.asarray(np.prod([word.astype(object) for word in words], axis=0))


def _either(carries: Array, without: Array, with_carry: Array) -> Array:
    """What is possible, given which carries may arrive."""
    return np.where(carries & NO_CARRY, without, 0) | np.where(carries & CARRY, with_carry, 0)


_ONLY = np.full(1 << BASE, UNKNOWN)
_ONLY[1 << np.arange(BASE)] = np.arange(BASE)


def _only(sets: Int[Array, " box"]) -> Int[Array, " box"]:
    """The member of each set of digits that has just one."""
    return _ONLY[sets]


def questions_of_pairs(pairs: Int[Array, "batch column"], operation: Operation = ADD) -> Questions:
    """The questions with these digit pairs, units first."""
    return Questions(pairs // BASE, pairs % BASE, operation)


def pairs_of_questions(questions: Questions) -> Int[Array, "batch column"]:
    """The number of the digit pair in each column."""
    return np.asarray(BASE * questions.first.astype(np.int64) + questions.second)
