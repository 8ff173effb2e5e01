"""What a sweep keeps of one seed.

In: a run with its findings. Out: `SeedFinding`, what they say about the algorithm it learnt, in a
form that can be compared between seeds. The number of a head means nothing between seeds, so heads
are named by the column they read.
"""

from __future__ import annotations

import msgspec

from carryscope.core.evidence import Mean, Share
from carryscope.dissection.attention import AttentionFinding
from carryscope.dissection.purposes import Purpose, SubtasksFinding
from carryscope.run import Run
from carryscope.verification.algorithms import ALGORITHM_1
from carryscope.verification.cases import CaseRisk, by_look_ahead
from carryscope.verification.estimate import Rate
from carryscope.verification.faithfulness import FaithfulnessFinding
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
    sharpness: float
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


class SeedFit(msgspec.Struct, frozen=True, kw_only=True):
    """How well Algorithm 1 predicts the model."""

    agreement: Rate
    """Share of all questions in which both give the same whole answer."""
    errors_alike: WeightedShare | None
    """Where either is wrong: the share in which both give the same. Null if neither ever is."""
    inside: Share
    """Answer digits that stay when everything is swapped that Algorithm 1 calls irrelevant."""
    best: str | None
    """The stated algorithm that agrees best. One that always answers as Algorithm 1 does goes by
    that name."""
    clear_lead: bool | None
    """Whether it agrees better than the runner-up, interval included; null without one."""
    best_on_errors: str | None


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


def _heads(attention: AttentionFinding, subtasks: SubtasksFinding) -> list[SeedHead]:
    heads = [
        SeedHead(
            layer=role.layer,
            head=role.head,
            offset=role.offset,
            role=role.role,
            sharpness=role.sharpness,
            carries=_carried(
                [p for p in subtasks.purposes if (p.layer, p.heads) == (role.layer, [role.head])]
            ),
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


def _fit(found: FaithfulnessFinding) -> SeedFit:
    stated = found.agreement.of(ALGORITHM_1)
    same, gap = stated.same_as, found.agreement.difference

    def named(name: str | None) -> str | None:
        return ALGORITHM_1 if name is not None and name == same else name

    return SeedFit(
        agreement=stated.answer.agreement,
        errors_alike=stated.answer.errors_alike,
        inside=next(one for one in found.inside if one.name == ALGORITHM_1).joint.overall,
        best=named(found.agreement.best),
        clear_lead=gap.low > 0 if gap is not None else None,
        best_on_errors=named(found.agreement.best_on_errors),
    )
