"""What a sweep keeps of one seed, and what it asks of it.

In: a run with its findings. Out: `SeedFinding`, what they say about the algorithm it learnt, in a
form that can be compared between seeds. The number of a head means nothing between seeds, so heads
are named by the column they read. `PROPERTIES` are what a seed has or lacks.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from carryscope.core.evidence import Mean
from carryscope.core.words import brief
from carryscope.dissection.attention import AttentionFinding
from carryscope.dissection.purposes import Purpose, SubtasksFinding
from carryscope.run import Run
from carryscope.verification.algorithms import ALGORITHM_1
from carryscope.verification.cases import CaseRisk, by_look_ahead
from carryscope.verification.estimate import Rate
from carryscope.verification.faithfulness import (
    PREDICTS_ANSWERS,
    PREDICTS_ERRORS,
    FaithfulnessFinding,
)
from carryscope.verification.risk_verdict import SAFE, UNSAFE
from carryscope.verification.stratified import WeightedShare


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """A sub-task that a head carries, and for which answer digits."""

    kind: str
    below: int
    """How many columns below the answer digit."""
    digits: list[str]


class SeedHead(msgspec.Struct, frozen=True, kw_only=True):
    """One head: what it reads, and what it carries alone."""

    layer: int
    head: int
    offset: int
    """How many columns below its answer digit it reads, most often."""
    role: str | None
    """`own column`, `one below`, ...; null if it has no staircase."""
    carries: list[Carried]


class SeedReading(msgspec.Struct, frozen=True, kw_only=True):
    """What one head reads most at one answer row, for a small picture."""

    layer: int
    head: int
    answer: str
    column: int
    share: float


class DepthFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Answer digits of one look-ahead, all places together."""

    depth: int
    carrying: bool
    wrong: Rate
    """The chance that such a digit is wrong, teacher-forced. The ends of the interval are means
    over its places, so it is too wide rather than too narrow."""
    all_below: float
    """At every place the chance is below this: the highest upper end."""
    some_above: float
    """At some place it is above this: the highest lower end."""

    @property
    def text(self) -> str:
        """The look-ahead in words."""
        nines = {0: "no nine", 1: "1 nine"}.get(self.depth, f"{self.depth} nines")
        return f"{nines}, {'carrying' if self.carrying else 'quiet'}"


class SeedFit(msgspec.Struct, frozen=True, kw_only=True):
    """How well Algorithm 1 predicts the model."""

    agreement: Rate
    """Share of all questions in which both give the same whole answer."""
    errors_alike: WeightedShare | None
    """Where either is wrong: the share in which both give the same. Null if neither ever is."""
    best: str | None
    """The stated algorithm that agrees best. One that always answers as Algorithm 1 does goes by
    that name."""
    clear_lead: bool | None
    """Whether it agrees better than the runner-up, interval included; null without one."""


class SeedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of one seed."""

    seed: int
    weights_sha256: str
    held_out_loss: Mean
    last_steps_loss: float
    failure: Rate
    """The chance of a wrong answer over all questions."""
    depths: list[DepthFailure]
    staircase: str
    """`present`, `partial` or `absent`, from the dissection."""
    heads: list[SeedHead]
    """In the order of what they read: own column first, those without a staircase last."""
    readings: list[SeedReading]
    missing: list[str]
    """Sub-tasks of Algorithm 1 that no head was found to carry."""
    algorithm: SeedFit

    @property
    def roles(self) -> str:
        """What the heads read: "own column, one below, two below"."""
        deep = len({head.layer for head in self.heads}) > 1
        return ", ".join(
            f"{f'L{head.layer} ' * deep}{head.role or 'no staircase'}" for head in self.heads
        )

    @property
    def best_algorithm(self) -> str:
        """The stated algorithm that agrees best, if its lead is more than chance."""
        fit = self.algorithm
        return NO_WINNER if fit.clear_lead is False else fit.best or "none"


NO_WINNER = "no clear winner"
"""In place of the algorithm that agrees best, where the runner-up may agree as well."""


def seed_finding(run: Run) -> SeedFinding:
    """What the findings of a finished run say."""
    summary, found, risk = run.training(), run.dissection(), run.risk()
    assert found.attention is not None
    assert found.subtasks is not None
    readings = [
        SeedReading(
            layer=reading.layer,
            head=reading.head,
            answer=reading.answer,
            column=reading.top_column,
            share=round(reading.share.estimate, 4),
        )
        for reading in found.attention.readings
    ]
    return SeedFinding(
        seed=summary.seed,
        weights_sha256=found.weights_sha256,
        held_out_loss=summary.held_out_loss,
        last_steps_loss=summary.last_steps_loss,
        failure=risk.teacher_forced,
        depths=by_depth(risk.cases),
        staircase=found.attention.staircase,
        heads=_heads(found.attention, found.subtasks),
        readings=readings,
        missing=found.subtasks.missing,
        algorithm=_fit(run.faithfulness()),
    )


def by_depth(cases: list[CaseRisk]) -> list[DepthFailure]:
    """Failures by look-ahead, averaged over places by their probabilities."""
    return [
        DepthFailure(
            depth=depth,
            carrying=carrying,
            wrong=CaseRisk.pooled(group).wrong,
            all_below=max(case.wrong.high for case in group),
            some_above=max(case.wrong.low for case in group),
        )
        for (depth, carrying), group in by_look_ahead(cases).items()
    ]


def _heads(attention: AttentionFinding, subtasks: SubtasksFinding) -> list[SeedHead]:
    alone: dict[tuple[int, int], list[Purpose]] = {}
    for purpose in subtasks.purposes:
        if len(purpose.heads) == 1:
            alone.setdefault((purpose.layer, purpose.heads[0]), []).append(purpose)
    heads = [
        SeedHead(
            layer=role.layer,
            head=role.head,
            offset=role.offset,
            role=role.role,
            carries=_carried(alone.get((role.layer, role.head), [])),
        )
        for role in attention.heads
    ]
    return sorted(heads, key=lambda h: (h.layer, h.role is None, h.offset, h.head))


def _carried(purposes: list[Purpose]) -> list[Carried]:
    """The purposes of one head, grouped by what it carries."""
    digits: dict[tuple[str, int], list[str]] = {}
    for p in purposes:
        digits.setdefault((p.kind, int(p.digit[1:]) - p.column), []).append(p.digit)
    carried = [Carried(kind=k, below=below, digits=at) for (k, below), at in digits.items()]
    return sorted(carried, key=lambda c: (-len(c.digits), c.below, c.kind))


def _fit(found: FaithfulnessFinding) -> SeedFit:
    stated, best = found.agreement.of(ALGORITHM_1), found.agreement.best
    gap = found.agreement.difference
    return SeedFit(
        agreement=stated.answer.agreement,
        errors_alike=stated.answer.errors_alike,
        best=ALGORITHM_1 if best is not None and best == stated.same_as else best,
        clear_lead=gap.low > 0 if gap is not None else None,
    )


MOST = 0.5
"""A head has a sub-task if it carries it for at least half of the answer digits that need it."""

CASCADE = 2
"""A carry through this many nines or more is a cascade."""

CARRY = ("MC1", "state")
"""Sub-tasks that give a column's carry."""

