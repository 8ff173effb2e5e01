"""Certify a model: search, from coarse to fine, until enough is decided or time is up.

In: a model, and what was proved about it before. Out: a `Certificate`, at any moment.

The search goes in rounds. A round takes the open boxes that hold at least some share of all
questions, the row of which most is open first, and splits them until they are decided or hold
less. The next round goes finer. Between two pieces of work the proof is always sound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec
import numpy as np
from jaxtyping import Float

from carryscope.certificate.counting import count_whole_questions
from carryscope.certificate.exploring import Piece, explore
from carryscope.certificate.finding import (
    LOG_VERSION,
    RUNNING,
    Certificate,
    check_about,
    digit_proof,
    families,
    statement,
)
from carryscope.certificate.proof import (
    OPEN,
    STUCK,
    WRONG,
    About,
    Engine,
    Fragment,
    RowProof,
)
from carryscope.certificate.row_tables import DEMANDED
from carryscope.certificate.spot_checks import spot_check
from carryscope.certificate.subject import ProofSubject, fastest_engine
from carryscope.core.errors import CallError
from carryscope.core.progress import Advance, Progress, Stopped, silent
from carryscope.core.words import percent
from carryscope.core.workers import Workers
from carryscope.model.files import weights_hash
from carryscope.model.transformer import Transformer
from carryscope.task.operation import PAIRS, Array
from carryscope.version import __version__

ABOUT: About = "exact"
"""What is proved, unless float32 is asked for: that demands a lead of some logits, which models
like the paper's do not have."""

UNTIL = 0.99
"""By default the search stops when this share of all questions is decided."""

MINUTES = 60.0
"""Or after so long."""

FINER = 64.0
"""By how much each round goes finer than the one before."""

BLOCK = 16
"""Open boxes in one piece of work."""

BOXES_PER_PIECE = 4096
"""A piece of work ends after about so many boxes: some seconds, so that stopping is prompt."""

KEEP_EVERY = 60.0
"""Seconds between two checkpoints, at least."""

KEPT_SHARE = 0.02
"""Share of the time that writing checkpoints may take: a long log is written less often."""


