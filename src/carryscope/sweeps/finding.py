"""What a sweep found: is the algorithm the same in all seeds?

In: the shelves of its seeds. Out: `Sweep`, kept as JSON. The number of a head means nothing between
seeds, so heads are named by the column they read. Each property has the share of seeds that have
it, with a Wilson interval: it is about other seeds of the same recipe. What was found about one
seed is in its run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from carryscope.core.evidence import Share
from carryscope.core.machine import machine
from carryscope.core.words import between, brief, percent
from carryscope.dissection.attention import AttentionFinding, HeadRole
from carryscope.dissection.subtasks import SubtasksFinding
from carryscope.report.shelf import Shelf
from carryscope.training.config import RunConfig
from carryscope.verification.agreement import Agreement, AgreementFinding
from carryscope.verification.algorithms import ALGORITHM_1
from carryscope.verification.faithfulness import PREDICTS_ANSWERS, PREDICTS_ERRORS
from carryscope.verification.risk import RiskFinding
from carryscope.verification.risk_verdict import SAFE, UNSAFE
from carryscope.version import __version__

SWEEP_FILE = Path("sweep.json")

NO_WINNER = "no clear winner"
"""In place of the algorithm that agrees best, where the runner-up may agree as well."""

MOST = 0.5
"""A head has a sub-task if it carries it for at least half of the answer digits that need it."""

CASCADE = 2
"""A carry through this many nines or more is a cascade."""

CARRY = ("makes", "state")
"""Sub-tasks that give a column's carry."""


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """Many seeds of one recipe."""

    package_version: str
    machine: str
    """Where it was summarised."""
    recipe: RunConfig
    """What all runs have in common; its own seed does not matter."""
    seeds: list[int]
    failures: dict[int, str]
    """Seeds that failed, and why."""
    properties: dict[str, Share]
    """For each of `PROPERTIES`, the share of the seeds to which it applies."""
    statement: str

    @property
    def finished(self) -> int:
        """How many seeds did not fail."""
        return len(self.seeds) - len(self.failures)


class Studied(NamedTuple):
    """The findings of a finished seed."""

    digits: int
    attention: AttentionFinding
    subtasks: SubtasksFinding
    risk: RiskFinding
    agreement: AgreementFinding

    @classmethod
    def of(cls, shelf: Shelf) -> Studied:
        """Those of a run that was studied to its end."""
        assert shelf.dissection is not None
        found, digits = shelf.dissection, shelf.config.model.digits
        assert found.attention is not None
        assert found.subtasks is not None
        assert shelf.risk is not None
        assert shelf.faithfulness is not None
        return cls(
            digits, found.attention, found.subtasks, shelf.risk, shelf.faithfulness.agreement
        )

    @property
    def stated(self) -> Agreement:
        """How well Algorithm 1 predicts its answers."""
        return self.agreement.of(ALGORITHM_1).answer


def roles_read(attention: AttentionFinding) -> str:
    """What the heads read: own column first, those without a staircase last."""
    deep = len({head.layer for head in attention.heads}) > 1
    heads = sorted(attention.heads, key=lambda h: (h.layer, h.role is None, h.offset, h.head))
    return ", ".join(f"{f'L{h.layer} ' * deep}{h.role or 'no staircase'}" for h in heads)


def best_algorithm(found: AgreementFinding) -> str:
    """The stated algorithm that clearly agrees best."""
    if found.difference is not None and found.difference.low <= 0:
        return NO_WINNER
    best = found.best or "none"
    return ALGORITHM_1 if best == found.of(ALGORITHM_1).same_as else best


def _readers(below: int, seed: Studied) -> list[HeadRole]:
    """The heads that read the column so far below."""
    heads = seed.attention.heads
    return [head for head in heads if head.role is not None and head.offset == below]


def _carries(kinds: tuple[str, ...], below: int, seed: Studied) -> bool | None:
    """Whether a head that reads a column so far below carries one of these sub-tasks of it."""
    readers, names = _readers(below, seed), seed.risk.asked.subtasks
    named = {getattr(names, kind, kind) for kind in kinds}
    least = max(1.0, MOST * (seed.digits + (below > 0) - below))
    served: dict[tuple[int, int], set[str]] = {(h.layer, h.head): set() for h in readers}
    for p in seed.subtasks.purposes:
        alone = (p.layer, p.heads[0]) if len(p.heads) == 1 else None
        place = min(int(p.digit[1:]), seed.digits)  # a sign stands where A_n does
        if alone in served and p.kind in named and place - p.column == below:
            served[alone].add(p.digit)
    return any(len(digits) >= least for digits in served.values()) if readers else None


def _predicts_errors(seed: Studied) -> bool | None:
    alike = seed.stated.errors_alike
    return None if alike is None else alike.low >= PREDICTS_ERRORS


def _cascades_fail(seed: Studied) -> bool | None:
    deep = [case for case in seed.risk.cases if case.depth >= CASCADE]
    return any(case.wrong.low >= UNSAFE for case in deep) if deep else None


def _shallow_safe(seed: Studied) -> bool:
    return all(case.wrong.high <= SAFE for case in seed.risk.cases if case.depth < CASCADE)


PROPERTIES: dict[str, Callable[[Studied], bool | None]] = {
    "double staircase": lambda seed: seed.attention.staircase == "present",
    "a head reads its own column": lambda seed: bool(_readers(0, seed)),
    "a head reads the column one below": lambda seed: bool(_readers(1, seed)),
    "a head reads the column two below": lambda seed: bool(_readers(2, seed)),
    "the head on its own column carries its base value": partial(_carries, ("base",), 0),
    "the head one below carries that column's carry": partial(_carries, CARRY, 1),
    "the head two below carries that column's carry": partial(_carries, CARRY, 2),
    "every sub-task of Algorithm 1 is carried": lambda seed: not seed.subtasks.missing,
    f"agrees with Algorithm 1 on {brief(PREDICTS_ANSWERS)} of answers": lambda seed: (
        seed.stated.agreement.low >= PREDICTS_ANSWERS
    ),
    f"Algorithm 1 predicts {brief(PREDICTS_ERRORS)} of errors": _predicts_errors,
    "digits with at most one passing column below are safe": _shallow_safe,
    "cascades fail": _cascades_fail,
}
"""Properties by name; null where one does not apply. Thresholds are those of the verdicts on a
single run."""


def summarised(
    recipe: RunConfig, seeds: Sequence[int], shelves: Sequence[Shelf], failures: dict[int, str]
) -> Sweep:
    """The seeds of a recipe, summarised; `shelves` are those of the finished ones."""
    found = [Studied.of(shelf) for shelf in shelves]
    answers = {name: [holds(seed) for seed in found] for name, holds in PROPERTIES.items()}
    held = {
        name: Share.measured(given.count(True), len(given) - given.count(None))
        for name, given in answers.items()
    }
    return Sweep(
        package_version=__version__,
        machine=machine(),
        recipe=recipe,
        seeds=list(seeds),
        failures=failures,
        properties=held,
        statement=_statement(found) if found else "No seed was finished.",
    )


def _statement(found: Sequence[Studied]) -> str:
    """How often they fail, and what most of them read."""
    wrong = [seed.risk.teacher_forced.estimate for seed in found]
    roles, count = Counter(roles_read(seed.attention) for seed in found).most_common(1)[0]
    alike = Share.measured(count, len(found))
    return (
        f"{percent(median(wrong))} of answers are wrong in the median over the seeds "
        f"({percent(min(wrong))} to {percent(max(wrong))}). "
        f"In {count} of {len(found)} seeds ({between(alike)}) the heads read: {roles}."
    )
