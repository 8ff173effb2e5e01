"""From rows to whole questions.

In: the proofs of all rows. Out: how many questions are proved right, and how many wrong.

A question is right if every row is, reading the true answer so far. The same then holds when
the model runs free: its first token is the true one, so the second row reads what it would
read teacher-forced, and so on. A question is wrong if any row is: either an earlier token is
already wrong, or the row reads the true answer so far and errs.

Up to three digits questions are looked up one by one in the proofs. Beyond, with B_k the
questions not proved right in row k and W_k those proved wrong, what counts is the size of the
unions of all B_k and of all W_k, and it is bounded by inclusion and exclusion to second order,
in whole numbers:

    |union of B| <= sum_k |B_k| - sum over a chain of rows of |B_k and B_k+1|
    |union of W| >= sum_k |W_k| - sum over all pairs of rows of |W_j and W_k|

The overlap of two rows is a sum over pairs of boxes of products over columns; boxes are joined
column by column, so that pairs that do not meet are dropped at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from carryscope.certificate.boxes import (
    COLUMNS_IN_A_WORD,
    RowSpace,
    product_of_words,
    questions_of_pairs,
)
from carryscope.certificate.proof import OPEN, RIGHT, STUCK, WRONG, RowProof
from carryscope.task.operation import PAIRS, Array

MOST_DIGITS_ONE_BY_ONE = 3
"""A million questions are looked up quickly, a hundred million are not."""

MOST_PAIRS, MOST_PIECES = 20_000_000, 200
"""Pairs of boxes that are held at once, and how often. An overlap with more pairs than that is not
counted but taken for its worst case."""


class Counts(NamedTuple):
    """How many questions there are, and how many are proved right and wrong."""

    questions: int
    right: int
    wrong: int

    @property
    def undecided(self) -> int:
        return self.questions - self.right - self.wrong


def count_whole_questions(proofs: Sequence[RowProof], *, overlaps: bool = True) -> Counts:
    """How many questions are proved right, and proved wrong.

    Without `overlaps` the union bound alone is used, which is quick and never says more.
    """
    counts = [
        _of_one_operation([proof for proof in proofs if proof.space.row.operation is one], overlaps)
        for one in dict.fromkeys(proof.space.row.operation for proof in proofs)
    ]
    return Counts(*map(sum, zip(*counts, strict=True)))


def _of_one_operation(proofs: Sequence[RowProof], overlaps: bool) -> Counts:
    columns = proofs[0].space.columns
    if overlaps and columns <= MOST_DIGITS_ONE_BY_ONE:
        return _one_by_one(proofs, columns)
    questions = PAIRS**columns
    bad = [proof.count(WRONG, OPEN, STUCK) for proof in proofs]
    wrong = [proof.count(WRONG) for proof in proofs]
    shared = 0
    # A row of which nothing is proved decides for all: then overlaps need not be counted.
    if overlaps and max(bad) < questions:
        shared = sum(
            overlap(above, below, (WRONG, OPEN, STUCK)) or 0
            for above, below in pairwise(p for p, n in zip(proofs, bad, strict=True) if n)
        )
    right = max(0, questions - sum(bad) + shared)
    return Counts(questions, right, _least_wrong(proofs, wrong, overlaps))


def _one_by_one(proofs: Sequence[RowProof], columns: int) -> Counts:
    """What the proofs say about every single question."""
    pairs = np.indices((PAIRS,) * columns).reshape(columns, -1).T
    verdicts = np.stack([proof.about(questions_of_pairs(pairs)) for proof in proofs])
    right, wrong = (verdicts == RIGHT).all(0), (verdicts == WRONG).any(0)
    return Counts(len(pairs), int(right.sum()), int(wrong.sum()))


def _least_wrong(proofs: Sequence[RowProof], wrong: Sequence[int], overlaps: bool) -> int:
    least = max(wrong)
    if overlaps:
        failing = [proof for proof, n in zip(proofs, wrong, strict=True) if n]
        shared = [overlap(one, other, (WRONG,)) for one, other in combinations(failing, 2)]
        if None not in shared:
            least = max(least, sum(wrong) - sum(n for n in shared if n is not None))
    return least


def overlap(one_row: RowProof, other_row: RowProof, verdicts: tuple[int, ...]) -> int | None:
    """How many questions lie in boxes of both rows; None if there are too many pairs.

    The columns that are split most are joined first: there most pairs fall away.
    """
    boxes, others = one_row.leaves(*verdicts), other_row.leaves(*verdicts)
    together, shared = [boxes], 0
    for _ in range(MOST_PIECES):
        if not together:
            return shared
        some = together.pop()
        found = _overlap(one_row.space, other_row.space, some, others)
        if found is not None:
            shared += found
        elif len(some) == 1:
            return None
        else:
            together += np.array_split(some, 2)
    return None


def _overlap(
    space: RowSpace,
    other_space: RowSpace,
    boxes: Int[Array, "box column"],
    others: Int[Array, "other column"],
) -> int | None:
    """How many questions boxes of two rows share; None if there are too many pairs for once."""
    names = [
        len(np.unique(boxes[:, c])) * len(np.unique(others[:, c])) for c in range(space.columns)
    ]
    order = np.argsort(names, kind="stable")[::-1].tolist()
    left, right = _prefixes(boxes, order), _prefixes(others, order)
    one, other = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    words = [np.ones(1, dtype=np.int64) for _ in range(0, space.columns, COLUMNS_IN_A_WORD)]
    for number, (column, mine, theirs) in enumerate(zip(order, left, right, strict=True)):
        if int((mine.many[one] * theirs.many[other]).sum()) > MOST_PAIRS:
            return None
        before, one, other = _extended(mine, theirs, one, other)
        common = _common(space, other_space, column)[mine.node[one], theirs.node[other]]
        meet = common > 0
        one, other = one[meet], other[meet]
        words = [word[before[meet]] for word in words]
        words[number // COLUMNS_IN_A_WORD] *= common[meet]
    return int(product_of_words(words).sum())


class _Prefixes(NamedTuple):
    """The different beginnings of boxes, one column longer than those before."""

    node: Int[Array, " prefix"]
    """The set in the last column."""
    start: Int[Array, " shorter"]
    many: Int[Array, " shorter"]
    """The beginnings that go on from each shorter one stand in a row."""


def _prefixes(boxes: Int[Array, "box column"], order: Sequence[int]) -> list[_Prefixes]:
    """The beginnings of the boxes, their columns taken in this order."""
    found, shorter, known = [], np.zeros(len(boxes), dtype=np.int64), 1
    for column in order:
        keys = np.stack([shorter, boxes[:, column].astype(np.int64)], axis=1)
        different, longer = np.unique(keys, axis=0, return_inverse=True)
        count = np.bincount(different[:, 0], minlength=known)
        found.append(_Prefixes(different[:, 1], np.cumsum(count) - count, count))
        shorter, known = longer.reshape(-1), len(different)
    return found


def _extended(
    mine: _Prefixes, theirs: _Prefixes, one: Array, other: Array
) -> tuple[Array, Array, Array]:
    """Every pair of beginnings, one column longer: where it came from, and its two sides."""
    times = mine.many[one] * theirs.many[other]
    before = np.repeat(np.arange(len(one)), times)
    place = np.arange(len(before)) - np.repeat(np.cumsum(times) - times, times)
    across = theirs.many[other][before]
    longer = mine.start[one][before] + place // across
    return before, longer, theirs.start[other][before] + place % across


def _common(space: RowSpace, other: RowSpace, column: int) -> Int[Array, "node other_node"]:
    """How many digit pairs the sets of two trees have in common."""
    mine, theirs = space.trees[column].members, other.trees[column].members
    return mine.astype(np.int64) @ theirs.astype(np.int64).T