class ProofSearch:
    """The proofs of all rows, growing."""

    def __init__(
        self,
        model: Transformer,
        known: Certificate | None = None,
        *,
        about: About | None = None,
        engine: Engine | None = None,
    ) -> None:
        self.model, self.weights_sha256 = model, weights_hash(model)
        if known is not None:
            check_about(known, model.config, self.weights_sha256, about)
        self.about: About = about or (known.about if known else ABOUT)
        self.engine = engine or fastest_engine()
        self.found_with = sorted({self.engine, *(known.found_with if known else ())})
        self.subject = ProofSubject.of(
            model, known.log if known else None, about=self.about, engine=self.engine
        )
        spaces = self.subject.spaces
        if known is None:
            self.proofs = [RowProof.settled(space) for space in spaces]
        else:
            self.proofs = [RowProof.read(s, log) for s, log in zip(spaces, known.log, strict=True)]
        self.boxes = known.boxes if known else 0
        self.seconds = known.seconds if known else 0.0
        self._open = [proof.share(OPEN, STUCK) for proof in self.proofs]
        self._wrong = [proof.share(WRONG) for proof in self.proofs]

    @property
    def wrong(self) -> float:
        """The share of questions that is proved wrong, by the union bound."""
        return float(self._by_operation(self._wrong).max(1).mean())

    @property
    def undecided(self) -> float:
        """The share of questions that is undecided, by the union bound."""
        unclear, wrong = self._by_operation(self._open), self._by_operation(self._wrong)
        left = unclear.sum(1) + wrong.sum(1) - wrong.max(1)
        return float(np.clip(left, 0.0, 1 - wrong.max(1)).mean())

    def _by_operation(self, shares: list[float]) -> Float[Array, "operation row"]:
        return np.reshape(shares, (-1, self.model.config.layout.answer_length))

    @property
    def rows(self) -> float:
        """The share that is decided of each row, on average: this moves before the others do."""
        return 1 - sum(self._open) / len(self._open)

    @property
    def note(self) -> str:
        """How far the search is, in words."""
        right, of_a_digit = 1 - self.wrong - self.undecided, max(1 - self.rows, 0.0)
        return (
            f"right {percent(right)}, wrong {percent(self.wrong)}, undecided "
            f"{percent(self.undecided)} (of a digit {percent(of_a_digit)}), {self.boxes:,} boxes"
        )

    def steps(self, workers: Workers) -> Iterator[None]:
        """Decide boxes from coarse to fine; pause after each piece of work and every second."""
        small, smallest = 1.0, 0.5 * float(PAIRS) ** -self.model.config.digits
        yield
        while small > smallest:
            small /= FINER
            while pieces := list(self._pieces(small)):
                for found in workers.in_order(explore, pieces):
                    if found is not None:
                        self._take(*found)
                    yield

    def _pieces(self, small: float) -> Iterator[Piece]:
        """The open boxes of this size and above. No piece touches another."""
        for number in sorted(range(len(self.proofs)), key=lambda row: -self._open[row]):
            proof = self.proofs[number]
            at = proof.open_boxes(small)
            for reading, mine in proof.space.readings(proof.boxes[at]):
                for roots in np.array_split(at[mine], -(-len(mine) // BLOCK)):
                    boxes = proof.boxes[roots]
                    yield Piece(number, reading, roots, boxes, small, BOXES_PER_PIECE)

    def _take(self, piece: Piece, fragment: Fragment) -> None:
        """Take in what was found below the boxes of a piece."""
        proof, before = self.proofs[piece.row], len(self.proofs[piece.row])
        self._open[piece.row] -= float(proof.space.share(piece.boxes).sum())
        proof.graft(piece.roots, fragment)
        new = np.concatenate([piece.roots, np.arange(before, len(proof))])
        share, verdict = proof.space.share(proof.boxes[new]), proof.verdict[new]
        self._open[piece.row] += float(share[(verdict == OPEN) | (verdict == STUCK)].sum())
        self._wrong[piece.row] += float(share[verdict == WRONG].sum())
        self.boxes += fragment.judged

    def certificate(self, *, until: float, ended: str, seconds: float) -> Certificate:
        """What is proved by now. Overlaps of rows take time: they are counted at the end only."""
        counts = count_whole_questions(self.proofs, overlaps=ended != RUNNING)
        wrong = [family for proof in self.proofs for family in families(proof, WRONG)]
        undecided = [family for proof in self.proofs for family in families(proof, OPEN, STUCK)]
        digits = [digit_proof(proof) for proof in self.proofs]
        return Certificate(
            package_version=__version__,
            log_version=LOG_VERSION,
            model=self.model.config,
            weights_sha256=self.weights_sha256,
            questions=str(counts.questions),
            proved_right=str(counts.right),
            proved_wrong=str(counts.wrong),
            undecided=str(counts.undecided),
            per_digit=digits,
            about=self.about,
            demanded_margin=DEMANDED,
            found_with=self.found_with,
            checked_with="",
            until=until,
            ended=ended,
            seconds=round(self.seconds + seconds, 1),
            boxes=self.boxes,
            spot_checks=0,
            undecided_families=sorted(undecided, key=lambda f: -int(f.questions)),
            wrong_families=sorted(wrong, key=lambda f: -int(f.questions)),
            statement=statement(counts, digits, wrong, self.about),
            log=[proof.log() for proof in self.proofs],
        )


def certify(
    model: Transformer,
    *,
    known: Certificate | None = None,
    until: float = UNTIL,
    minutes: float = MINUTES,
    workers: int = 1,
    cluster: str | None = None,
    about: About | None = None,
    engine: Engine | None = None,
    keep: Callable[[Certificate], object] = lambda _: None,
    progress: Progress = silent,
) -> Certificate:
    """Prove until the share `until` of all questions is decided, or for so many minutes.

    `known` is continued. `keep` receives a checkpoint now and then, and whatever ends the search
    what is proved by then. `about` says what is proved: what the model does in exact arithmetic,
    or what any float32 evaluation of it does. `engine` computes the bounds.
    """
    check_settings(until, minutes, workers)
    began = time.monotonic()
    search = ProofSearch(model, known, about=about, engine=engine)

    def found(ended: str) -> Certificate:
        return search.certificate(until=until, ended=ended, seconds=time.monotonic() - began)

    with progress("certify", 1.0) as advance, search.subject.workers(workers, cluster) as crew:
        try:
            ended = _decide(
                search,
                crew,
                advance,
                until=until,
                end=began + 60 * minutes,
                checkpoint=_Checkpoints(lambda: keep(found(RUNNING))),
            )
        finally:
            # Overlaps and spot checks take a while: who does not wait for them loses nothing.
            keep(found(RUNNING))
    return msgspec.structs.replace(found(ended), spot_checks=spot_check(model, search.proofs))


def check_settings(until: float, minutes: float, workers: int) -> None:
    """Refuse settings that make no sense."""
    if not 0 < until <= 1:
        raise CallError(f"until must be above 0 and at most 1. Got {until}.")
    if not minutes > 0:
        raise CallError(f"minutes must be above 0. Got {minutes}.")
    if workers < 1:
        raise CallError(f"workers must be at least 1. Got {workers}.")


def _decide(
    search: ProofSearch,
    workers: Workers,
    advance: Advance,
    *,
    until: float,
    end: float,
    checkpoint: _Checkpoints,
) -> str:
    """Search until one of the reasons to end; which one."""
    shown = 0.0
    for _ in search.steps(workers):
        if until < 1 and 1 - search.undecided >= until:
            return "decided"
        try:
            advance(search.rows - shown, search.note)
        except Stopped:
            return "asked to"
        shown = search.rows
        if time.monotonic() > end:
            return "time"
        checkpoint()
    return "decided"


class _Checkpoints:
    """Keeps what is found now and then."""

    def __init__(self, keep: Callable[[], object]) -> None:
        self._keep, self._next = keep, time.monotonic() + KEEP_EVERY

    def __call__(self) -> None:
        now = time.monotonic()
        if now > self._next:
            self._keep()
            took = time.monotonic() - now
            self._next = now + max(KEEP_EVERY, took / KEPT_SHARE)
