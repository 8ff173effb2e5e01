"""How many boxes a certificate takes, estimated without making it.

In: a model, and how small a box may get. Out: `Boxes`, for every answer digit. Making all
boxes would take hours, so most are left out, and those that are looked at stand for them. A
*repetition* goes down from the settled boxes as the search does, from coarse to fine, but
wherever more than a few boxes come up at once, it draws some of them, by the share of all
questions that they stand for, and gives each the inverse of its chance as a weight:

    200 boxes come up, 4 are drawn; one had a chance of 1 in 50: it counts for 50 boxes, and so
    does everything that is found below it, times what is left out there

So the expected sum of weights is the number of boxes (Hansen and Hurwitz; along a tree, Knuth),
and where nothing is left out it is the number itself. Repetitions are independent of each other,
and their spread is the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import msgspec
import numpy as np
from jaxtyping import Float, Int

from carryscope.certificate.boxes import RowSpace
from carryscope.certificate.certify import FINER, subject_of
from carryscope.certificate.exploring import RIGHT, WRONG
from carryscope.certificate.proof import RowProof
from carryscope.certificate.workers import Task, Worker
from carryscope.core.errors import CallError
from carryscope.core.evidence import Mean
from carryscope.model.transformer import Transformer
from carryscope.task.operation import Array

SMALL = 1e-7
"""Boxes are split while they hold at least this share of all questions."""

REPEATS = 16
"""Independent repetitions of an estimate."""

ONE_LEVEL = 2.0
"""More than all questions: no part of a box is large enough for the search to go on with it."""

MOST = 40
"""Boxes of one row that a repetition looks at at once; as many of each query."""


class RowBoxes(msgspec.Struct, frozen=True, kw_only=True):
    """What one answer digit takes."""

    digit: str
    settled: int
    """Boxes to begin with: so many have one right answer and one token before it."""
    boxes: Mean
    decided: Mean
    """The share of all questions for which the digit is then proved right or wrong. Where all
    that was looked at is decided, it is 1 with an empty interval: what is left is rare, but not
    proved to be nothing."""


class Boxes(msgspec.Struct, frozen=True, kw_only=True):
    """What the certificate of one model takes, down to boxes of a given share."""

    digits: int
    small: float
    rows: list[RowBoxes]
    total: Mean
    looked_at: int
    """Boxes that were bounded for this estimate."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """Boxes of one row and query that come up in some repetition."""

    boxes: Int[Array, "box column"]
    beaten: Int[Array, " box"]
    """The rivals known to be beaten, as bits."""
    weight: Float[Array, " box"]
    """How many boxes each stands for."""
    repeat: Int[Array, " box"]
    """The repetition in which it comes up."""

    @classmethod
    def all_of(cls, boxes: Int[Array, "box column"], repeats: int) -> Drawn:
        """The same boxes in every repetition, each standing for itself."""
        count = repeats * len(boxes)
        repeat = np.repeat(np.arange(repeats), len(boxes))
        nothing = np.zeros(count, dtype=np.int64)
        return cls(np.tile(boxes, (repeats, 1)), nothing, np.ones(count), repeat)

    def __len__(self) -> int:
        return len(self.boxes)

    def __getitem__(self, at: Array) -> Drawn:
        return Drawn(self.boxes[at], self.beaten[at], self.weight[at], self.repeat[at])

    def __add__(self, other: Drawn) -> Drawn:
        return Drawn(
            np.concatenate([self.boxes, other.boxes]),
            np.concatenate([self.beaten, other.beaten]),
            np.concatenate([self.weight, other.weight]),
            np.concatenate([self.repeat, other.repeat]),
        )

    def thinned(
        self, share: Float[Array, " box"], most: int, generator: np.random.Generator
    ) -> Drawn:
        """At most so many boxes of each repetition, drawn by the share they stand for."""
        kept, weight = [], []
        for repeat in np.unique(self.repeat):
            at = np.flatnonzero(self.repeat == repeat)
            if len(at) <= most:
                kept.append(at)
                weight.append(self.weight[at])
                continue
            chance = self.weight[at] * share[at]
            ends = most * np.cumsum(chance) / chance.sum()
            drawn = np.searchsorted(ends, generator.random() + np.arange(most), side="right")
            which, times = np.unique(np.minimum(drawn, len(at) - 1), return_counts=True)
            kept.append(at[which])
            weight.append(self.weight[at[which]] * times * chance.sum() / (most * chance[which]))
        chosen = self[np.concatenate(kept)]
        return Drawn(chosen.boxes, chosen.beaten, np.concatenate(weight), chosen.repeat)


@dataclass(frozen=True, eq=False)
class Look:
    """Boxes that were bounded, and what came of it."""

    drawn: Drawn
    share: Float[Array, " box"]
    verdict: Int[Array, " box"]
    beaten: Int[Array, " box"]


def look_down(
    worker: Worker,
    row: int,
    query: int,
    settled: Int[Array, "box column"],
    generator: np.random.Generator,
    *,
    small: float,
    repeats: int,
    most: int,
) -> Iterator[Look]:
    """Go down from the settled boxes of one row and query; everything that is looked at."""
    space, waiting = worker.subject.spaces[row], Drawn.all_of(settled, repeats)
    floor = 1.0
    while floor > small:
        floor = max(small, floor / FINER)
        while (due := space.share(waiting.boxes) >= floor).any():
            coming = waiting[due]
            drawn = coming.thinned(space.share(coming.boxes), most, generator)
            look = _look(worker, row, query, drawn)
            yield look
            waiting = waiting[~due] + _parts(space, look)


def _look(worker: Worker, row: int, query: int, drawn: Drawn) -> Look:
    """The search's verdicts on boxes; what comes up in several repetitions is bounded once."""
    boxes, first, again = np.unique(drawn.boxes, axis=0, return_index=True, return_inverse=True)
    found = worker.do(Task(row, query, boxes, drawn.beaten[first], ONE_LEVEL, len(boxes)))
    return Look(
        drawn,
        worker.subject.spaces[row].share(drawn.boxes),
        found.verdict[again].astype(np.int64),
        found.beaten[again].astype(np.int64),
    )


