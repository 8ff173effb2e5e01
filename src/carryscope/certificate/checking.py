"""Check a certificate without trusting the search that made it.

In: a certificate and the model. Out: how many boxes were bounded again; one that does not hold is
an error. The search chose what to split and what to claim. None of that is believed:

- The trees of the columns must split every set without gap or overlap, and the log must be a tree
  from the box of all questions down. So its leaves are disjoint and hold everything.
- Every leaf that is claimed to be right or wrong is decided again, by the engine that did not
  search: a bug in one of them does not confirm itself. A leaf that it cannot decide at once may be
  split further, but every part of it must be as claimed.
- All that the certificate says is worked out again from its log: numbers of questions, families
  with their examples, the statement.
- The model itself answers questions from decided boxes.
- What workers of a cluster report is counted here, and a sample of it is bounded again here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from carryscope.certificate.certify import ProofSearch
from carryscope.certificate.finding import Certificate
from carryscope.certificate.proof import OPEN, RIGHT, STUCK, WRONG, Engine
from carryscope.certificate.rows import SignAndQuery
from carryscope.certificate.spot_checks import spot_check
from carryscope.certificate.subject import ProofSubject, other_engine
from carryscope.core.errors import WorkError
from carryscope.core.progress import Progress, silent
from carryscope.model.transformer import Transformer
from carryscope.task.operation import PAIRS, Array

AT_ONCE = 256
"""Boxes whose claims are one piece of work."""

MOST_PARTS = 100
"""Into so many parts a claimed box may fall, on average, until all are decided again."""

SAMPLED_PIECES, SAMPLED_BOXES = 8, 64
"""What a cluster verified is verified here again for so many boxes of so many pieces of work."""

NOT_IN_THE_LOG = {"package_version", "seconds", "spot_checks", "found_with", "checked_with", "log"}
"""Fields of a certificate that say how it was made. All others follow from its log."""


class Checked(NamedTuple):
    """What was computed again, and with what."""

    claims: int
    """Boxes claimed to be right or wrong."""
    boxes: int
    """Boxes of the proof."""
    engine: Engine


@dataclass(frozen=True, eq=False)
class ClaimedBoxes:
    """Boxes of one row and reading that are claimed to be right, or to be wrong."""

    row: int
    reading: SignAndQuery
    boxes: Int[Array, "box column"]
    verdict: int

    def __getitem__(self, at: Int[Array, " some_box"]) -> ClaimedBoxes:
        return ClaimedBoxes(self.row, self.reading, self.boxes[at], self.verdict)


def check_certificate(
    model: Transformer,
    certificate: Certificate,
    *,
    engine: Engine | None = None,
    workers: int = 1,
    cluster: str | None = None,
    progress: Progress = silent,
) -> Checked:
    """Verify a certificate, box by box. What does not hold is a `WorkError`."""
    engine = engine or other_engine(certificate.found_with)
    search = ProofSearch(model, certificate, engine=engine)
    with progress("check", 1.0) as advance:
        advance(0, "counting questions")
        check_what_is_said(search, certificate)
        pieces = [piece for row in range(len(search.proofs)) for piece in claims_of(search, row)]
        total, done = sum(len(piece.boxes) for piece in pieces), 0
        with search.subject.workers(workers, cluster) as crew:
            for found in crew.in_order(verify, pieces):
                if found is not None:
                    piece, verified = found
                    if verified != len(piece.boxes):
                        raise WorkError("A worker did not verify all that it was given.")
                    done += verified
                    advance(verified / total, f"{done:,} of {total:,} boxes")
        if cluster is not None:
            verify_sample(search.subject, pieces)
        advance(0, "asking the model")
        spot_check(model, search.proofs)
    return Checked(total, sum(len(proof) for proof in search.proofs), engine)


def verify_sample(subject: ProofSubject, pieces: list[ClaimedBoxes]) -> None:
    """Verify some claims in this process. A sample that nobody can foresee keeps workers honest."""
    generator = np.random.default_rng()
    for number in generator.permutation(len(pieces))[:SAMPLED_PIECES]:
        piece = pieces[number]
        verify(subject, piece[generator.permutation(len(piece.boxes))[:SAMPLED_BOXES]])


def check_what_is_said(search: ProofSearch, certificate: Certificate) -> None:
    """All that a certificate says must be what its log says."""
    for proof in search.proofs:
        if not np.isin(proof.verdict[proof.verdict < 0], (RIGHT, WRONG, OPEN, STUCK)).all():
            raise WorkError(f"{proof.space.row.name}: the log holds a verdict that does not exist.")
        if proof.count(RIGHT, WRONG, OPEN, STUCK) != PAIRS**proof.space.columns:
            raise WorkError(f"The boxes of {proof.space.row.name} do not hold every question once.")
    again = search.certificate(until=certificate.until, ended=certificate.ended, seconds=0.0)
    for field in again.__struct_fields__:
        if field not in NOT_IN_THE_LOG and getattr(certificate, field) != getattr(again, field):
            raise WorkError(f"The field {field} of the certificate is not what its log says.")


def claims_of(search: ProofSearch, row: int) -> Iterator[ClaimedBoxes]:
    """All claims of a row, some boxes at a time."""
    proof = search.proofs[row]
    for verdict in (RIGHT, WRONG):
        boxes = proof.leaves(verdict)
        for reading, mine in proof.space.readings(boxes):
            for some in np.array_split(boxes[mine], -(-len(mine) // AT_ONCE)):
                yield ClaimedBoxes(row, reading, some, verdict)


def verify(subject: ProofSubject, claims: ClaimedBoxes) -> int:
    """Decide claimed boxes again: how many there are. One that is not as claimed is an error."""
    decider = subject.decider(claims.row, claims.reading)
    most = MOST_PARTS * (len(claims.boxes) + AT_ONCE)
    found = decider.decide(claims.boxes, small=0.0, most=most, guard=0.0).verdict
    if not ((found == claims.verdict) | (found >= 0)).all():
        name = subject.spaces[claims.row].row.name
        raise WorkError(f"{name}: a claim of the log does not hold.")
    return len(claims.boxes)
