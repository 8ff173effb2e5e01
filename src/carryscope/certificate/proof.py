"""The proof for one row: a tree of boxes from all questions down to what was decided.

In: fragments of the search. Out: `RowProof`, which knows its open boxes, adds up its exact
masses, and is written as a few bytes per box.

The tree is the whole certificate of a row. Its root is the box of all questions, every split
replaces a set of digit pairs by the children of that set, and so the leaves are disjoint and
hold every question once.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
from jaxtyping import Int

from carryscope.certificate.boxes import UNKNOWN, RowSpace, pairs_of_questions
from carryscope.certificate.trees import ColumnTree
from carryscope.core.errors import CallError
from carryscope.task.operation import Array
from carryscope.task.questions import Questions

LARGEST_LOG = 1 << 29
"""Bytes that a log may unpack to: the largest one so far, of 16 million boxes, has 32 million. A
few kilobytes can unpack to gigabytes, so what comes from outside is limited."""

About = Literal["exact", "float32"]
"""What is proved to answer: the model in exact arithmetic, or any evaluation of it in float32."""

Engine = Literal["numba", "torch"]
"""What computes the bounds."""

RIGHT, WRONG, OPEN, STUCK = -1, -2, -3, -4
"""What can be said of a box that is not split: proved right or wrong, not looked at yet, or a
single question that stays undecided. A column number means that the box is split there."""


@dataclass(frozen=True, eq=False)
class Fragment:
    """A piece of the proof: trees of boxes below some roots, level by level, roots first.

    The children of a level's split boxes, in order, are the next level; so verdicts alone,
    with the roots and the trees of the columns, say which box each of them is about.
    """

    verdict: Int[Array, " box"]
    judged: int
    """How many boxes were bounded."""


class TreeLog(msgspec.Struct, frozen=True):
    """A `ColumnTree` as plain numbers."""

    order: list[int]
    start: list[int]
    stop: list[int]

    def tree(self) -> ColumnTree:
        return ColumnTree(np.array(self.order), np.array(self.start), np.array(self.stop))


class RowLog(msgspec.Struct, frozen=True, kw_only=True):
    """The proof of one row as text: every box from the root down, level by level."""

    trees: list[TreeLog]
    """How the digit pairs of each column are split, units first."""
    verdicts: str
    """A byte per box (a column where it is split; 255 right, 254 wrong, 253 open, 252 stuck);
    packed by zlib, written in base64."""


class RowProof:
    """The boxes of one row, in the order in which they came up."""

    def __init__(self, space: RowSpace) -> None:
        self.space = space
        self._size = 0
        self._boxes = np.empty((0, space.columns), dtype=np.int16)
        self._verdict = np.empty(0, dtype=np.int8)
        self._first_child = np.empty(0, dtype=np.int64)
        self._add(space.everything)

    @classmethod
    def settled(cls, space: RowSpace) -> RowProof:
        """All questions, split until every box has one target and one query."""
        proof = cls(space)
        while True:
            column = space.column_to_settle(proof.boxes)
            at = np.flatnonzero((proof.verdict == OPEN) & (column != UNKNOWN))
            if not len(at):
                return proof
            proof.split(at, column[at])

    def __len__(self) -> int:
        return self._size

    @property
    def boxes(self) -> Int[Array, "box column"]:
        return self._boxes[: self._size]

    @property
    def verdict(self) -> Int[Array, " box"]:
        return self._verdict[: self._size]

    def _add(self, boxes: Array) -> Int[Array, " new"]:
        """Append open boxes; storage grows in doublings, so that adding is cheap."""
        new = np.arange(self._size, self._size + len(boxes))
        self._size += len(boxes)
        if self._size > len(self._verdict):
            for name in ("_boxes", "_verdict", "_first_child"):
                old = getattr(self, name)
                setattr(self, name, np.resize(old, (2 * self._size, *old.shape[1:])))
        self._boxes[new], self._verdict[new], self._first_child[new] = boxes, OPEN, UNKNOWN
        return new

    def split(self, at: Int[Array, " some"], column: Int[Array, " some"]) -> Int[Array, " child"]:
        """Split boxes at their columns; the numbers of their children."""
        children, counts = self.space.children(self.boxes[at], column)
        if not counts.all():
            raise CallError(
                "A single digit pair cannot be split. The log is damaged: certify again."
            )
        self._verdict[at] = column
        self._first_child[at] = self._size + np.cumsum(counts) - counts
        return self._add(children)

    def graft(self, roots: Int[Array, " root"], fragment: Fragment) -> None:
        """Put what was found below some open boxes in its place."""
        level, done = roots, 0
        while len(level):
            verdict = fragment.verdict[done : done + len(level)]
            if len(verdict) != len(level):
                raise CallError("The log of the proof is cut off. Certify again.")
            self._verdict[level] = verdict
            done += len(level)
            split = verdict >= 0
            level = self.split(level[split], verdict[split].astype(np.int64))
        if done != len(fragment.verdict):
            raise CallError("The log of the proof has more boxes than its splits. Certify again.")

    def open_boxes(self, small: float = 0.0) -> Int[Array, " box"]:
        """The numbers of the open boxes that hold at least this share of all questions."""
        at = np.flatnonzero(self.verdict == OPEN)
        return at[self.space.share(self.boxes[at]) >= small]

    def leaves(self, *verdicts: int) -> Int[Array, "leaf column"]:
        """The boxes with one of these verdicts."""
        return self.boxes[np.isin(self.verdict, verdicts)]

    def count(self, *verdicts: int) -> int:
        """How many questions lie in the boxes with one of these verdicts: exactly."""
        return self.space.count(self.leaves(*verdicts))

    def share(self, *verdicts: int) -> float:
        """About which share of all questions lies in boxes with one of these verdicts."""
        return float(self.space.share(self.leaves(*verdicts)).sum())

    def about(self, questions: Questions) -> Int[Array, " batch"]:
        """What the proof says about each question: the verdict of the leaf that holds it."""
        pairs = pairs_of_questions(questions)
        at = np.zeros(len(pairs), dtype=np.int64)
        while (going := np.flatnonzero(self.verdict[at] >= 0)).size:
            box, column = at[going], self.verdict[at[going]]
            for c, tree in enumerate(self.space.trees):
                here = column == c
                node, pair = self.boxes[box[here], c], pairs[going[here], c]
                at[going[here]] = self._first_child[box[here]] + tree.part_of[node, pair]
        return np.asarray(self.verdict[at])

    def levels(self) -> Iterator[Int[Array, " box"]]:
        """The numbers of all boxes, level by level; children in the order of their parents."""
        level = np.zeros(1, dtype=np.int64)
        while len(level):
            yield level
            level = self.children(level)[1]

    def children(
        self, level: Int[Array, " box"]
    ) -> tuple[Int[Array, " child"], Int[Array, " child"]]:
        """The parts of all that is split in a level: each one's parent, and itself."""
        parents = level[self.verdict[level] >= 0]
        counts = self.space.parts(self.boxes[parents], self.verdict[parents])
        first = np.repeat(self._first_child[parents] - np.cumsum(counts) + counts, counts)
        return np.repeat(parents, counts), first + np.arange(len(first))

    @property
    def order(self) -> Int[Array, " box"]:
        """The numbers of all boxes, level by level: the same however the proof has grown."""
        return np.concatenate(list(self.levels()))

    def log(self) -> RowLog:
        """The proof as text."""
        trees = [
            TreeLog(t.order.tolist(), t.start.tolist(), t.stop.tolist()) for t in self.space.trees
        ]
        return RowLog(trees=trees, verdicts=_packed(self.verdict[self.order].tobytes()))

    @classmethod
    def read(cls, space: RowSpace, log: RowLog) -> RowProof:
        """The proof that was written as text; the trees of `space` are those of the log."""
        proof = cls(space)
        verdict = np.frombuffer(_unpacked(log.verdicts), dtype=np.int8)
        if verdict.max(initial=-1) >= space.columns:
            raise CallError("The log of the proof is damaged. Certify again.")
        proof.graft(np.zeros(1, dtype=np.int64), Fragment(verdict, 0))
        return proof


def _packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content)).decode("ascii")


def _unpacked(text: str) -> bytes:
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(base64.b64decode(text, validate=True), LARGEST_LOG)
    except (ValueError, zlib.error) as error:
        raise CallError("The log of the proof is damaged. Certify again.") from error
    if not unpacking.eof:
        raise CallError("The log of the proof is cut off, or larger than any proof. Certify again.")
    return content
