"""Boxes and how they are split, compiled: `RowSpace` as arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from carryscope.certificate.boxes import CARRY, NO_CARRY, RowSpace
from carryscope.certificate.compiling import compiled
from carryscope.certificate.proof import STUCK
from carryscope.certificate.row_tables import NUMBER_OF_CARRIES, NUMBER_OF_DIGITS
from carryscope.task.operation import PAIRS, Array


class SpaceTables(NamedTuple):
    """The trees of a row's columns as arrays, by column and node."""

    size: Array
    parts: Array
    first_part: Array
    """Where the parts of a node begin in `part`."""
    part: Array
    one_raw: Array
    carries: Array
    digits: Array
    """As in `NodeFacts`, by column, carry that arrives, and node."""
    earlier: Array
    """The answer digits before the query."""
    carry_sets: Array
    digit_sets: Array
    """The number of the smallest set of tokens that holds a set of carries, or of digits."""


def space_tables(space: RowSpace) -> SpaceTables:
    """The trees of a row as arrays; where a column has fewer nodes than others, zeros follow."""
    nodes = max(len(tree.start) for tree in space.trees)

    def stacked(rows: Callable[[int], Array]) -> Array:
        found = [rows(c) for c in range(space.columns)]
        wide = [
            np.pad(row, [(0, 0)] * (row.ndim - 1) + [(0, nodes - row.shape[-1])]) for row in found
        ]
        return np.stack(wide)

    trees, facts = space.trees, space.facts
    return SpaceTables(
        size=stacked(lambda c: trees[c].sizes),
        parts=stacked(lambda c: trees[c].parts),
        first_part=stacked(lambda c: trees[c].first_child),
        part=stacked(lambda c: trees[c].child_list),
        one_raw=stacked(lambda c: facts[c].one_raw),
        carries=stacked(lambda c: facts[c].carries),
        digits=stacked(lambda c: facts[c].digits),
        earlier=np.array([digit for digit, _ in space.row.earlier], dtype=np.int64),
        carry_sets=NUMBER_OF_CARRIES,
        digit_sets=NUMBER_OF_DIGITS,
    )


@compiled
def either(carries: int, without: int, with_carry: int) -> int:
    """What is possible, given which carries may arrive."""
    found = 0
    if carries & NO_CARRY:
        found |= without
    if carries & CARRY:
        found |= with_carry
    return found


@compiled
def set_numbers_of(space: SpaceTables, box: Array) -> Array:
    """The set of every slot: of the columns, and of the answer digits before the query."""
    columns, earlier = box.shape[0], space.earlier.shape[0]
    numbers, carries = np.empty(columns + earlier, np.int64), NO_CARRY
    for c in range(columns):
        node = box[c]
        numbers[c] = node
        held = either(carries, space.digits[c, 0, node], space.digits[c, 1, node])
        for k in range(earlier):
            if space.earlier[k] == c:
                numbers[columns + k] = space.digit_sets[held]
        carries = either(carries, space.carries[c, 0, node], space.carries[c, 1, node])
    for k in range(earlier):
        if space.earlier[k] == columns:
            numbers[columns + k] = space.carry_sets[carries]
    return numbers


@compiled
def column_to_split(space: SpaceTables, box: Array, cost: Array) -> int:
    """The column that costs most and can be split; STUCK if there is none.

    What an answer digit before the query costs counts for the columns that decide it: its own
    while that has several raw values, else the next one below that leaves a carry open.
    """
    columns = box.shape[0]
    total = cost[:columns].copy()
    for k in range(space.earlier.shape[0]):
        owner = -1
        for c in range(min(space.earlier[k], columns - 1) + 1):
            if not space.one_raw[c, box[c]]:
                owner = c
        if owner >= 0:
            total[owner] += cost[columns + k]
    chosen, most = STUCK, -1.0
    for c in range(columns):
        if space.size[c, box[c]] > 1 and (chosen == STUCK or total[c] > most):
            chosen, most = c, total[c]
    return chosen


@compiled
def share_of(space: SpaceTables, box: Array) -> float:
    """The share of all questions in a box."""
    share = 1.0
    for c in range(box.shape[0]):
        share *= space.size[c, box[c]] / PAIRS
    return share
