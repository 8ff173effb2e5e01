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

import msgspec
import numpy as np
from jaxtyping import Int

from carryscope.core.evidence import Share
from carryscope.model.prediction import answer
from carryscope.model.transformer import Transformer
from carryscope.task.operation import ADD, PAIRS, Array, State
from carryscope.task.questions import Questions
from carryscope.task.sampling import with_states
from carryscope.task.strata import LookAhead, look_ahead_probabilities

EACH = 1000
"""Questions for each digit and look-ahead: an interval reaches at most 3.1 % to either side."""

EXAM_SEED = 20240613
"""Draws the questions; training batches are drawn from (seed, step)."""


class CaseRight(msgspec.Struct, frozen=True, kw_only=True):
    """One answer digit in one case."""

    digit: str
    case: str
    right: Share
    """How often the digit is right, teacher-forced."""


def case_of(look_ahead: LookAhead) -> str:
    """The name of the case."""
    if not look_ahead.carrying:
        return "quiet nines" if look_ahead.depth else "BA"
    return ("UC1", "simple US9", f"cascade {look_ahead.depth}")[min(2, look_ahead.depth)]


def exam(digits: int, each: int = EACH) -> dict[LookAhead, Questions]:
    """The questions for models of so many digits, by the digit and look-ahead they are for."""
    generator = np.random.default_rng((EXAM_SEED, digits))
    return {
        case: with_states(generator, _states(generator, case, digits, each))
        for case in look_ahead_probabilities(digits)
    }


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
    return np.asarray(states)


def sit(model: Transformer, each: int = EACH) -> list[CaseRight]:
    """How a model does in the exam, case by case, digit by digit."""
    hits: dict[tuple[str, int], list[Array]] = {}
    for case, questions in exam(model.config.digits, each).items():
        right = answer(model, questions, free_running=False).right[:, -1 - case.digit]
        hits.setdefault((case_of(case), case.digit), []).append(right)
    cases = ("BA", "UC1", "simple US9", *(f"cascade {d}" for d in range(2, 20)), "quiet nines")
    return [
        CaseRight(digit=f"A{digit}", case=case, right=Share.of_hits(np.concatenate(found)))
        for (case, digit), found in sorted(
            hits.items(), key=lambda item: (cases.index(item[0][0]), -item[0][1])
        )
    ]
