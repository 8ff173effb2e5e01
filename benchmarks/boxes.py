"""How many boxes a certificate takes, estimated without making it.

In: a model, and the share of all questions below which a box is not split. Out: `BoxCount`.
Bounding all boxes would take hours, so a sample stands for them. A *repetition* goes down from
the settled boxes as the search does, from coarse to fine. Where many boxes come up at once, it
draws a few of them, by the share of questions that each stands for, and weights each by the
inverse of its chance:

    200 boxes come up, 4 are drawn; one had a chance of 1 in 50: it counts as 50 boxes, and so does
    each box below it, times its own weight

The expected sum of weights is the number of boxes (Hansen and Hurwitz; along a tree, Knuth). If
nothing is left out, it is the number itself. Repetitions are independent, and their spread gives
the interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from carryscope.certificate.boxes import RowSpace
from carryscope.certificate.certify import FINER
from carryscope.certificate.exploring import Piece, explore
from carryscope.certificate.proof import RIGHT, WRONG, RowProof
from carryscope.certificate.subject import ProofSubject
from carryscope.core.errors import CallError
from carryscope.core.evidence import Mean
from carryscope.model.transformer import Transformer
from carryscope.task.operation import Array

SMALL = 1e-7
"""Boxes are split while they hold at least this share of all questions."""

REPEATS = 16
"""Independent repetitions of an estimate."""

MOST = 40
"""Boxes of one row that a repetition bounds at once, shared among the row's queries."""

ONE_LEVEL = 2.0
"""More than all questions: `explore` bounds the boxes it gets and splits none of their parts."""


class BoxCount(NamedTuple):
    """What the certificate of one model takes."""

    boxes: Mean
    decided: float
    """The share of questions for which an answer digit is decided, averaged over the digits."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Boxes of one row and query that come up in some repetition."""

    boxes: Int[Array, "box column"]
    beaten: Int[Array, " box"]
    """The rivals known to be beaten, as bits."""
    weight: Float[Array, " box"]
    """How many boxes each stands for."""
    repeat: Int[Array, " box"]
    """The repetition in which it comes up."""

    @classmethod
    def all_of(cls, boxes: Int[Array, "box column"], repeats: int) -> Sample:
        """The same boxes in every repetition, each standing for itself."""
        repeat = np.repeat(np.arange(repeats), len(boxes))
        nothing, one = np.zeros(len(repeat), dtype=np.int64), np.ones(len(repeat))
        return cls(np.tile(boxes, (repeats, 1)), nothing, one, repeat)

    def __getitem__(self, at: Array) -> Sample:
        return Sample(self.boxes[at], self.beaten[at], self.weight[at], self.repeat[at])

    def __add__(self, other: Sample) -> Sample:
        mine, others = vars(self).values(), vars(other).values()
        return Sample(*(np.concatenate(pair) for pair in zip(mine, others, strict=True)))

    def thinned(
        self, share: Float[Array, " box"], most: int, generator: np.random.Generator
    ) -> Sample:
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
        return Sample(chosen.boxes, chosen.beaten, np.concatenate(weight), chosen.repeat)


@dataclass(frozen=True, eq=False)
class Branch:
    """The boxes of one row with one query."""

    subject: ProofSubject
    row: int
    query: int

    @property
    def space(self) -> RowSpace:
        """All questions as the row sees them."""
        return self.subject.spaces[self.row]

    def walk(
        self, begin: Sample, most: int, small: float, generator: np.random.Generator
    ) -> Iterator[tuple[Sample, Int[Array, " box"]]]:
        """Go down from the settled boxes; yields each sample with its verdicts."""
        share, waiting, floor = self.space.share, begin, 1.0
        while floor > small:
            floor = max(small, floor / FINER)
            while (due := share(waiting.boxes) >= floor).any():
                coming = waiting[due]
                sample = coming.thinned(share(coming.boxes), most, generator)
                verdict, parts = self._bound(sample)
                yield sample, verdict
                waiting = waiting[~due] + parts

    def _bound(self, sample: Sample) -> tuple[Int[Array, " box"], Sample]:
        """The verdicts on boxes, each bounded once, and the parts of those that are split."""
        boxes, first, again = np.unique(
            sample.boxes, axis=0, return_index=True, return_inverse=True
        )
        beaten, most = sample.beaten[first], len(boxes)
        piece = Piece(self.row, self.query, first, boxes, beaten, small=ONE_LEVEL, most=most)
        found = explore(self.subject, piece)
        verdict = found.verdict[again].astype(np.int64)
        split = verdict >= 0
        children, counts = self.space.children(sample.boxes[split], verdict[split])
        inherited = found.beaten[again].astype(np.int64), sample.weight, sample.repeat
        return verdict, Sample(children, *(np.repeat(v[split], counts) for v in inherited))


def settled_boxes(space: RowSpace) -> dict[int, Int[Array, "_ column"]]:
    """Where the search begins: all questions in boxes of one target and one query, by query."""
    proof = RowProof.settled(space)
    boxes = proof.boxes[proof.open_boxes()]
    query = space.queries(space.digits(boxes))
    return {token: boxes[query == token] for token in np.unique(query).tolist()}


def count_boxes(
    model: Transformer,
    *,
    small: float = SMALL,
    repeats: int = REPEATS,
    most: int = MOST,
    seed: int = 0,
) -> BoxCount:
    """About how many boxes it takes to certify a model down to boxes of a given share."""
    if not 0 < small < 1 or repeats < 2 or most < 1:
        raise CallError(
            "small must be above 0 and below 1, repeats at least 2, most at least 1. "
            f"Got {small}, {repeats} and {most}."
        )
    subject, generator = ProofSubject.of(model), np.random.default_rng(seed)
    boxes, decided = np.zeros(repeats), np.zeros(repeats)
    for number, space in enumerate(subject.spaces):
        settled = settled_boxes(space)
        each = -(-most // len(settled))
        for query, begin in settled.items():
            walk = Branch(subject, number, query).walk(
                Sample.all_of(begin, repeats), each, small, generator
            )
            for sample, verdict in walk:
                held = space.share(sample.boxes) * np.isin(verdict, (RIGHT, WRONG))
                np.add.at(boxes, sample.repeat, sample.weight)
                np.add.at(decided, sample.repeat, sample.weight * held)
    return BoxCount(Mean.measured(boxes.tolist()), float(decided.mean()) / len(subject.spaces))
