"""What a sweep keeps of one seed: what holds of it, and its numbers.

In: the findings of a run. Out: `SeedFinding`, in a form that can be compared between seeds. The
number of a head means nothing between seeds, so heads are named by the column they read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from carryscope.core.words import brief
from carryscope.dissection.attention import AttentionFinding, HeadRole
from carryscope.dissection.dissect import Dissection
from carryscope.run import Run
from carryscope.training.summary import TrainingSummary
from carryscope.verification.agreement import AgreementFinding
from carryscope.verification.algorithms import ALGORITHM_1
from carryscope.verification.cases import CaseRisk, by_look_ahead
from carryscope.verification.estimate import Rate
from carryscope.verification.faithfulness import PREDICTS_ANSWERS, PREDICTS_ERRORS
from carryscope.verification.risk import RiskFinding
from carryscope.verification.risk_verdict import SAFE, UNSAFE

NO_WINNER = "no clear winner"
"""In place of the algorithm that agrees best, where the runner-up may agree as well."""

MOST = 0.5
"""A head has a sub-task if it carries it for at least half of the answer digits that need it."""

CASCADE = 2
"""A carry through this many nines or more is a cascade."""

CARRY = ("MC1", "state")
"""Sub-tasks that give a column's carry."""


class SeedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of one seed. Its run has the rest."""

    seed: int
    weights_sha256: str
    failure: Rate
    """The chance of a wrong answer over all questions."""
    roles: str
    """What the heads read: "own column, one below, two below"."""
    staircase: str
    """`present`, `partial` or `absent`, from the dissection."""
    algorithm: str
    """The stated algorithm that agrees best, if its lead is more than chance. One that always
    answers as Algorithm 1 does goes by that name."""
    holds: dict[str, bool | None]
    """Whether each of `PROPERTIES` holds; null if it does not apply."""
    numbers: dict[str, float]
    """Losses and shares, then wrong digits by look-ahead."""


class Studied(NamedTuple):
    """The findings of a finished seed."""

    summary: TrainingSummary
    found: Dissection
    risk: RiskFinding
    agreement: AgreementFinding

    @classmethod
    def of(cls, run: Run) -> Studied:
        """Those of a run; what is there is not made again."""
        return cls(run.training(), run.dissection(), run.risk(), run.faithfulness().agreement)


def seed_finding(seed: Studied) -> SeedFinding:
    """What the findings of a seed say."""
    attention = seed.found.attention
    assert attention is not None
    return SeedFinding(
        seed=seed.summary.seed,
        weights_sha256=seed.found.weights_sha256,
        failure=seed.risk.teacher_forced,
        roles=_roles(attention),
        staircase=attention.staircase,
        algorithm=_best(seed.agreement),
        holds={name: ask(seed) for name, ask in PROPERTIES.items()},
        numbers=_numbers(seed),
    )


def _roles(attention: AttentionFinding) -> str:
    """Own column first, those without a staircase last."""
    deep = len({head.layer for head in attention.heads}) > 1
    heads = sorted(attention.heads, key=lambda h: (h.layer, h.role is None, h.offset, h.head))
    return ", ".join(f"{f'L{h.layer} ' * deep}{h.role or 'no staircase'}" for h in heads)


def _best(found: AgreementFinding) -> str:
    if found.difference is not None and found.difference.low <= 0:
        return NO_WINNER
    best = found.best or "none"
    return ALGORITHM_1 if best == found.of(ALGORITHM_1).same_as else best


Ask = Callable[[Studied], bool | None]
"""Whether a seed has a property; null if that does not apply."""


def _readers(seed: Studied, below: int) -> list[HeadRole]:
    """The heads that read the column so far below."""
    heads = seed.found.attention.heads if seed.found.attention else []
    return [head for head in heads if head.role is not None and head.offset == below]


def _carries(kinds: tuple[str, ...], below: int) -> Ask:
    """Whether a head that reads a column so far below carries one of these sub-tasks of it."""

    def ask(seed: Studied) -> bool | None:
        digits, readers = seed.found.model.digits, _readers(seed, below)
        least = max(1.0, MOST * (digits + (below > 0) - below))
        served: dict[tuple[int, int], set[str]] = {(h.layer, h.head): set() for h in readers}
        for p in seed.found.subtasks.purposes if seed.found.subtasks else []:
            alone = (p.layer, p.heads[0]) if len(p.heads) == 1 else None
            if alone in served and p.kind in kinds and int(p.digit[1:]) - p.column == below:
                served[alone].add(p.digit)
        return any(len(digits) >= least for digits in served.values()) if readers else None

    return ask


def _predicts_errors(seed: Studied) -> bool | None:
    alike = seed.agreement.of(ALGORITHM_1).answer.errors_alike
    return None if alike is None else alike.low >= PREDICTS_ERRORS


def _cascades_fail(seed: Studied) -> bool | None:
    deep = [case for case in seed.risk.cases if case.depth >= CASCADE]
    return any(case.wrong.low >= UNSAFE for case in deep) if deep else None


def _shallow_safe(seed: Studied) -> bool:
    return all(case.wrong.high <= SAFE for case in seed.risk.cases if case.depth < CASCADE)


def _staircase(seed: Studied) -> bool:
    return seed.found.attention is not None and seed.found.attention.staircase == "present"


def _all_carried(seed: Studied) -> bool:
    return seed.found.subtasks is not None and not seed.found.subtasks.missing


def _agrees(seed: Studied) -> bool:
    return seed.agreement.of(ALGORITHM_1).answer.agreement.low >= PREDICTS_ANSWERS


STAIRCASE, CASCADES_FAIL = "double staircase", "cascades fail"
AGREES = f"agrees with Algorithm 1 on {brief(PREDICTS_ANSWERS)} of answers"
ERRORS_PREDICTED = f"Algorithm 1 predicts {brief(PREDICTS_ERRORS)} of errors"
"""Properties that the statement about a sweep names."""

PROPERTIES: dict[str, Ask] = {
    STAIRCASE: _staircase,
    "a head reads its own column": lambda seed: bool(_readers(seed, 0)),
    "a head reads the column one below": lambda seed: bool(_readers(seed, 1)),
    "a head reads the column two below": lambda seed: bool(_readers(seed, 2)),
    "the head on its own column carries BA": _carries(("BA",), 0),
    "the head one below carries that column's carry": _carries(CARRY, 1),
    "the head two below carries that column's carry": _carries(CARRY, 2),
    "every sub-task of Algorithm 1 is carried": _all_carried,
    AGREES: _agrees,
    ERRORS_PREDICTED: _predicts_errors,
    "digits with at most one nine below are safe": _shallow_safe,
    CASCADES_FAIL: _cascades_fail,
}
"""Properties by name. Thresholds are those of the verdicts on a single run."""

AGREEMENT = "answers that match Algorithm 1"
ALIKE = "errors that match Algorithm 1"
LOSSES = ("held-out loss", "loss of the last 100 steps")
"""The numbers that are losses; the others are shares."""


def _numbers(seed: Studied) -> dict[str, float]:
    stated = seed.agreement.of(ALGORITHM_1).answer
    return {
        LOSSES[0]: seed.summary.held_out_loss.estimate,
        LOSSES[1]: seed.summary.last_steps_loss,
        "wrong answers": seed.risk.teacher_forced.estimate,
        AGREEMENT: stated.agreement.estimate,
        **({ALIKE: stated.errors_alike.estimate} if stated.errors_alike else {}),
        **{f"wrong: {look_ahead(one)}": one.wrong.estimate for one in pooled(seed.risk)},
    }


def pooled(risk: RiskFinding) -> list[CaseRisk]:
    """Wrong digits by look-ahead, answer digits at all places together."""
    return [CaseRisk.pooled(group) for group in by_look_ahead(risk.cases).values()]


def look_ahead(case: CaseRisk) -> str:
    """The look-ahead in words."""
    nines = {0: "no nine", 1: "1 nine"}.get(case.depth, f"{case.depth} nines")
    return f"{nines}, {'carrying' if case.carrying else 'quiet'}"