Ask = Callable[[SeedFinding, int], bool | None]
"""Whether a seed, of so many digits, has a property; null if that does not apply."""


def _readers(seed: SeedFinding, below: int) -> list[SeedHead]:
    """The heads that read the column so far below."""
    return [head for head in seed.heads if head.role is not None and head.offset == below]


def _carries(kinds: tuple[str, ...], below: int) -> Ask:
    """Whether a head that reads a column so far below carries one of these sub-tasks of it."""

    def ask(seed: SeedFinding, digits: int) -> bool | None:
        least = max(1.0, MOST * (digits + (below > 0) - below))
        readers = _readers(seed, below)
        served = [
            {d for c in head.carries if c.kind in kinds and c.below == below for d in c.digits}
            for head in readers
        ]
        return any(len(digits) >= least for digits in served) if readers else None

    return ask


def _predicts_errors(seed: SeedFinding, _: int) -> bool | None:
    alike = seed.algorithm.errors_alike
    return None if alike is None else alike.low >= PREDICTS_ERRORS


def _cascades_fail(seed: SeedFinding, _: int) -> bool | None:
    deep = [d for d in seed.depths if d.depth >= CASCADE]
    return any(d.some_above >= UNSAFE for d in deep) if deep else None


def _shallow_safe(seed: SeedFinding, _: int) -> bool:
    return all(d.all_below <= SAFE for d in seed.depths if d.depth < CASCADE)


STAIRCASE, CASCADES_FAIL = "double staircase", "cascades fail"
AGREES = f"agrees with Algorithm 1 on {brief(PREDICTS_ANSWERS)} of answers"
ERRORS_PREDICTED = f"Algorithm 1 predicts {brief(PREDICTS_ERRORS)} of errors"
"""Properties that the statement about a sweep names."""

PROPERTIES: dict[str, Ask] = {
    STAIRCASE: lambda seed, _: seed.staircase == "present",
    "a head reads its own column": lambda seed, _: bool(_readers(seed, 0)),
    "a head reads the column one below": lambda seed, _: bool(_readers(seed, 1)),
    "a head reads the column two below": lambda seed, _: bool(_readers(seed, 2)),
    "the head on its own column carries BA": _carries(("BA",), 0),
    "the head one below carries that column's carry": _carries(CARRY, 1),
    "the head two below carries that column's carry": _carries(CARRY, 2),
    "every sub-task of Algorithm 1 is carried": lambda seed, _: not seed.missing,
    AGREES: lambda seed, _: seed.algorithm.agreement.low >= PREDICTS_ANSWERS,
    ERRORS_PREDICTED: _predicts_errors,
    "digits with at most one nine below are safe": _shallow_safe,
    CASCADES_FAIL: _cascades_fail,
}
"""Properties by name. Thresholds are those of the verdicts on a single run."""

AGREEMENT = "answers that match Algorithm 1"
LOSSES = ("held-out loss", "loss of the last 100 steps")
"""The numbers that are losses; the others are shares."""


def numbers(seed: SeedFinding) -> dict[str, float]:
    """The numbers of a seed by name, then its wrong digits by look-ahead."""
    alike = seed.algorithm.errors_alike
    return {
        LOSSES[0]: seed.held_out_loss.estimate,
        LOSSES[1]: seed.last_steps_loss,
        "wrong answers": seed.failure.estimate,
        AGREEMENT: seed.algorithm.agreement.estimate,
        **({"errors that match Algorithm 1": alike.estimate} if alike else {}),
        **{f"wrong: {one.text}": one.wrong.estimate for one in seed.depths},
    }
