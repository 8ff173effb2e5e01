"""The search, compiled: bound a box, split it where most is lost, bound its parts, and so on.

In: `RowTables`, a `SpaceTables`, open boxes of one row and query. Out: the verdict on every box
below them, parents before their parts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from carryscope.certificate.boxes import RowSpace
from carryscope.certificate.compiled_bound import BoxState, last_scale, state_of
from carryscope.certificate.compiled_leads import blame, lead_of, logits_of
from carryscope.certificate.compiled_packing import packed
from carryscope.certificate.compiled_sets import Cache, copy_set, new_cache, part_of_cache
from carryscope.certificate.compiled_space import (
    SpaceTables,
    column_to_split,
    set_numbers_of,
    share_of,
    space_tables,
)
from carryscope.certificate.compiling import compiled
from carryscope.certificate.proof import OPEN, RIGHT, STUCK, WRONG, Fragment
from carryscope.certificate.row_tables import RowTables
from carryscope.task.operation import Array

WORTH_IT = 0.8
"""Where the nearest rival is not beaten, another is tried too if its margin at the reference point
is more than this many times what the bound lost for the nearest one: what is proved for a box
holds for its parts."""


class Found(NamedTuple):
    """Verdicts, parents before their parts, and how deep each box lies below its root."""

    verdict: Array
    depth: Array
    judged: int


@compiled
def next_rival(logits: Array, target: int, tried: int, proved: bool, lost: float) -> int:
    """The nearest token that was not tried, if it is worth it; else the target."""
    nearest = target
    for token in range(logits.shape[0]):
        if not tried >> token & 1 and (nearest == target or logits[token] > logits[nearest]):
            nearest = token
    if not proved and logits[target] - logits[nearest] <= WORTH_IT * lost:
        return target
    return nearest


@compiled
def judge(
    t: RowTables,
    space: SpaceTables,
    state: BoxState,
    last: Array,
    box: Array,
    target: int,
    beaten: int,
    guard: float,
) -> tuple[int, int, bool]:
    """The verdict on a box (RIGHT, WRONG, STUCK, or the column to split), and who is beaten.

    Also whether a narrower range of sigma sigma_f, which is `last`, might decide it.
    """
    logits = logits_of(t, state, (last[0] + last[1]) / 2)
    cost, blamed, hopeful = np.zeros(box.shape[0] + space.earlier.shape[0]), False, False
    kept = np.zeros(cost.shape[0])
    first = int(logits.argmax())
    if first != target:
        lead, hope = lead_of(t, state, last, first, target, cost)
        if lead > guard:
            return WRONG, beaten, False
        hopeful = lead + hope > guard
        blame(t, state, first, target, cost)
        kept[:], blamed = cost, True
    everyone, tried, proved, lost = (1 << logits.shape[0]) - 1, beaten | 1 << target, True, 0.0
    while tried != everyone:
        rival = next_rival(logits, target, tried, proved, lost)
        if rival == target:
            break
        lead, hope = lead_of(t, state, last, target, rival, cost)
        tried |= 1 << rival
        if lead > guard:
            beaten |= 1 << rival
        elif proved:
            proved, lost = False, logits[target] - logits[rival] - lead
            hopeful = hopeful or lead + hope > guard
            if not blamed:
                blame(t, state, target, rival, cost)
                kept[:], blamed = cost, True
    if beaten | 1 << target == everyone:
        return RIGHT, beaten, False
    return column_to_split(space, box, kept), beaten, hopeful


class Waiting(NamedTuple):
    """Boxes that wait to be judged, the next one last."""

    box: Array
    place: Array
    """How deep it lies below its root, and the rivals that are beaten, as bits."""
    last: Array
    """The range of sigma sigma_f in the box it is a part of."""


@compiled
def room_for(waiting: Waiting, count: int) -> Waiting:
    """The same boxes with room for so many."""
    while count > waiting.box.shape[0]:
        waiting = Waiting(
            np.concatenate((waiting.box, waiting.box)),
            np.concatenate((waiting.place, waiting.place)),
            np.concatenate((waiting.last, waiting.last)),
        )
    return waiting


@compiled
def explore(
    t: RowTables,
    cache: Cache,
    space: SpaceTables,
    roots: Array,
    targets: Array,
    small: float,
    most: int,
    guard: float,
) -> Found:
    """Decide boxes and what lies below them, down to a share of all questions."""
    verdict, depth, count, judged = np.empty(1024, np.int8), np.empty(1024, np.int32), 0, 0
    waiting = Waiting(
        np.empty((256, roots.shape[1]), np.int64), np.empty((256, 2), np.int64), np.empty((256, 2))
    )
    for r in range(roots.shape[0]):
        state = state_of(t, cache, set_numbers_of(space, roots[r]))
        inner, inner_cache, kept, ready = t, cache, np.empty(0, np.int64), False
        waiting.box[0], waiting.place[0], waiting.last[0] = roots[r], 0, last_scale(t, state)
        left = 1
        while left:
            left -= 1
            box, last = waiting.box[left].copy(), waiting.last[left].copy()
            level, beaten = waiting.place[left]
            found = OPEN
            if level == 0:
                found, beaten, _ = judge(t, space, state, last, box, targets[r], 0, guard)
                judged += 1
            elif judged < most and share_of(space, box) >= small:
                if not ready:
                    inner, kept = packed(t, state)
                    inner_cache, ready = part_of_cache(cache, kept), True
                numbers = set_numbers_of(space, box)
                for number in t.sets.begin + numbers:
                    if not inner_cache.ready[number]:
                        copy_set(cache, inner_cache, kept, number)
                below = state_of(inner, inner_cache, numbers)
                found, beaten, hopeful = judge(
                    inner, space, below, last, box, targets[r], beaten, guard
                )
                if found == STUCK or hopeful:
                    below = state_of(t, cache, numbers)
                    last = last_scale(t, below)
                    found, beaten, _ = judge(t, space, below, last, box, targets[r], beaten, guard)
                judged += 1
            if count == verdict.shape[0]:
                verdict, depth = (
                    np.concatenate((verdict, verdict)),
                    np.concatenate((depth, depth)),
                )
            verdict[count], depth[count] = found, level
            count += 1
            if found >= 0:
                parts, begin = (
                    space.parts[found, box[found]],
                    space.first_part[found, box[found]],
                )
                waiting = room_for(waiting, left + parts)
                for k in range(parts):
                    waiting.box[left], waiting.last[left] = box, last
                    waiting.box[left, found] = space.part[found, begin + parts - 1 - k]
                    waiting.place[left, 0], waiting.place[left, 1] = level + 1, beaten
                    left += 1
    return Found(verdict[:count], depth[:count], judged)


class CompiledDecider:
    """Decides boxes of one row and query with compiled loops."""

    def __init__(self, tables: RowTables, space: RowSpace) -> None:
        self._tables, self._space = tables, space
        self._cache, self._trees = new_cache(tables), space_tables(space)

    def decide(
        self, boxes: Int[Array, "box column"], *, small: float, most: int, guard: float
    ) -> Fragment:
        """Decide boxes, level by level; below a share `small`, or after `most` boxes, stay open."""
        boxes = boxes.astype(np.int64)
        targets = self._space.targets(self._space.digits(boxes))
        found = explore(self._tables, self._cache, self._trees, boxes, targets, small, most, guard)
        order = np.argsort(found.depth, kind="stable")
        return Fragment(found.verdict[order], found.judged)

    def leads(self, box: Int[Array, " column"]) -> Float[Array, " token"]:
        """What the target's lead over each token, times both scales, does not go below."""
        t, numbers = self._tables, set_numbers_of(self._trees, box.astype(np.int64))
        state = state_of(t, self._cache, numbers)
        last, cost = last_scale(t, state), np.zeros(len(numbers))
        target = int(self._space.targets(self._space.digits(box[None]))[0])
        tokens = range(len(t.offset))
        return np.array([lead_of(t, state, last, target, token, cost)[0] for token in tokens])
