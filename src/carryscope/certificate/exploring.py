"""Decide boxes: bound them, split those that stay undecided where most is lost, and so on.

In: a `Piece`: boxes of one row and reading, and how small is small. Out: a `Fragment` of the proof.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Int

from carryscope.certificate.proof import Fragment
from carryscope.certificate.rows import SignAndQuery
from carryscope.certificate.subject import ProofSubject
from carryscope.task.operation import Array

GUARD = 1e-4
"""The search demands bounds above this, the check above 0: it may add up in another order."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Open boxes of one row and reading that are to be decided."""

    row: int
    reading: SignAndQuery
    roots: Int[Array, " box"]
    """The numbers of the boxes in the proof of the row."""
    boxes: Int[Array, "box column"]
    small: float
    """Parts that hold less than this share of all questions are left open."""
    most: int
    """What remains after about so many boxes is left open."""


def explore(subject: ProofSubject, piece: Piece) -> Fragment:
    """Decide the boxes of a piece, as far as it asks for."""
    decider = subject.decider(piece.row, piece.reading)
    found: Fragment = decider.decide(piece.boxes, small=piece.small, most=piece.most, guard=GUARD)
    return found
