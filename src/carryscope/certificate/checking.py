"""Check a certificate without trusting the search that made it.

In: a certificate and the model. Out: how many claims were computed again; a claim that does not
hold is an error. The search chose what to split and what to claim. None of that is believed:

- The trees of the columns must split every set without gap or overlap, and the log must be a tree
  from the box of all questions down. So its leaves are disjoint and hold everything.
- Every rival that is claimed to be beaten in a box, and every box that is claimed to be wrong, is
  bounded again.
- A leaf is right only if all rivals are beaten in it or above it.
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
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from carryscope.certificate.boxes import UNKNOWN
from carryscope.certificate.certify import ProofSearch
from carryscope.certificate.exploring import rivals
from carryscope.certificate.finding import Certificate
from carryscope.certificate.margins import CHUNK, Bounds
from carryscope.certificate.proof import OPEN, RIGHT, STUCK, WRONG, RowProof
from carryscope.certificate.row_tables import RowTables
from carryscope.certificate.spot_checks import spot_check
from carryscope.certificate.subject import ProofSubject
from carryscope.core.errors import WorkError
from carryscope.core.progress import Progress, silent
from carryscope.model.transformer import Transformer
from carryscope.task.operation import PAIRS, Array

AT_ONCE = 2048
"""Boxes whose claims are one piece of work."""

SAMPLED_PIECES, SAMPLED_BOXES = 8, 64
"""What a cluster verified is verified here again for so many boxes of so many pieces of work."""

NOT_IN_THE_LOG = {"package_version", "seconds", "spot_checks", "log"}
"""Fields of a certificate that say how it was made. All others follow from its log."""


class Checked(NamedTuple):
    """What was computed again."""

    claims: int
    boxes: int


@dataclass(frozen=True, eq=False)
class ClaimedBoxes:
    """Claims about some boxes of one row and query."""

    row: int
    query: int
    boxes: Int[Array, "box column"]
    beaten: Int[Array, " box"]
    """The rivals that are claimed to be beaten there and not in a box above, as bits."""
    wrong: Bool[Array, " box"]
    """Whether the box is claimed to get wrong answers only."""

    @property
    def claims(self) -> int:
        """How many claims there are."""
        bits = np.unpackbits(self.beaten.astype("<i8").view(np.uint8))
        return int(bits.sum() + self.wrong.sum())

    def __getitem__(self, at: Int[Array, " some_box"]) -> ClaimedBoxes:
        return ClaimedBoxes(self.row, self.query, self.boxes[at], self.beaten[at], self.wrong[at])


def check_certificate(
    model: Transformer,
    certificate: Certificate,
    *,
    workers: int = 1,
    cluster: str | None = None,
    progress: Progress = silent,
) -> Checked:
    """Verify a certificate, bound by bound. What does not hold is a `WorkError`."""
    search = ProofSearch(model, certificate)
    with progress("check", 1.0) as advance:
        advance(0, "counting questions")
        check_what_is_said(search, certificate)
        pieces = [piece for row in range(len(search.proofs)) for piece in claims_of(search, row)]
        total, done = sum(len(piece.boxes) for piece in pieces), 0
        with search.subject.workers(workers, cluster) as crew:
            for found in crew.in_order(verify, pieces):
                if found is not None:
                    piece, verified = found
                    if verified != piece.claims:
                        raise WorkError("A worker did not verify all that it was given.")
                    done += len(piece.boxes)
                    advance(len(piece.boxes) / total, f"{done:,} of {total:,} boxes")
        if cluster is not None:
            verify_sample(search.subject, pieces)
        advance(0, "asking the model")
        spot_check(model, search.proofs)
    boxes = sum(len(proof) for proof in search.proofs)
    return Checked(sum(piece.claims for piece in pieces), boxes)


def verify_sample(subject: ProofSubject, pieces: list[ClaimedBoxes]) -> None:
    """Verify some claims in this process. A sample that nobody can foresee keeps workers honest."""
    generator = np.random.default_rng()
    for number in generator.permutation(len(pieces))[:SAMPLED_PIECES]:
        piece = pieces[number]
        verify(subject, piece[generator.permutation(len(piece.boxes))[:SAMPLED_BOXES]])


def check_what_is_said(search: ProofSearch, certificate: Certificate) -> None:
    """All that a certificate says must be what its log says."""
    for proof in search.proofs:
        if proof.count(RIGHT, WRONG, OPEN, STUCK) != PAIRS**proof.space.columns:
            raise WorkError(f"The boxes of {proof.space.row.name} do not hold every question once.")
    again = search.certificate(until=certificate.until, ended=certificate.ended, seconds=0.0)
    for field in again.__struct_fields__:
        if field not in NOT_IN_THE_LOG and getattr(certificate, field) != getattr(again, field):
            raise WorkError(f"The field {field} of the certificate is not what its log says.")


def claims_of(search: ProofSearch, row: int) -> Iterator[ClaimedBoxes]:
    """All claims of a row, some boxes at a time."""
    proof = search.proofs[row]
    space, claimed = proof.space, _fresh(proof)
    digits = space.digits(proof.boxes)
    target, query = space.targets(digits), space.queries(digits)
    _check_leaves(proof, target, search.model.config.vocabulary)
    wrong = proof.verdict == WRONG
    at = np.flatnonzero((claimed != 0) | wrong)
    if (target[at] == UNKNOWN).any() or (query[at] == UNKNOWN).any():
        raise WorkError(f"{space.row.name}: something is claimed where the digit is not certain.")
    claimed[at] &= ~(1 << target[at])
    for token in np.unique(query[at]):
        mine = at[query[at] == token]
        for some in np.array_split(mine, -(-len(mine) // AT_ONCE)):
            yield ClaimedBoxes(row, int(token), proof.boxes[some], claimed[some], wrong[some])


def _fresh(proof: RowProof) -> Int[Array, " box"]:
    """The rivals claimed beaten in a box that are not claimed in the box above it."""
    fresh = proof.beaten.astype(np.int64)
    for level in proof.levels():
        parents, children = proof.children(level)
        if (proof.beaten[parents] & ~proof.beaten[children]).any():
            raise WorkError(f"{proof.space.row.name}: the log forgets what it claimed before.")
        fresh[children] &= ~proof.beaten[parents].astype(np.int64)
    return fresh


def _check_leaves(proof: RowProof, target: Int[Array, " box"], vocabulary: int) -> None:
    """All rivals of a right leaf must be beaten, and every verdict must be one of ours."""
    if not np.isin(proof.verdict[proof.verdict < 0], (RIGHT, WRONG, OPEN, STUCK)).all():
        raise WorkError(f"{proof.space.row.name}: the log holds a verdict that does not exist.")
    right = proof.verdict == RIGHT
    known = proof.beaten[right].astype(np.int64) | 1 << np.maximum(target[right], 0)
    if (known != (1 << vocabulary) - 1).any() or (target[right] == UNKNOWN).any():
        raise WorkError(f"{proof.space.row.name}: a box is called right with rivals unbeaten.")


@torch.inference_mode()
def verify(subject: ProofSubject, claims: ClaimedBoxes) -> int:
    """Bound claims again: how many there are. One that does not hold is an error."""
    made, failed = _verified(subject.tables(claims.row, claims.query), claims)
    if len(failed):
        exact = subject.exact_tables(claims.row, claims.query)
        if len(_verified(exact, claims[failed])[1]):
            name = subject.spaces[claims.row].row.name
            raise WorkError(f"{name}: a claim of the log does not hold.")
    return made


def _verified(tables: RowTables, claims: ClaimedBoxes) -> tuple[int, Int[Array, " failed"]]:
    """Bound claims again: how many there are, and in which boxes they do not hold."""
    made, failed = 0, [np.empty(0, dtype=np.int64)]
    for start in range(0, len(claims.boxes), CHUNK):
        at = np.arange(start, min(start + CHUNK, len(claims.boxes)))
        box, least = _bounded(tables, claims[at])
        made += len(box)
        failed.append(start + np.unique(box[~(least > 0)].numpy()))
    return made, np.concatenate(failed)


def _bounded(
    tables: RowTables, claims: ClaimedBoxes
) -> tuple[Int[Tensor, " claim"], Float[Tensor, " claim"]]:
    """The box of each claim, and the least margin of the token that is claimed to win."""
    bounds = Bounds.of(tables, claims.boxes)
    target = bounds.target
    beaten = rivals(claims.beaten, tables.features.config.vocabulary)
    box, loser = beaten.nonzero().T
    wrong = torch.from_numpy(np.flatnonzero(claims.wrong))
    winner = torch.cat([target[box], bounds.neurons.logits.argmax(1)[wrong]])
    box, loser = torch.cat([box, wrong]), torch.cat([loser, target[wrong]])
    return box, bounds.least(box, winner, loser)