def _parts(space: RowSpace, look: Look) -> Drawn:
    """The parts of the boxes that are split."""
    split = look.verdict >= 0
    boxes, counts = space.children(look.drawn.boxes[split], look.verdict[split])
    rest = (look.beaten[split], look.drawn.weight[split], look.drawn.repeat[split])
    return Drawn(boxes, *(np.repeat(values, counts) for values in rest))


def count_boxes(
    model: Transformer,
    *,
    small: float = SMALL,
    repeats: int = REPEATS,
    most: int = MOST,
    seed: int = 0,
    on_row: Callable[[str], object] = lambda _: None,
) -> Boxes:
    """About how many boxes it takes to certify a model down to boxes of a given share.

    `on_row` hears the name of each answer digit that is done.
    """
    if not 0 < small < 1:
        raise CallError(f"small must be above 0 and below 1. Got {small}.")
    if repeats < 2 or most < 1:
        raise CallError(
            f"repeats must be at least 2 and most at least 1. Got {repeats} and {most}."
        )
    worker, generator = Worker(subject_of(model)), np.random.default_rng(seed)
    rows, totals, looked_at = [], np.zeros(repeats), 0
    for number, space in enumerate(worker.subject.spaces):
        settled, tally = settled_boxes(space), _Tally(repeats)
        queries = by_query(space, settled)
        look_at = partial(
            look_down, worker, number, small=small, repeats=repeats, most=-(-most // len(queries))
        )
        for query, begin in queries.items():
            for look in look_at(query, begin, generator):
                tally.add(look)
        rows.append(tally.row(space, len(settled)))
        totals += tally.boxes
        looked_at += tally.looked_at
        on_row(space.row.name)
    return Boxes(
        digits=model.config.digits,
        small=small,
        rows=rows,
        total=Mean.measured(totals.tolist()),
        looked_at=looked_at,
    )


class _Tally:
    """What the repetitions say about one row."""

    def __init__(self, repeats: int) -> None:
        self.boxes, self.decided = np.zeros(repeats), np.zeros(repeats)
        self.looked_at = 0

    def add(self, look: Look) -> None:
        weight = look.drawn.weight
        held = weight * look.share * np.isin(look.verdict, (RIGHT, WRONG))
        self.boxes += self._by_repeat(look, weight)
        self.decided += self._by_repeat(look, held)
        self.looked_at += len(np.unique(look.drawn.boxes, axis=0))

    def _by_repeat(self, look: Look, values: Array) -> Float[Array, " repeat"]:
        return np.bincount(look.drawn.repeat, weights=values, minlength=len(self.boxes))

    def row(self, space: RowSpace, settled: int) -> RowBoxes:
        return RowBoxes(
            digit=space.row.name,
            settled=settled,
            boxes=Mean.measured(self.boxes.tolist()),
            decided=Mean.measured(self.decided.tolist()),
        )


def settled_boxes(space: RowSpace) -> Int[Array, "box column"]:
    """All questions in boxes of one target and one query: where the search begins."""
    proof = RowProof.settled(space)
    return proof.boxes[proof.open_boxes()]


def by_query(space: RowSpace, boxes: Int[Array, "box column"]) -> dict[int, Int[Array, "_ column"]]:
    """Boxes by the token that is read last in them."""
    query = space.queries(space.digits(boxes))
    return {int(token): boxes[query == token] for token in np.unique(query)}
