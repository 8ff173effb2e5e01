"""An exam: questions of every kind for every answer digit, the same for all models of a size.

In: a model. Out: for each answer digit and each case, how often the digit is right. Every case
has the same number of questions, however rare it is.

A case is what lies in the columns below the digit (its look-ahead):

    BA            no carry arrives, and the column below does not sum to 9
    UC1           the column below makes the carry that arrives
    simple US9    the column below sums to 9 and passes a carry on
    cascade d     d columns below sum to 9 and pass a carry on, d = 2 and up
    quiet nines   one or more columns below sum to 9, and no carry arrives

In 00445+00555 the digit A3 is a cascade 2. For each digit and look-ahead the questions are drawn
uniformly among those that have it; quiet nines have every depth in equal numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np
from jaxtyping import Int

from carryscope.core.evidence import Share
from carryscope.model.files import weights_hash
from carryscope.model.prediction import answer
from carryscope.model.transformer import Transformer
from carryscope.run import Run
from carryscope.stages import Stage
from carryscope.task.operation import ADD, PAIRS, Array, State
from carryscope.task.questions import Questions
from carryscope.task.sampling import with_states
from carryscope.task.strata import LookAhead, look_ahead_probabilities
from carryscope.version import __version__

EACH = 200
"""Questions for each digit and look-ahead: an interval reaches at most 6.9 % to either side."""

EXAM_SEED = 20240613
"""Draws the questions; training batches are drawn from (seed, step)."""

QUIET = "quiet nines"
FIRST_CASES = ("BA", "UC1", "simple US9")


class CaseRight(msgspec.Struct, frozen=True, kw_only=True):
    """One answer digit in one case."""

    digit: str
    case: str
    right: Share
    """How often the digit is right, teacher-forced."""


class ExamFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an exam."""

    package_version: str
    weights_sha256: str
    each: int
    """Questions for each digit and look-ahead."""
    right: list[CaseRight]
    through_all: Share
    """Whole answers right where a carry from the units runs through all other columns."""


EXAM = Stage("exam", "the exam", ExamFinding)


@dataclass(frozen=True, eq=False)
class Exam:
    """All questions, and what each is for: one digit, at one look-ahead."""

    questions: Questions
    blocks: tuple[LookAhead, ...]
    """For each block of questions, in order."""


def case_of(look_ahead: LookAhead) -> str:
    """The name of the case."""
    depth = look_ahead.depth
    if not look_ahead.carrying:
        return QUIET if depth else FIRST_CASES[0]
    return FIRST_CASES[depth + 1] if depth + 1 < len(FIRST_CASES) else f"cascade {depth}"


def cases(digits: int) -> list[str]:
    """All cases that questions of this size have, in the order of the module's table."""
    cascades = [f"cascade {depth}" for depth in range(2, digits)]
    return [*FIRST_CASES[: digits + 1], *cascades, QUIET]


@lru_cache(maxsize=2)
def exam(digits: int, each: int) -> Exam:
    """The questions for models of so many digits: the same for every model."""
    generator = np.random.default_rng((EXAM_SEED, digits))
    blocks = tuple(look_ahead_probabilities(digits))
    drawn = [with_states(generator, _states(generator, case, digits, each)) for case in blocks]
    return Exam(Questions.joined(drawn).frozen(), blocks)


def _states(
    generator: np.random.Generator, case: LookAhead, digits: int, each: int
) -> Int[Array, "batch column"]:
    """The state of every column: as the case demands, elsewhere as in uniform questions."""
    chances = [ADD.pairs_per_state[state] / PAIRS for state in State]
    states = generator.choice(len(State), (each, digits), p=chances)
    last = case.digit - case.depth
    states[:, last : case.digit] = State.PROPAGATE
    if last:
        states[:, last - 1] = State.GENERATE if case.carrying else State.KILL
    return states


def sit(model: Transformer, *, each: int = EACH) -> ExamFinding:
    """How a model does in the exam, digit by digit, case by case."""
    layout = model.config.layout
    taken = exam(layout.digits, each)
    right = answer(model, taken.questions, free_running=False).right
    hits: dict[tuple[str, str], list[Array]] = {}
    whole = right[:0]
    for i, case in enumerate(taken.blocks):
        block = right[i * each : (i + 1) * each]
        of_digit = block[:, layout.answer_length - 1 - case.digit]
        hits.setdefault((f"A{case.digit}", case_of(case)), []).append(of_digit)
        if case == LookAhead(layout.digits, layout.digits - 1, True):
            whole = block
    found = [
        CaseRight(digit=digit, case=case, right=Share.of_hits(np.concatenate(hits[digit, case])))
        for case in cases(layout.digits)
        for digit in (f"A{k}" for k in reversed(range(layout.digits + 1)))
        if (digit, case) in hits
    ]
    return ExamFinding(
        package_version=__version__,
        weights_sha256=weights_hash(model),
        each=each,
        right=found,
        through_all=Share.of_hits(whole.all(axis=1)),
    )


def examined(run: Run) -> ExamFinding:
    """The exam of a run: what is there, or taken now and kept."""
    return run.find(EXAM, lambda *_: sit(run.model()))
