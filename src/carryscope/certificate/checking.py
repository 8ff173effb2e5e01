"""Check a certificate without trusting the search that made it.

In: a certificate and the model. Out: how many claims were recomputed; a claim that does not
hold is an error. The search chose what to split and what to claim; none of that is believed:

- the trees of the columns must split every set without gap or overlap, and the log must
  be a tree from the box of all questions down; so its leaves are disjoint and hold everything;
- every rival that is said to be beaten in a box, and every box that is said to be wrong, is
  bounded anew;
- a leaf is right only if all rivals are beaten in it or above it;
- the numbers of questions are added up anew, and must be those of the certificate; so must its
  families and its statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int

from carryscope.certificate.boxes import UNKNOWN
from carryscope.certificate.certify import Search
from carryscope.certificate.exploring import CHUNK, OPEN, RIGHT, STUCK, WRONG
from carryscope.certificate.finding import (
    ANY,
    Certificate,
    Family,
    digit_proof,
    families,
)
from carryscope.certificate.functionals import Elements
from carryscope.certificate.intervals import Ranges
from carryscope.certificate.margins import (
    DEMANDED,
    Neurons,
    least_margins,
)
from carryscope.certificate.proof import RowProof
from carryscope.certificate.row_tables import RowTables
from carryscope.certificate.statement import statement
from carryscope.certificate.workers import Worker, at_work, in_order
from carryscope.core.errors import WorkError
from carryscope.model.transformer import Transformer
from carryscope.task.columns import Columns
from carryscope.task.operation import Array, State
from carryscope.task.questions import parse_question

AT_ONCE = 2048
"""Boxes whose claims are one piece of work."""


class Checked(NamedTuple):
    """What was recomputed."""

    claims: int
    boxes: int


@dataclass(frozen=True, eq=False)
class Claims:
    """Claims about some boxes of one row and query."""

    row: int
    query: int
    boxes: Int[Array, "box column"]
    beaten: Int[Array, " box"]
    """The rivals that are claimed to be beaten there and not in a box above, as bits."""
    wrong: Bool[Array, " box"]
    """Whether the box is claimed to get wrong answers only."""
    target: Int[Array, " box"]

    def __getitem__(self, at: Int[Array, " some_box"]) -> Claims:
        parts = (self.boxes[at], self.beaten[at], self.wrong[at], self.target[at])
        return Claims(self.row, self.query, *parts)

    def done_by(self, worker: Worker) -> int:
        """Bound them all anew: how many there are. One that does not hold is an error."""
        claims, failed = _verified(worker.tables(self.row, self.query), self)
        if len(failed):
            exact = worker.exact_tables(self.row, self.query)
            if len(_verified(exact, self[failed])[1]):
                name = worker.subject.spaces[self.row].row.name
                raise WorkError(f"{name}: a claim of the log does not hold.")
        return claims


def check_certificate(
    model: Transformer,
    certificate: Certificate,
    *,
    workers: int = 1,
    cluster: str | None = None,
    on_progress: Callable[[int, int], object] = lambda *_: None,
) -> Checked:
    """Verify a certificate; `on_progress` hears how many of how many boxes are checked."""
    work = Search(model, certificate)
    for proof, told in zip(work.proofs, certificate.per_digit, strict=True):
        if proof.count(RIGHT, WRONG, OPEN, STUCK) != 100**proof.space.columns:
            raise WorkError(f"The boxes of {told.digit} do not hold every question once.")
        if digit_proof(proof) != told:
            raise WorkError(f"The counts of {told.digit} are not those of its log.")
    _check_summary(work, certificate)
    pieces = [piece for row in range(len(work.proofs)) for piece in _claims(work, row)]
    total, done, claims = sum(len(piece.boxes) for piece in pieces), 0, 0
    with at_work(work.subject, workers, cluster) as (submit, count):
        results = in_order(submit, pieces, 2 * count)
        for piece, verified in zip(pieces, results, strict=True):
            done, claims = done + len(piece.boxes), claims + verified
            on_progress(done, total)
    return Checked(claims, sum(len(proof) for proof in work.proofs))


def _check_summary(work: Search, told: Certificate) -> None:
    """What the certificate says must be what its log says."""
    counts = work.counts(overlaps=told.ended != "still running")
    stated = (told.questions, told.proved_right, told.proved_wrong, told.undecided)
    if tuple(map(str, (*counts, counts.undecided))) != stated:
        raise WorkError("The numbers of questions in the certificate are not those of its log.")
    for kinds, listed in (
        ((WRONG,), told.wrong_families),
        ((OPEN, STUCK), told.undecided_families),
    ):
        found = [family for proof in work.proofs for family in families(proof, *kinds)]
        if sorted(map(_without_example, found)) != sorted(map(_without_example, listed)):
            raise WorkError("The families in the certificate are not those of its log.")
        if not all(_fits(work, family, kinds) for family in listed):
            raise WorkError("An example in the certificate is not one of its family.")
    said = statement(counts, told.per_digit, told.wrong_families)
    if (said, DEMANDED) != (told.statement, told.demanded_margin):
        raise WorkError("The statement of the certificate is not what its log says.")


def _fits(work: Search, family: Family, kinds: tuple[int, ...]) -> bool:
    """Whether the example of a family is a question of its states that the log says this of."""
    proof = next(proof for proof in work.proofs if proof.space.row.name == family.digit)
    question = parse_question(family.example, proof.space.columns)
    states = "".join(State(state).letter for state in Columns.of(question).state[0, ::-1])
    alike = all(told in (ANY, state) for told, state in zip(family.states, states, strict=True))
    return alike and int(proof.about(question)[0]) in kinds


def _without_example(family: Family) -> tuple[str, ...]:
    """A family, but for its example: any question of it will do."""
    return family.digit, family.states, family.words, family.questions, str(family.boxes)


def _claims(work: Search, row: int) -> Iterator[Claims]:
    """All claims of a row, some boxes at a time."""
    proof = work.proofs[row]
    space, claimed = proof.space, _fresh(proof)
    digits = space.digits(proof.boxes)
    target, query = space.targets(digits), space.queries(digits)
    _check_leaves(work, proof, target)
    wrong = proof.verdict == WRONG
    at = np.flatnonzero((claimed != 0) | wrong)
    if (target[at] == UNKNOWN).any() or (query[at] == UNKNOWN).any():
        raise WorkError(f"{space.row.name}: something is claimed where the digit is not certain.")
    for token in np.unique(query[at]):
        mine = at[query[at] == token]
        for some in np.array_split(mine, -(-len(mine) // AT_ONCE)):
            parts = (proof.boxes[some], claimed[some], wrong[some], target[some])
            yield Claims(row, int(token), *parts)


def _fresh(proof: RowProof) -> Int[Array, " box"]:
    """The rivals claimed beaten in a box that are not claimed in the box above it."""
    fresh = proof.beaten.astype(np.int64)
    for parents, children in proof.families():
        lost = proof.beaten[parents] & ~proof.beaten[children]
        if lost.any():
            raise WorkError(f"{proof.space.row.name}: the log forgets what it claimed before.")
        fresh[children] &= ~proof.beaten[parents].astype(np.int64)
    return fresh


def _check_leaves(work: Search, proof: RowProof, target: Int[Array, " box"]) -> None:
    """All rivals of a right leaf must be beaten; no verdict may be unknown to us."""
    if not np.isin(proof.verdict[proof.verdict < 0], (RIGHT, WRONG, OPEN, STUCK)).all():
        raise WorkError(f"{proof.space.row.name}: the log holds a verdict that does not exist.")
    right = proof.verdict == RIGHT
    everyone = (1 << work.subject.features.config.vocabulary) - 1
    known = proof.beaten[right].astype(np.int64) | 1 << np.maximum(target[right], 0)
    if (known != everyone).any() or (target[right] == UNKNOWN).any():
        raise WorkError(f"{proof.space.row.name}: a box is called right with rivals unbeaten.")


def _verified(tables: RowTables, claims: Claims) -> tuple[int, Int[Array, " failed"]]:
    """Bound claims anew: how many there are, and in which boxes they do not hold."""
    made, failed = 0, [np.empty(0, dtype=np.int64)]
    for start in range(0, len(claims.boxes), CHUNK):
        at = np.arange(start, min(start + CHUNK, len(claims.boxes)))
        count, bad = _verified_chunk(tables, claims[at])
        made += count
        failed.append(start + bad)
    return made, np.concatenate(failed)


def _verified_chunk(tables: RowTables, claims: Claims) -> tuple[int, Int[Array, " failed"]]:
    boxes, goal = claims.boxes, torch.from_numpy(claims.target)
    ranges = Ranges.of(tables, tables.sets(boxes, tables.space.digits(boxes)))
    neurons = Neurons.of(tables, ranges)
    elements = Elements(tables, ranges, neurons.which)
    width = tables.features.config.vocabulary
    rivals = torch.from_numpy((claims.beaten[:, None] >> np.arange(width) & 1).astype(bool))
    rivals[torch.arange(len(boxes)), goal] = False
    box, loser = rivals.nonzero().T
    wrong = torch.from_numpy(np.flatnonzero(claims.wrong))
    winner = torch.cat([goal[box], neurons.logits.argmax(1)[wrong]])
    box, loser = torch.cat([box, wrong]), torch.cat([loser, goal[wrong]])
    failed = [np.empty(0, dtype=np.int64)]
    for start in range(0, len(box), CHUNK):
        part = slice(start, start + CHUNK)
        found = least_margins(
            tables, ranges, neurons, elements, box[part], winner[part], loser[part]
        )
        failed.append(box[part][~(found.least > 0)].numpy())
    return len(box), np.unique(np.concatenate(failed))
