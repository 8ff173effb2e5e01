"""What is compared between seeds: properties that a seed has or lacks, and numbers.

In: the finding of one seed. Out: yes, no or a number; null where it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable

from carryscope.sweeps.seeds import SeedFinding, SeedHead
from carryscope.verification.algorithms import ALGORITHM_1
from carryscope.verification.faithfulness import PREDICTS_ANSWERS, PREDICTS_ERRORS
from carryscope.verification.risk_verdict import SAFE, UNSAFE

MOST = 0.5
"""A head has a sub-task if it carries it for at least half of the answer digits that need it."""

CASCADE = 2
"""A carry through this many nines or more is a cascade."""

BASE, CARRY = ("BA",), ("MC1", "state")
"""Sub-tasks that give a column's digit without its carry, and those that give its carry."""

Ask = Callable[[SeedFinding, int], bool | None]
"""Whether a seed, of so many digits, has a property; null if that does not apply."""


def _reads(offset: int) -> Ask:
    return lambda seed, _: any(h.role is not None and h.offset == offset for h in seed.heads)


def _carries(kinds: tuple[str, ...], below: int) -> Ask:
    """Whether a head that reads a column so far below carries one of these sub-tasks of it."""

    def ask(seed: SeedFinding, digits: int) -> bool | None:
        readers = [h for h in seed.heads if h.role is not None and h.offset == below]
        if not readers:
            return None
        return any(_has_task(head, kinds, below, digits) for head in readers)

    return ask


def _has_task(head: SeedHead, kinds: tuple[str, ...], below: int, digits: int) -> bool:
    served = {
        digit for c in head.carries if c.kind in kinds and c.below == below for digit in c.digits
    }
    having = digits if below == 0 else digits + 1 - below
    return len(served) >= max(1.0, MOST * having)


def _predicts_errors(seed: SeedFinding, _: int) -> bool | None:
    alike = seed.algorithm.errors_alike
    return None if alike is None else alike.low >= PREDICTS_ERRORS


def _predicts_errors_best(seed: SeedFinding, _: int) -> bool | None:
    fit = seed.algorithm
    return None if fit.errors_alike is None else fit.best_on_errors == ALGORITHM_1


def _cascades_fail(seed: SeedFinding, _: int) -> bool | None:
    deep = [d for d in seed.depths if d.depth >= CASCADE]
    return any(d.some_above >= UNSAFE for d in deep) if deep else None


def _shallow_safe(seed: SeedFinding, _: int) -> bool:
    return all(d.all_below <= SAFE for d in seed.depths if d.depth < CASCADE)


STAIRCASE, CASCADES_FAIL = "double staircase", "cascades fail"
AGREES = f"agrees with Algorithm 1 on {PREDICTS_ANSWERS:.0%} of answers"
ERRORS_PREDICTED = f"Algorithm 1 predicts {PREDICTS_ERRORS:.0%} of errors"
"""Properties that the statement about a sweep names."""

PROPERTIES: dict[str, Ask] = {
    STAIRCASE: lambda seed, _: seed.staircase == "present",
    "a head reads its own column": _reads(0),
    "a head reads the column one below": _reads(1),
    "a head reads the column two below": _reads(2),
    "the head on its own column carries BA": _carries(BASE, 0),
    "the head one below carries that column's carry": _carries(CARRY, 1),
    "the head two below carries that column's carry": _carries(CARRY, 2),
    "every sub-task of Algorithm 1 is carried": lambda seed, _: not seed.missing,
    AGREES: lambda seed, _: seed.algorithm.agreement.low >= PREDICTS_ANSWERS,
    ERRORS_PREDICTED: _predicts_errors,
    "Algorithm 1 agrees best": lambda seed, _: (
        seed.algorithm.best == ALGORITHM_1 and seed.algorithm.clear_lead is not False
    ),
    "Algorithm 1 predicts its errors best": _predicts_errors_best,
    "digits with at most one nine below are safe": _shallow_safe,
    CASCADES_FAIL: _cascades_fail,
}
"""Properties by name. Thresholds are those of the verdicts on a single run."""


AGREEMENT = "answers that match Algorithm 1"

NUMBERS: dict[str, Callable[[SeedFinding], float | None]] = {
    "held-out loss": lambda seed: seed.held_out_loss.estimate,
    "loss of the last 100 steps": lambda seed: seed.last_steps_loss,
    "wrong answers": lambda seed: seed.failure.estimate,
    AGREEMENT: lambda seed: seed.algorithm.agreement.estimate,
    "errors that match Algorithm 1": lambda seed: (
        seed.algorithm.errors_alike.estimate if seed.algorithm.errors_alike else None
    ),
    "digits kept under Algorithm 1's swaps": lambda seed: (
        seed.algorithm.inside.estimate if seed.algorithm.inside.of else None
    ),
}
"""Numbers by name."""

LOSSES = frozenset({"held-out loss", "loss of the last 100 steps"})
"""The numbers that are losses; the others are shares."""
