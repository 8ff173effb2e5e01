"""The certificate as a record: what is proved, in numbers and words, and the log to check it by.

In: the proofs of all rows. Out: `Certificate`. Numbers of questions are decimal text, because not
every reader of JSON can hold 10^20.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from jaxtyping import Int

from carryscope.certificate.boxes import RowSpace, questions_of_pairs
from carryscope.certificate.counting import Counts
from carryscope.certificate.proof import OPEN, STUCK, WRONG, About, Engine, RowLog, RowProof
from carryscope.core.errors import CallError
from carryscope.core.evidence import Finding
from carryscope.core.words import counted_share, listed
from carryscope.model.config import ModelConfig
from carryscope.task.operation import ADD, PAIRS, Array, Operation, State

LOG_VERSION = 2
"""Version of the log of boxes. Another one is refused, never guessed at."""

RUNNING = "still running"
"""In place of the reason why the search ended, in a checkpoint."""

ANY = "*"
"""A column of a family that holds several states."""

_OF_LETTER = {state.letter: state for state in State}

Count = Annotated[str, msgspec.Meta(pattern="^[0-9]+$")]
"""A number of questions, in decimal."""


class DigitProof(msgspec.Struct, frozen=True, kw_only=True):
    """What is proved about one answer token, given that the tokens before it are right."""

    digit: str
    proved_right: Count
    proved_wrong: Count
    undecided: Count
    boxes: int
    """Boxes in the proof of this token."""


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """Questions of one kind, as far as one answer token is concerned."""

    digit: str
    states: str
    """The state of each column, highest first: K, P, G, or * for any."""
    words: str
    questions: Count
    boxes: int
    example: str
    """One of them."""


class Certificate(Finding, frozen=True, kw_only=True):
    """Proved bounds on a model's accuracy over every question."""

    package_version: str
    log_version: int
    model: ModelConfig
    """Weights are read by it: the same numbers with other heads are another model."""
    weights_sha256: str
    questions: Count
    proved_right: Count
    proved_wrong: Count
    undecided: Count
    per_digit: list[DigitProof]
    about: About
    """What is proved: what the model answers in exact arithmetic, or in any float32 evaluation."""
    demanded_margin: float
    """In logits: how far a proved token is ahead of every other one, at least; in float32 this is
    besides all that rounding can cost."""
    found_with: Annotated[list[Engine], msgspec.Meta(min_length=1)]
    """What computed the bounds of the search."""
    checked_with: Literal["numba", "torch", ""]
    """What computed them again, if they were checked."""
    until: float
    """The share of decided questions at which the search was to stop."""
    ended: str
    """Why it stopped: `decided`, `time`, `asked to`, or `still running`."""
    seconds: float
    """Time spent in all sessions."""
    boxes: int
    """Boxes bounded in all sessions."""
    spot_checks: int
    """Questions from decided boxes that the model answered; all answers were as proved."""
    undecided_families: list[Family]
    wrong_families: list[Family]
    statement: str
    log: list[RowLog]

    @property
    def decided(self) -> float:
        """The share of questions that is decided."""
        return 1 - int(self.undecided) / int(self.questions)

    @property
    def can_be_continued(self) -> bool:
        """Whether its log is one that this version reads."""
        return self.log_version == LOG_VERSION

    def is_enough(self, until: float, about: About | None = None) -> bool:
        """Whether no search is needed to have this share decided, or all that can be."""
        if about not in (None, self.about):
            return False
        everything = self.ended == "decided" and self.until >= until
        return self.ended != RUNNING and (self.decided >= until or everything)

    def without_log(self) -> dict[str, Any]:
        """The certificate for a reader: all but the log of boxes."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        del fields["log"]
        return fields


def check_about(
    known: Certificate, model: ModelConfig, weights_sha256: str, about: About | None
) -> None:
    """Refuse a certificate of another model, of another log version, or about something else."""
    if (known.model, known.weights_sha256) != (model, weights_sha256):
        raise CallError(
            "The certificate is about other weights than the model has now. "
            "To start from nothing, give --again."
        )
    if not known.can_be_continued:
        raise CallError(
            f"The certificate's log must have version {LOG_VERSION}. Got version "
            f"{known.log_version}. To start from nothing, give --again."
        )
    if about not in (None, known.about):
        raise CallError(
            f"The certificate is about {known.about} arithmetic, not {about}. "
            "To start from nothing, give --again."
        )


def digit_proof(proof: RowProof) -> DigitProof:
    """The counts of one row."""
    wrong, undecided = proof.count(WRONG), proof.count(OPEN, STUCK)
    return DigitProof(
        digit=proof.space.row.name,
        proved_right=str(PAIRS**proof.space.columns - wrong - undecided),
        proved_wrong=str(wrong),
        undecided=str(undecided),
        boxes=len(proof),
    )


def families(proof: RowProof, *verdicts: int) -> list[Family]:
    """The leaves with these verdicts by the states of their columns, largest family first."""
    leaves, space = proof.order, proof.space
    boxes = proof.boxes[leaves[np.isin(proof.verdict[leaves], verdicts)]]
    if not len(boxes):
        return []
    kinds, member, times = np.unique(_kinds(space, boxes), return_inverse=True, return_counts=True)
    # Family after family, each with its largest box first.
    order, begin = np.lexsort((-space.share(boxes), member)), np.cumsum(times) - times
    questions = np.add.reduceat(space.sizes(boxes)[order], begin)
    found = [
        Family(
            digit=space.row.name,
            states=states,
            words=in_words(states, space.row.operation),
            questions=str(held),
            boxes=int(count),
            example=example(space, boxes[largest]),
        )
        for states, held, count, largest in zip(
            _letters(kinds, space.columns), questions, times, order[begin], strict=True
        )
    ]
    return sorted(found, key=lambda family: (-int(family.questions), family.states))


KINDS = len(State) + 1
"""What a column of a family can be: in a state, or in several."""


def _kinds(space: RowSpace, boxes: Array) -> Int[Array, " box"]:
    """The states of all columns as one number: a digit for each column, to the base KINDS."""
    found = np.zeros(len(boxes), dtype=np.int64)
    for c, facts in enumerate(space.facts):
        one, state = facts.one_state[boxes[:, c]], facts.state[boxes[:, c]]
        found += np.where(one, state, len(State)) * KINDS**c
    return found


def _letters(kinds: Int[Array, " kind"], columns: int) -> list[str]:
    """The letter of each column's state, highest column first."""
    letters = [*(state.letter for state in State), ANY]
    return [
        "".join(letters[kind // KINDS**c % KINDS] for c in reversed(range(columns)))
        for kind in kinds.tolist()
    ]


def example(space: RowSpace, box: Array) -> str:
    """The first question of a box, as text."""
    pairs = [tree.members[node].argmax() for tree, node in zip(space.trees, box, strict=True)]
    return questions_of_pairs(np.array([pairs]), space.row.operation).texts()[0]


def in_words(states: str, operation: Operation = ADD) -> str:
    """A family in words: `column 2 sums to 9, column 1 sums to 10 or more`."""
    columns = range(len(states) - 1, -1, -1)
    words = [
        f"column {c} {operation.words.column[_OF_LETTER[letter]]}"
        for c, letter in zip(columns, states, strict=True)
        if letter != ANY
    ]
    return ", ".join(words) or "any question"


ARITHMETIC: dict[About, str] = {"exact": "exact arithmetic", "float32": "any float32 evaluation"}


def statement(
    counts: Counts, digits: Sequence[DigitProof], wrong: Sequence[Family], about: About
) -> str:
    """What is proved about the model, in a few sentences. Shares are rounded to the safe side."""
    questions = counts.questions
    if counts.right == questions:
        return (
            f"The model is proved to answer all {questions:,} questions right in "
            f"{ARITHMETIC[about]}."
        )
    undecided = counted_share(counts.undecided, questions, at_most=True)
    parts = [
        f"Of all {questions:,} questions, {counted_share(counts.right, questions)} are proved "
        f"right, {counted_share(counts.wrong, questions)} are proved wrong and {undecided} are "
        f"undecided, in {ARITHMETIC[about]}."
    ]
    if not counts.right and digits:
        # A question is proved once all its digits are, so at first only digits are.
        shares = [f"{d.digit} in {counted_share(int(d.proved_right), questions)}" for d in digits]
        parts.append(f"Single digits proved right: {', '.join(shares)}.")
    perfect = [d.digit for d in digits if d.undecided == d.proved_wrong == "0"]
    if perfect:
        verb = "is" if len(perfect) == 1 else "are"
        parts.append(f"{listed(perfect)} {verb} proved right wherever the digits before are right.")
    if wrong:
        parts.append(_largest_failure(max(wrong, key=lambda family: int(family.questions))))
    return " ".join(parts)


def _largest_failure(family: Family) -> str:
    of_state = ADD.pairs_per_state  # as in every operation
    pairs = [PAIRS if letter == ANY else of_state[_OF_LETTER[letter]] for letter in family.states]
    where = "" if set(family.states) == {ANY} else f" where {family.words}"
    return (
        f"The largest proved failure: {family.digit} or a digit before it is wrong in "
        f"{int(family.questions):,} of the {prod(pairs):,} questions{where}, such as "
        f"{family.example}."
    )
