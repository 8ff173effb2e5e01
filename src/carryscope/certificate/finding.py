"""The certificate as a record: what is proved, and the log by which it can be checked.

In: the proofs of all rows. Out: `Certificate`. Numbers of questions are written in decimal,
because 10^20 is no number to every reader of JSON.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from jaxtyping import Int

from carryscope.certificate.boxes import RowSpace
from carryscope.certificate.exploring import OPEN, STUCK, WRONG
from carryscope.certificate.proof import RowLog, RowProof
from carryscope.core.storage import read_json
from carryscope.model.config import ModelConfig
from carryscope.task.operation import Array, State

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
    boxes, space = proof.leaves(*verdicts), proof.space
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
            words=in_words(states),
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
    pairs = [int(tree.members[node].argmax()) for tree, node in zip(space.trees, box, strict=True)]
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
