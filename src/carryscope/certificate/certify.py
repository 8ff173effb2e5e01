"""Certify a model: search, from coarse to fine, until enough is decided or time is up.

In: a model, and what was proved about it before. Out: a `Certificate`, at any moment.

Boxes are gone through in rounds. Each round takes, row by row, the row of which most is open
first, the open boxes that hold at least some share of all questions, and splits them until they
are decided or hold less; the next round goes finer. Whatever is stopped between two tasks is
sound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int

from carryscope.certificate.boxes import Row, RowSpace
from carryscope.certificate.counting import Counts, count_whole_questions
from carryscope.certificate.exploring import OPEN, RIGHT, STUCK, WRONG, Fragment
from carryscope.certificate.features import Features
from carryscope.certificate.finding import (
    LOG_VERSION,
    Certificate,
    digit_proof,
    families,
)
from carryscope.certificate.margins import DEMANDED
from carryscope.certificate.proof import RowProof
from carryscope.certificate.row_tables import grow_space
from carryscope.certificate.statement import statement
from carryscope.certificate.workers import Subject, Submit, Task, at_work, in_order
from carryscope.core.errors import CallError, WorkError
from carryscope.model.files import weights_hash
from carryscope.model.prediction import predict
from carryscope.model.transformer import Transformer
from carryscope.task.operation import Array
from carryscope.task.questions import Questions
from carryscope.version import __version__

UNTIL = 0.99
"""By default the search stops when this share of all questions is decided."""

MINUTES = 60.0
"""Or after so long."""

FINER = 4.0
"""By how much each round goes finer than the one before."""

BLOCK = 128
"""Open boxes in one task."""

BOXES_PER_TASK = 4096
"""A task stops after about so many boxes: some seconds, so that stopping is prompt."""

KEEP_EVERY = 60.0
"""Seconds between two checkpoints, at least; a long log takes a while to write, and is written
so seldom that it takes no more than a KEPT_SHARE of the time."""

KEPT_SHARE = 0.02

SPOT_CHECKS = 4096
"""Questions drawn from decided boxes that the real model is asked in the end."""


class Progress(NamedTuple):
    """How far the search is; shares of all questions, by the union bound."""

    right: float
    wrong: float
    undecided: float
    rows: float
    """The share that is decided of each row, on average: this moves before the others do."""
    boxes: int


def subject_of(model: Transformer, logs: Certificate | None = None) -> Subject:
    """What is to be proved about; trees are grown, or taken from an earlier certificate."""
    features = Features.of(model)
    rows = [Row(model.config.layout, i) for i in range(model.config.layout.answer_length)]
    if logs is None:
        spaces = [grow_space(features, row) for row in rows]
    else:
        if [len(log.trees) for log in logs.log] != [model.config.digits] * len(rows):
            raise CallError("The log must have a tree for every column of every row.")
        spaces = [
            RowSpace(row, [tree.tree() for tree in log.trees])
            for row, log in zip(rows, logs.log, strict=True)
        ]
    return Subject(weights_hash(model), features, Features.of(model, torch.float64), spaces)


class Search:
    """The proofs of all rows, growing."""

    def __init__(self, model: Transformer, known: Certificate | None = None) -> None:
        if known is not None:
            check_about(known, model)
        self.model = model
        self.subject = subject_of(model, known)
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
    def progress(self) -> Progress:
        """How far the search is."""
        wrong, undecided = max(self._wrong), sum(self._open) + sum(self._wrong) - max(self._wrong)
        undecided = min(undecided, 1 - wrong)
        rows = 1 - sum(self._open) / len(self._open)
        return Progress(1 - wrong - undecided, wrong, undecided, rows, self.boxes)

    def rounds(self) -> Iterator[list[tuple[Task, Array]]]:
        """Tasks from coarse to fine, each with the numbers of its boxes in the proof.

        The tasks of one list do not touch each other; the next list follows from what they find.
        """
        small, smallest = 1.0, 0.5 * 100.0**-self.model.config.digits
        while small > smallest:
            small /= FINER
            while tasks := list(self._tasks(small)):
                yield tasks

    def _tasks(self, small: float) -> Iterator[tuple[Task, Array]]:
        for number in sorted(range(len(self.proofs)), key=lambda row: -self._open[row]):
            proof = self.proofs[number]
            at = proof.open_boxes(small)
            query = proof.space.queries(proof.space.digits(proof.boxes[at]))
            for token in np.unique(query):
                mine = at[query == token]
                for block in np.array_split(mine, -(-len(mine) // BLOCK)):
                    boxes, beaten = proof.boxes[block], proof.beaten[block]
                    yield Task(number, int(token), boxes, beaten, small, BOXES_PER_TASK), block

    def take(self, task: Task, roots: Array, fragment: Fragment) -> None:
        """Take in what a task found."""
        proof, before = self.proofs[task.row], len(self.proofs[task.row])
        self._open[task.row] -= float(proof.space.share(task.boxes).sum())
        proof.graft(roots, fragment)
        new = np.concatenate([roots, np.arange(before, len(proof))])
        share, verdict = proof.space.share(proof.boxes[new]), proof.verdict[new]
        self._open[task.row] += float(share[(verdict == OPEN) | (verdict == STUCK)].sum())
        self._wrong[task.row] += float(share[verdict == WRONG].sum())
        self.boxes += fragment.judged

    def counts(self, *, overlaps: bool) -> Counts:
        """Whole questions, exactly."""
        return count_whole_questions(self.proofs, overlaps=overlaps)

    def certificate(self, *, until: float, ended: str, seconds: float) -> Certificate:
        """What is proved by now; only at the end with overlaps and spot checks, which take time."""
        final = ended != "still running"
        counts = self.counts(overlaps=final)
        wrong = [family for proof in self.proofs for family in families(proof, WRONG)]
        undecided = [family for proof in self.proofs for family in families(proof, OPEN, STUCK)]
        digits = [digit_proof(proof) for proof in self.proofs]
        return Certificate(
            package_version=__version__,
            log_version=LOG_VERSION,
            model=self.model.config,
            weights_sha256=self.subject.weights_sha256,
            questions=str(counts.questions),
            proved_right=str(counts.right),
            proved_wrong=str(counts.wrong),
            undecided=str(counts.undecided),
            per_digit=digits,
            demanded_margin=DEMANDED,
            until=until,
            ended=ended,
            seconds=round(self.seconds + seconds, 1),
            boxes=self.boxes,
            spot_checks=spot_check(self.model, self.proofs) if final else 0,
            undecided_families=sorted(undecided, key=lambda f: -int(f.questions)),
            wrong_families=sorted(wrong, key=lambda f: -int(f.questions)),
            statement=statement(counts, digits, wrong),
            log=[proof.log() for proof in self.proofs],
        )


def check_about(known: Certificate, model: Transformer) -> None:
    """Refuse a certificate of other weights or of another log version."""
    if (known.model, known.weights_sha256) != (model.config, weights_hash(model)):
        raise CallError(
            "The certificate is about other weights than the model has now. "
            "To start anew, give --again."
        )
    if known.log_version != LOG_VERSION:
        raise CallError(
            f"The certificate's log has version {known.log_version}; this carryscope reads "
            f"version {LOG_VERSION}. To start anew, give --again."
        )


def search(
    model: Transformer,
    *,
    known: Certificate | None = None,
    until: float = UNTIL,
    minutes: float = MINUTES,
    workers: int = 1,
    cluster: str | None = None,
    keep: Callable[[Certificate], object] = lambda _: None,
    on_progress: Callable[[Progress], bool | None] = lambda _: None,
) -> Certificate:
    """Prove as much as is asked for; `keep` receives a checkpoint now and then.

    `on_progress` hears how far it is after every task, and ends the search by answering True.
    """
    _check_settings(until, minutes, workers)
    began = time.monotonic()
    keep_next = began + KEEP_EVERY
    work = Search(model, known)
    ended = "decided"
    with at_work(work.subject, workers, cluster) as (submit, count):
        for now in _walk(work, submit, 2 * count):
            if until < 1 and 1 - work.progress.undecided >= until:
                break
            if on_progress(work.progress):
                ended = "asked to"
                break
            if now - began > 60 * minutes:
                ended = "time"
                break
            if now > keep_next:
                keep(work.certificate(until=until, ended="still running", seconds=now - began))
                took = time.monotonic() - now
                keep_next = now + max(KEEP_EVERY, took / KEPT_SHARE)
    # Overlaps and spot checks take a while; whoever does not wait for them loses nothing.
    keep(work.certificate(until=until, ended="still running", seconds=time.monotonic() - began))
    return work.certificate(until=until, ended=ended, seconds=time.monotonic() - began)


def _check_settings(until: float, minutes: float, workers: int) -> None:
    if not 0 < until <= 1:
        raise CallError(f"until must be above 0 and at most 1. Got {until}.")
    if not minutes > 0:
        raise CallError(f"minutes must be above 0. Got {minutes}.")
    if workers < 1:
        raise CallError(f"workers must be at least 1. Got {workers}.")


def _walk(work: Search, submit: Submit, ahead: int) -> Iterator[float]:
    """Do the tasks, a few at a time, and take them in in order; the time, after each of them."""
    yield time.monotonic()
    for tasks in work.rounds():
        results = in_order(submit, [task for task, _ in tasks], ahead)
        for (task, roots), fragment in zip(tasks, results, strict=True):
            work.take(task, roots, fragment)
            yield time.monotonic()


def spot_check(model: Transformer, proofs: Sequence[RowProof]) -> int:
    """Ask the model questions from decided boxes; a contradiction is an error, not a finding."""
    generator = np.random.default_rng(0)
    asked = 0
    for number, proof in enumerate(proofs):
        for verdict in (RIGHT, WRONG):
            boxes = proof.leaves(verdict)
            if not len(boxes):
                continue
            drawn = draw(proof.space, boxes, SPOT_CHECKS // (2 * len(proofs)), generator)
            right = predict(model, drawn, free_running=False).right[:, number]
            if (right != (verdict == RIGHT)).any():
                raise WorkError(
                    f"The certificate contradicts the model at {proof.space.row.name}: nothing was "
                    f"written. Please report this with the run."
                )
            asked += len(drawn)
    return asked


def draw(
    space: RowSpace, boxes: Int[Array, "box column"], count: int, generator: np.random.Generator
) -> Questions:
    """Questions drawn at random: a box by its share, then a question of the box."""
    share = space.share(boxes)
    chosen = boxes[generator.choice(len(boxes), size=count, p=share / share.sum())]
    pairs = np.empty(chosen.shape, dtype=np.int64)
    for c, tree in enumerate(space.trees):
        start, stop = tree.start[chosen[:, c]], tree.stop[chosen[:, c]]
        pairs[:, c] = tree.order[generator.integers(start, stop)]
    return Questions(pairs // 10, pairs % 10)
