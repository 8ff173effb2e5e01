"""Search: boxes are decided, or split where it hurts, until they are small.

In: boxes of one row and query, and how small is small. Out: a `Fragment` of the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int

from carryscope.certificate.boxes import RowSpace
from carryscope.certificate.functionals import Elements
from carryscope.certificate.intervals import Ranges
from carryscope.certificate.margins import GUARD, Neurons, least_margins
from carryscope.certificate.row_tables import RowTables
from carryscope.task.operation import Array

RIGHT, WRONG, OPEN, STUCK = -1, -2, -3, -4
"""What can be said of a box that is not split: proved right or wrong, not looked at yet, or a
single question that stays undecided. A column number means that the box is split there."""

CHUNK = 64
"""Boxes bounded at once: their features stay near the processor's cache."""

WORTH_IT = 0.8
"""Where the nearest rival is not beaten, another is asked too if its margin at the reference
point is more than this many times what the bound lost for the nearest one: what is proved for a
box holds for its parts."""


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
    """Bound boxes of one row and query; `beaten` are the rivals known to be beaten."""
    space = tables.space
    digits = space.digits(boxes)
    target = torch.from_numpy(space.targets(digits))
    ranges = Ranges.of(tables, tables.sets(boxes, digits))
    neurons = Neurons.of(tables, ranges)
    elements = Elements(tables, ranges, neurons.which)
    best = neurons.logits.argmax(1)
    right = best == target
    everyone = torch.arange(len(boxes))
    known = _bits(beaten, tables.features.config.vocabulary)
    known[everyone, target] = True
    margin = neurons.logits[everyone, target, None] - neurons.logits
    nearest = margin.masked_fill(known, torch.inf).argmin(1)
    first = least_margins(
        tables,
        ranges,
        neurons,
        elements,
        everyone,
        torch.where(right, target, best),
        torch.where(right, nearest, target),
    )
    known[everyone, nearest] |= right & (first.least > GUARD)
    proved, slack = first.least > GUARD, margin[everyone, nearest] - first.least
    worth = proved[:, None] | (margin > WORTH_IT * slack[:, None])
    box, rival = (right[:, None] & worth & ~known).nonzero().T
    keep = rival != nearest[box]
    box, rival = box[keep], rival[keep]
    for start in range(0, len(box), CHUNK):
        at, other = box[start : start + CHUNK], rival[start : start + CHUNK]
        more = least_margins(tables, ranges, neurons, elements, at, target[at], other)
        known[at, other] = more.least > GUARD
    hurt = _by_column(space, boxes, first.hurt)
    verdict = np.where(np.isneginf(hurt).all(1), STUCK, hurt.argmax(1))
    verdict[(~right & (first.least > GUARD)).numpy()] = WRONG
    verdict[(known.all(1) & right).numpy()] = RIGHT
    lead = neurons.logits.amax(1) - neurons.logits[everyone, torch.where(right, nearest, target)]
    unsure = (first.rounding > lead / 2) & (first.least + first.rounding > GUARD)
    doubtful = (verdict == STUCK) | ((verdict >= 0) & unsure.numpy())
    return Verdicts(verdict, _as_bits(known), doubtful)


@dataclass(frozen=True, eq=False)
class Fragment:
    """A piece of the proof: trees of boxes below some roots, level by level, roots first.

    The children of a level's split boxes, in order, are the next level; so verdicts alone,
    with the roots and the trees of the columns, say which box each of them is about.
    """

    verdict: Int[Array, " box"]
    beaten: Int[Array, " box"]
    judged: int
    """How many boxes were bounded."""


def explore(
    tables: RowTables,
    exact_tables: Callable[[], RowTables],
    boxes: Int[Array, "box column"],
    beaten: Int[Array, " box"],
    *,
    small: float,
    most: int,
) -> Fragment:
    """Judge the boxes, split the undecided, and go on, level by level.

    Parts that hold less than the share `small` of all questions are left open, and so is
    what remains after about `most` boxes. Where it is rounding that keeps a box from being
    decided, it is judged again by tables in float64.
    """
    verdicts, rivals, judged = [], [], 0
    while len(boxes):
        wanted = (tables.space.share(boxes) >= small) | (judged == 0)
        wanted &= judged + np.cumsum(wanted) <= max(most, len(boxes) if judged == 0 else 0)
        verdict, beaten = np.full(len(boxes), OPEN), beaten.copy()
        for at in np.array_split(np.flatnonzero(wanted), max(1, -(-int(wanted.sum()) // CHUNK))):
            if len(at):
                found = judge(tables, boxes[at], beaten[at])
                verdict[at], beaten[at] = found.verdict, found.beaten
                doubtful = at[found.doubtful]
                if len(doubtful):
                    found = judge(exact_tables(), boxes[doubtful], beaten[doubtful])
                    verdict[doubtful], beaten[doubtful] = found.verdict, found.beaten
        judged += int(wanted.sum())
        verdicts.append(verdict)
        rivals.append(beaten)
        split = verdict >= 0
        boxes, counts = tables.space.children(boxes[split], verdict[split])
        beaten = np.repeat(beaten[split], counts)
    return Fragment(
        np.concatenate(verdicts).astype(np.int8), np.concatenate(rivals).astype(np.int16), judged
    )


def _bits(sets: Array, width: int) -> torch.Tensor:
    return torch.from_numpy((sets[:, None] >> np.arange(width) & 1).astype(bool))


def _as_bits(known: torch.Tensor) -> Array:
    return np.asarray(known.numpy() @ (1 << np.arange(known.shape[1])))


def _by_column(space: RowSpace, boxes: Array, hurt: torch.Tensor) -> Array:
    """What each column costs that can still be split.

    An answer token before the query is split by splitting the columns that decide it: its own
    while that has several sums, else the next one below that leaves a carry open.
    """
    total = hurt[:, : space.columns].numpy().copy()
    one_sum = np.stack([f.one_sum[boxes[:, c]] for c, f in enumerate(space.facts)], axis=1)
    for slot, (digit, _) in enumerate(space.row.earlier, start=space.columns):
        owner = np.full(len(boxes), -1)
        for c in range(min(digit, space.columns - 1) + 1):
            owner = np.where(~one_sum[:, c], c, owner)
        some = owner >= 0
        total[some, owner[some]] += hurt[some, slot].numpy()
    whole = np.stack([t.sizes[boxes[:, c]] == 1 for c, t in enumerate(space.trees)], axis=1)
    return np.where(whole, -np.inf, total)
