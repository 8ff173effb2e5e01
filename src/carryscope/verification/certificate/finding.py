"""The certificate as a record: what is proved, and the log by which it can be checked.

In: the proofs of all rows. Out: `Certificate`. Numbers of questions are written in decimal,
because 10^20 is no number to every reader of JSON.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from carryscope.model.config import ModelConfig
from carryscope.storage import read_json
from carryscope.task.columns import State
from carryscope.task.questions import Array
from carryscope.verification.certificate.boxes import RowSpace
from carryscope.verification.certificate.exploring import OPEN, STUCK, WRONG
from carryscope.verification.certificate.proof import RowLog, RowProof, count_questions

CERTIFICATE_FILE = Path("findings") / "certificate.json"

LOG_VERSION = 1
"""Version of the log of boxes. Another one is refused, never guessed at."""

ANY = "*"
"""A column of a family that holds several states."""

_WORDS = {"K": "sums to 8 or less", "P": "sums to 9", "G": "sums to 10 or more"}


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


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
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
    demanded_margin: float
    """In logits: so far ahead of every other token a right one is proved to be."""
    until: float
    """The search was to stop when this share of questions was decided."""
    ended: str
    """Why it stopped: `decided`, `time`, `asked to`, or `still running`."""
    seconds: float
    """Time spent, by all sessions together."""
    boxes: int
    """Boxes bounded, by all sessions together."""
    spot_checks: int
    """Questions drawn from decided boxes that the model was asked; all answers were as proved."""
    undecided_families: list[Family]
    wrong_families: list[Family]
    statement: str
    log: list[RowLog]

    @property
    def decided(self) -> float:
        """The share of questions that is decided."""
        return 1 - int(self.undecided) / int(self.questions)


def read_certificate(directory: Path) -> Certificate:
    """The certificate of a run."""
    return read_json(directory / CERTIFICATE_FILE, Certificate)


def digit_proof(proof: RowProof) -> DigitProof:
    """The counts of one row."""
    wrong, undecided = proof.count(WRONG), proof.count(OPEN, STUCK)
    return DigitProof(
        digit=proof.space.row.name,
        proved_right=str(100**proof.space.columns - wrong - undecided),
        proved_wrong=str(wrong),
        undecided=str(undecided),
        boxes=len(proof),
    )


def families(proof: RowProof, *verdicts: int) -> list[Family]:
    """The leaves with these verdicts by the states of their columns, largest family first."""
    boxes = proof.leaves(*verdicts)
    if not len(boxes):
        return []
    states, member = np.unique(_states(proof.space, boxes), axis=0, return_inverse=True)
    groups = [boxes[member.reshape(-1) == number] for number in range(len(states))]
    found = [
        _family(proof.space, "".join(row), group)
        for row, group in zip(states.tolist(), groups, strict=True)
    ]
    return sorted(found, key=lambda family: (-int(family.questions), family.states))


def _states(space: RowSpace, boxes: Array) -> Array:
    """The letter of each column's state, highest column first."""
    letters = np.array([*(state.letter for state in State), ANY])
    columns = [
        np.where(facts.one_state[boxes[:, c]], facts.state[boxes[:, c]], len(State))
        for c, facts in enumerate(space.facts)
    ]
    return np.asarray(letters[np.stack(columns[::-1], axis=1)])


def _family(space: RowSpace, states: str, boxes: Array) -> Family:
    largest = boxes[int(space.share(boxes).argmax())]
    return Family(
        digit=space.row.name,
        states=states,
        words=in_words(states),
        questions=str(count_questions(space, boxes)),
        boxes=len(boxes),
        example=example(space, largest),
    )


def example(space: RowSpace, box: Array) -> str:
    """The first question of a box, as text."""
    pairs = [
        int(np.flatnonzero(tree.members[node])[0])
        for tree, node in zip(space.trees, box, strict=True)
    ]
    first, second = (
        int("".join(str(divmod(pair, 10)[side]) for pair in reversed(pairs))) for side in (0, 1)
    )
    return f"{first}+{second}"


def in_words(states: str) -> str:
    """A family in words: `column 2 sums to 9, column 1 sums to 10 or more`."""
    columns = range(len(states) - 1, -1, -1)
    told = [
        f"column {c} {_WORDS[letter]}"
        for c, letter in zip(columns, states, strict=True)
        if letter != ANY
    ]
    return ", ".join(told) or "any question"
