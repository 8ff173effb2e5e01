"""Claims about the algorithm: the 60 keys, Algorithm 1, the same in other models, by counting.

In: key swaps, learned tables, agreement with stated algorithms. Out: checks. What can be counted
out needs no model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from carryscope.core.evidence import Share
from carryscope.dissection.keys import SURE
from carryscope.task.strata import look_ahead_probabilities
from carryscope.verification.algorithms import ALGORITHM_1
from carryscope.verification.faithfulness import PREDICTS_ANSWERS, PREDICTS_ERRORS
from carryscope.verification.risk_verdict import UNSAFE
from paper.claims.attention import ROLES
from paper.claims.carries import wrong_at_depth
from paper.claims.claims import Check, Claim, Number
from paper.claims.numbers import count, counted, rate, share
from paper.claims.reading import Studies, Study

KEYS = 60
"""2 x 3 x 10."""


def sixty_keys(claim: Claim, studies: Studies) -> list[Check]:
    """Of every digit with 60 keys: the key decides it, and keys are kept apart as in a table."""
    (study,) = studies.of(claim)
    checks = []
    for test in study.mlp.digits:
        if test.keys != KEYS:
            continue
        apart = Share.measured(test.apart_out, test.alike)
        checks += [
            Check(
                what=f"{test.digit} stays when all heads are swapped for those of the same key",
                holds=test.kept.low > SURE,
                numbers=[share(f"{test.digit} stays", study, test.kept, of_what="swaps")],
            ),
            Check(
                what=f"{test.digit} turns into the digit of another key that is swapped in",
                holds=test.follows.low > SURE,
                numbers=[share(f"{test.digit} follows", study, test.follows, of_what="swaps")],
            ),
            Check(
                what=f"most keys of {test.digit} with the same answer are told apart by the MLP",
                holds=apart.low > 0.5,
                numbers=[share(f"{test.digit} told apart", study, apart, of_what="pairs of keys")],
            ),
        ]
    table = [digit for digit in study.faithfulness.table if len(digit.entries) == KEYS]
    entries = sum(len(digit.entries) for digit in table)
    differing = sum(len(digit.differing) for digit in table)
    right = Check(
        what="the digit that the model gives most often for a key is the right one, for all keys",
        holds=entries > 0 and differing == 0,
        numbers=[count("keys with another digit", study, differing, of=entries, of_what="keys")],
        role="core",
    )
    return [right, *checks]


def explains_everything(claim: Claim, studies: Studies) -> list[Check]:
    """Algorithm 1 predicts the model's answers, its errors and its inside.

    The digit of each key is not tested: exact addition usually gives the same one.
    """
    (study,) = studies.of(claim)
    found = study.faithfulness
    whole = found.agreement.of(ALGORITHM_1).answer
    answers = rate("same whole answer", study, whole.agreement, found.agreement.questions)
    alike = whole.errors_alike
    inside = next(one for one in found.inside if one.name == ALGORITHM_1).joint.overall
    return [
        Check(
            what="it gives the model's whole answer in at least "
            f"{PREDICTS_ANSWERS:.0%} of questions",
            holds=whole.agreement.low >= PREDICTS_ANSWERS,
            numbers=[answers],
            role="core",
        ),
        Check(
            what=f"where either is wrong, both say the same in at least {PREDICTS_ERRORS:.0%}",
            holds=alike is not None and alike.low >= PREDICTS_ERRORS,
            numbers=[share("same error", study, alike)] if alike else [],
        ),
        Check(
            what=f"exchanging all it calls irrelevant keeps at least {SURE:.0%} of the digits",
            holds=inside.low >= SURE,
            numbers=[share("digits that stay", study, inside, of_what="exchanges")],
        ),
    ]


def same_algorithm(claim: Claim, studies: Studies) -> list[Check]:
    """Two models read alike, fail alike, and carry the same sub-tasks."""
    one, other = studies.of(claim)

    def both(
        what: str,
        holds: Callable[[Study], bool],
        number: Callable[[Study], Number],
        role: Literal["part", "core"] = "part",
    ) -> Check:
        numbers = [number(study) for study in (one, other)]
        return Check(what=what, holds=holds(one) and holds(other), numbers=numbers, role=role)

    return [
        both("both have heads that read each of the three columns", _steps_as_told, _roles),
        both(
            "in both no more than one digit in twenty is wrong after one nine",
            lambda study: _below(wrong_at_depth(study, 1).high),
            lambda study: _named(study, wrong_at_depth(study, 1)),
            "core",
        ),
        both(
            "in both more than one digit in twenty is wrong after two",
            lambda study: not _below(wrong_at_depth(study, 2).low, unknown=True),
            lambda study: _named(study, wrong_at_depth(study, 2)),
        ),
        both(
            "in both no sub-task of Algorithm 1 lacks a head, or heads, to carry it",
            lambda study: not study.subtasks.missing,
            lambda study: count(
                f"sub-tasks not found in {study.name}",
                study,
                len(study.subtasks.missing),
                of_what="sub-tasks",
            ),
        ),
    ]


def _below(share: float | None, *, unknown: bool = False) -> bool:
    """Whether a share is below the limit of what is safe."""
    return unknown if share is None else share < UNSAFE


def _steps_as_told(study: Study) -> bool:
    return set(ROLES) <= {head.role for head in study.attention.heads}


def _roles(study: Study) -> Number:
    found = {head.role for head in study.attention.heads} & set(ROLES)
    what = f"columns read by a head of {study.name}"
    return count(what, study, len(found), of=len(ROLES), of_what="columns")


def _named(study: Study, number: Number) -> Number:
    """A number of two runs that stand side by side."""
    return msgspec.structs.replace(number, what=f"{study.name} {number.what}")


def printed_algorithm_adds(claim: Claim, studies: Studies) -> list[Check]:
    """Algorithm 1 as printed writes n digits, so every sum of n + 1 digits comes out wrong."""
    carried = sum(
        chance
        for case, chance in look_ahead_probabilities(5).items()
        if case.digit == 5 and case.carrying
    )
    return [
        Check(
            what="it writes every digit of every sum (it has no sixth for two 5-digit numbers)",
            holds=carried == 0,
            numbers=[counted("sums with a sixth digit", carried)],
        )
    ]


def no_cascade_at_digit_4(claim: Claim, studies: Studies) -> list[Check]:
    """Whether a carry can reach A4 through two nines or more."""
    chances = look_ahead_probabilities(5)

    def through_nines(digit: int) -> Number:
        chance = sum(
            p for c, p in chances.items() if c.digit == digit and c.depth >= 2 and c.carrying
        )
        return counted(f"A{digit}", chance)

    number = through_nines(4)
    return [
        Check(
            what="no carry comes to A4 through two nines or more",
            holds=number.estimate == 0,
            numbers=[number, through_nines(3)],
        )
    ]
