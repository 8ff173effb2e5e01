"""The search with torch, level by level: slow, and needs nothing but torch.

In: `RowTables` and open boxes of one row and query. Out: the verdict on every box below them.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int

from carryscope.certificate.boxes import RowSpace
from carryscope.certificate.proof import OPEN, RIGHT, STUCK, WRONG, Fragment
from carryscope.certificate.reference import Box, Leads, tensors
from carryscope.certificate.row_tables import RowTables, set_numbers
from carryscope.task.operation import Array


class TorchDecider:
    """Decides boxes of one row and query with torch."""

    def __init__(self, tables: RowTables, space: RowSpace) -> None:
        self._tables, self._space = tensors(tables), space

    def decide(
        self, boxes: Int[Array, "box column"], *, small: float, most: int, guard: float
    ) -> Fragment:
        """Decide boxes, level by level; below a share `small`, or after `most` boxes, stay open."""
        found, judged, space = [], 0, self._space
        with torch.inference_mode():
            while len(boxes):
                wanted = (space.share(boxes) >= small) | (judged == 0)
                wanted &= (judged + np.cumsum(wanted) <= most) | (judged == 0)
                verdict = np.full(len(boxes), OPEN, dtype=np.int8)
                verdict[wanted] = self._verdicts(boxes[wanted], guard)
                judged += int(wanted.sum())
                found.append(verdict)
                split = verdict >= 0
                boxes, _ = space.children(boxes[split], verdict[split].astype(np.int64))
        return Fragment(np.concatenate(found), judged)

    def leads(self, box: Int[Array, " column"]) -> Float[Array, " token"]:
        """What the target's lead over each token, times both scales, does not go below."""
        digits = self._space.digits(box[None])
        numbers = set_numbers(self._space, box[None], digits)[0]
        with torch.inference_mode():
            found = Leads(
                Box(self._tables, numbers), int(self._space.targets(digits)[0]), flip=False
            )
        return np.asarray(found.least.numpy())

    def _verdicts(self, boxes: Int[Array, "box column"], guard: float) -> Int[Array, " box"]:
        digits = self._space.digits(boxes)
        targets, numbers = self._space.targets(digits), set_numbers(self._space, boxes, digits)
        verdict, hurt = np.empty(len(boxes), dtype=np.int8), np.zeros(numbers.shape)
        for b, target in enumerate(targets):
            verdict[b], hurt[b] = self._judged(numbers[b], int(target), guard)
        cost = _by_column(self._space, boxes, hurt)
        split = np.where(np.isneginf(cost).all(1), STUCK, cost.argmax(1))
        return np.where(verdict == OPEN, split, verdict)

    def _judged(self, numbers: Int[Array, " slot"], target: int, guard: float) -> tuple[int, Array]:
        """RIGHT, WRONG or OPEN, and what the freedom of each slot costs."""
        box = Box(self._tables, numbers)
        leads, first = Leads(box, target, flip=False), int(box.logits.argmax())
        proved = leads.least > guard
        proved[target] = True
        if proved.all():
            return RIGHT, np.zeros(len(numbers))
        if first != target:
            leads = Leads(box, target, flip=True)
            if leads.least[first] > guard:
                return WRONG, np.zeros(len(numbers))
        rival = int(box.logits.masked_fill(proved, -torch.inf).argmax())
        return OPEN, leads.hurt(first if first != target else rival).numpy()


def _by_column(
    space: RowSpace, boxes: Int[Array, "box column"], hurt: Float[Array, "box slot"]
) -> Float[Array, "box column"]:
    """What each column costs that can still be split.

    An answer digit before the query is split by splitting the columns that decide it: its own
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
