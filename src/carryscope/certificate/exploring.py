"""Decide boxes: bound them, split those that stay undecided where most is lost, and so on.

In: a `Piece`: boxes of one row and query, and how small is small. Out: a `Fragment` of the proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from carryscope.certificate.boxes import RowSpace
from carryscope.certificate.proof import OPEN, RIGHT, STUCK, WRONG, Fragment
from carryscope.certificate.row_tables import RowTables, set_numbers
from carryscope.certificate.subject import ProofSubject
from carryscope.task.operation import Array

GUARD = 1e-4
"""The search demands bounds above this, the check above 0: it may add up in another order."""

FEW = 8
"""For fewer boxes it is not worth it to leave out neurons that are inactive in all of them."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Open boxes of one row and query that are to be decided."""

    row: int
    query: int
    roots: Int[Array, " box"]
    """The numbers of the boxes in the proof of the row."""
    boxes: Int[Array, "box column"]
    beaten: Int[Array, " box"]
    small: float
    """Parts that hold less than this share of all questions are left open."""
    most: int
    """What remains after about so many boxes is left open."""


def explore(subject: ProofSubject, piece: Piece) -> Fragment:
    """Judge the boxes of a piece, split the undecided ones, and so on, level by level."""
    boxes, beaten = piece.boxes, piece.beaten
    space, verdicts, found, judged = subject.spaces[piece.row], [], [], 0
    tables = subject.tables_for(piece.row, piece.query, boxes)
    while len(boxes):
        wanted = (space.share(boxes) >= piece.small) | (judged == 0)
        wanted &= judged + np.cumsum(wanted) <= max(piece.most, len(boxes) if judged == 0 else 0)
        verdict, beaten = np.full(len(boxes), OPEN), beaten.copy()
        verdict[wanted], beaten[wanted] = judge(subject, tables, space, boxes[wanted], beaten[wanted])
        judged += int(wanted.sum())
        verdicts.append(verdict)
        found.append(beaten)
        split = verdict >= 0
        boxes, counts = space.children(boxes[split], verdict[split])
        beaten = np.repeat(beaten[split], counts)
    return Fragment(
        np.concatenate(verdicts).astype(np.int8), np.concatenate(found).astype(np.int16), judged
    )


def judge(
    subject: ProofSubject, tables: RowTables, space: RowSpace, boxes: Array, beaten: Array
) -> tuple[Int[Array, " box"], Int[Array, " box"]]:
    """The verdict on each box: RIGHT, WRONG, STUCK or the column to split; and who is beaten."""
    digits = space.digits(boxes)
    target, everyone = space.targets(digits), (1 << len(tables.offset)) - 1
    numbers, before = set_numbers(space, boxes, digits), beaten.astype(np.int64)
    beaten, wrong, hurt = subject.engine.judge(
        tables, numbers, target, before, every=False, guard=GUARD
    )
    cost = by_column(space, boxes, hurt)
    verdict = np.where(np.isneginf(cost).all(1), STUCK, cost.argmax(1))
    verdict[wrong] = WRONG
    verdict[beaten | 1 << target == everyone] = RIGHT
    return verdict, beaten


def by_column(
    space: RowSpace, boxes: Int[Array, "box column"], hurt: Array
) -> Array:
    """What each column costs that can still be split.

    An answer token before the query is split by splitting the columns that decide it: its own
    while that has several raw values, else the next one below that leaves a carry open.
    """
    total = hurt[:, : space.columns].copy()
    one_raw = np.stack([f.one_raw[boxes[:, c]] for c, f in enumerate(space.facts)], axis=1)
    for slot, (digit, _) in enumerate(space.row.earlier, start=space.columns):
        owner = np.full(len(boxes), -1)
        for c in range(min(digit, space.columns - 1) + 1):
            owner = np.where(~one_raw[:, c], c, owner)
        some = owner >= 0
        total[some, owner[some]] += hurt[some, slot]
    whole = np.stack([t.sizes[boxes[:, c]] == 1 for c, t in enumerate(space.trees)], axis=1)
    return np.where(whole, -np.inf, total)
