"""Decide boxes: bound them, split those that stay undecided where most is lost, and so on.

In: a `Piece`: boxes of one row and query, and how small is small. Out: a `Fragment` of the proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from carryscope.certificate.boxes import RowSpace
from carryscope.certificate.margins import CHUNK, GUARD, Bounds
from carryscope.certificate.proof import OPEN, RIGHT, STUCK, WRONG, Fragment
from carryscope.certificate.row_tables import RowTables
from carryscope.certificate.subject import ProofSubject
from carryscope.task.operation import Array

WORTH_IT = 0.8
"""Where the nearest rival is not beaten, another is tried too if its margin at the reference point
is more than this many times what the bound lost for the nearest one: what is proved for a box
holds for its parts."""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What the bound says about boxes."""

    verdict: Int[Array, " box"]
    """RIGHT, WRONG, or the column to split."""
    beaten: Int[Array, " box"]
    """The rivals that the target beats everywhere in the box, as bits."""
    doubtful: Bool[Array, " box"]
    """Whether it is rounding that keeps the box from being decided."""


def judge(
    tables: RowTables, boxes: Int[Array, "box column"], beaten: Int[Array, " box"]
) -> Verdicts:
    """Bound boxes of one row and query; `beaten` are the rivals that are beaten already."""
    bounds, everyone = Bounds.of(tables, boxes), torch.arange(len(boxes))
    logits, target = bounds.neurons.logits, bounds.target
    best = logits.argmax(1)
    right = best == target
    known = rivals(beaten, tables.features.config.vocabulary)
    known[everyone, target] = True
    margin = logits[everyone, target, None] - logits
    nearest = margin.masked_fill(known, torch.inf).argmin(1)
    loser = torch.where(right, nearest, target)
    first = bounds.margins(everyone, best, loser)
    proved = first.least > GUARD
    known[everyone, nearest] |= right & proved
    slack = margin[everyone, nearest] - first.least
    worth = proved[:, None] | (margin > WORTH_IT * slack[:, None])
    box, rival = (right[:, None] & worth & ~known).nonzero().T
    keep = rival != nearest[box]
    box, rival = box[keep], rival[keep]
    known[box, rival] = bounds.least(box, target[box], rival) > GUARD
    hurt = _by_column(tables.space, boxes, first.hurt)
    verdict = np.where(np.isneginf(hurt).all(1), STUCK, hurt.argmax(1))
    verdict[(~right & proved).numpy()] = WRONG
    verdict[(known.all(1) & right).numpy()] = RIGHT
    lead = logits.amax(1) - logits[everyone, loser]
    unsure = (first.rounding > lead / 2) & (first.least + first.rounding > GUARD)
    doubtful = (verdict == STUCK) | ((verdict >= 0) & unsure.numpy())
    as_bits = known.numpy() @ (1 << np.arange(known.shape[1]))
    return Verdicts(verdict, as_bits, doubtful)


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


@torch.inference_mode()
def explore(subject: ProofSubject, piece: Piece) -> Fragment:
    """Judge the boxes of a piece, split the undecided ones, and so on, level by level."""
    boxes, beaten = piece.boxes, piece.beaten
    space, verdicts, found, judged = subject.spaces[piece.row], [], [], 0
    while len(boxes):
        wanted = (space.share(boxes) >= piece.small) | (judged == 0)
        wanted &= judged + np.cumsum(wanted) <= max(piece.most, len(boxes) if judged == 0 else 0)
        verdict, beaten = np.full(len(boxes), OPEN), beaten.copy()
        for at in np.array_split(np.flatnonzero(wanted), max(1, -(-int(wanted.sum()) // CHUNK))):
            if len(at):
                verdict[at], beaten[at] = _judged(subject, piece, boxes[at], beaten[at])
        judged += int(wanted.sum())
        verdicts.append(verdict)
        found.append(beaten)
        split = verdict >= 0
        boxes, counts = space.children(boxes[split], verdict[split])
        beaten = np.repeat(beaten[split], counts)
    return Fragment(
        np.concatenate(verdicts).astype(np.int8), np.concatenate(found).astype(np.int16), judged
    )


def _judged(
    subject: ProofSubject, piece: Piece, boxes: Int[Array, "box column"], beaten: Int[Array, " box"]
) -> tuple[Int[Array, " box"], Int[Array, " box"]]:
    """Verdicts and beaten rivals. Where rounding keeps a box undecided, float64 tables judge it."""
    found = judge(subject.tables(piece.row, piece.query), boxes, beaten)
    if found.doubtful.any():
        at, exact = found.doubtful, subject.exact_tables(piece.row, piece.query)
        again = judge(exact, boxes[at], found.beaten[at])
        found.verdict[at], found.beaten[at] = again.verdict, again.beaten
    return found.verdict, found.beaten


def rivals(sets: Int[Array, " box"], vocabulary: int) -> Bool[Tensor, "box token"]:
    """The tokens of each set of bits."""
    return torch.from_numpy((sets[:, None] >> np.arange(vocabulary) & 1).astype(bool))


def _by_column(space: RowSpace, boxes: Array, hurt: Tensor) -> Array:
    """What each column costs that can still be split.

    An answer token before the query is split by splitting the columns that decide it: its own
    while that has several raw values, else the next one below that leaves a carry open.
    """
    total = hurt[:, : space.columns].numpy().copy()
    one_raw = np.stack([f.one_raw[boxes[:, c]] for c, f in enumerate(space.facts)], axis=1)
    for slot, (digit, _) in enumerate(space.row.earlier, start=space.columns):
        owner = np.full(len(boxes), -1)
        for c in range(min(digit, space.columns - 1) + 1):
            owner = np.where(~one_raw[:, c], c, owner)
        some = owner >= 0
        total[some, owner[some]] += hurt[some, slot].numpy()
    whole = np.stack([t.sizes[boxes[:, c]] == 1 for c, t in enumerate(space.trees)], axis=1)
    return np.where(whole, -np.inf, total)
