"""Claims that one run cannot decide: many seeds, and models without an MLP or with a new one.

In: a sweep over seeds, the study of the MLP. Out: checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from carryscope.core.evidence import Share
from carryscope.sweeps.finding import Sweep
from carryscope.sweeps.seeds import SeedFinding
from carryscope.verification.risk_verdict import UNSAFE
from paper.claims.claims import Check, Claim, Number
from paper.claims.numbers import loss, share
from paper.claims.reading import NotMeasured, Studies, reproduce
from paper.mlp.finding import (
    AS_GOOD,
    BASE,
    FRESH_MLP,
    NO_MLP,
    UNTRAINED_ATTENTION,
    Subject,
)

OURS, PAPERS, LONGER = "fast-5", "paper-5", "paper-5-long"
"""The recipes whose seeds are compared: ours, and the paper's after the 5,000 steps of its tables
and after the 28,125 of its text."""

SWEEP = "carryscope sweep --preset {} --seeds 0..15 --out runs/reproduce/{}"
"""The command that makes the seeds of a recipe."""

ENOUGH_SEEDS = 4
"""Of fewer, not even all could be shown to be most: the interval of 3 of 3 begins at 44 %."""

READ = (0, 1, 2)
"""The columns that Algorithm 1 reads for a digit, counted downwards from its own."""


def same_across_seeds(claim: Claim, studies: Studies) -> list[Check]:
    """Every seed reads the three columns, carries all sub-tasks, and fails alike.

    Seeds whose questions are too short for a cascade do not count.
    """
    ours, papers, longer = (_seeds(studies, recipe) for recipe in (OURS, PAPERS, LONGER))
    if ours is None:
        command = SWEEP.format(OURS, "seeds")
        raise NotMeasured(f"there is no sweep over seeds of {OURS}", command)
    if papers is None:
        own = Check(what=f"it is so by {PAPERS} (not measured)", holds=False, numbers=[])
        return [own, *_alike(ours)]
    after_more_steps = _alike(longer, most="core") if longer else []
    return [*_alike(papers, most="core"), *after_more_steps, *_alike(ours)]


def _seeds(studies: Studies, recipe: str) -> Sweep | None:
    """The sweep over seeds of a recipe, if it has enough of them."""
    sweep = studies.seeds_of(recipe)
    return sweep if sweep is not None and len(sweep.results) >= ENOUGH_SEEDS else None


def _alike(sweep: Sweep, *, most: Literal["part", "core"] = "part") -> list[Check]:
    """Whether the seeds of one recipe are alike in what Algorithm 1 says of them.

    `most` is the role of the checks about most seeds; the others are about all. A seed that failed
    counts against them.
    """
    seeds, recipe = sweep.results, sweep.recipe.preset
    known = {found.name: found.share for found in sweep.properties}
    shares = {
        "heads read each of the three columns": _share(seeds),
        "every sub-task of Algorithm 1 is carried": known[
            "every sub-task of Algorithm 1 is carried"
        ],
        (
            f"some cascades are wrong in over {UNSAFE:.0%}, and carries through one nine in less"
        ): _fail_alike(seeds),
    }
    checks = []
    for what, done in shares.items():
        if not done.of:
            continue
        found = Share.measured(done.count, done.of + len(sweep.failures))
        number = share(f"seeds of {recipe} in which {what}", None, found, of_what="seeds")
        checks += [
            Check(
                what=f"in most seeds of {recipe} {what}",
                holds=found.low > 0.5,
                numbers=[number],
                role=most,
            ),
            Check(
                what=f"in every seed of {recipe} {what}",
                holds=found.count == found.of,
                numbers=[number],
            ),
        ]
    return checks


def _share(seeds: Sequence[SeedFinding]) -> Share:
    """The seeds in which some head reads each of the columns."""
    reading = [{head.offset for head in s.heads if head.role is not None} for s in seeds]
    return Share.measured(sum(set(READ) <= found for found in reading), len(seeds))


def _fail_alike(seeds: Sequence[SeedFinding]) -> Share:
    """The seeds that do simple US9 and no cascades, of those that have cascades."""
    all_wrong = [
        {
            cascade: [d.wrong for d in seed.depths if d.carrying and (d.depth >= 2) == cascade]
            for cascade in (False, True)
        }
        for seed in seeds
    ]
    having = [wrong for wrong in all_wrong if wrong[True]]
    alike = [
        all(w.high < UNSAFE for w in wrong[False]) and any(w.low > UNSAFE for w in wrong[True])
        for wrong in having
    ]
    return Share.measured(sum(alike), len(having))


def mlp_study(claim: Claim, studies: Studies) -> list[Check]:
    """Without an MLP it does not add; on trained attention a new MLP learns to, again."""
    if studies.mlp is None:
        raise NotMeasured("the study of the MLP was not run", reproduce("mlp-study"))
    found = {subject.name: subject for subject in studies.mlp.subjects}
    base, without = found[BASE], found[NO_MLP]
    fresh, control = found[FRESH_MLP], found[UNTRAINED_ATTENTION]
    then, now = base.loss_at(without.steps), without.loss_at(without.steps)
    return [
        Check(
            what=f"without an MLP the loss is more than {AS_GOOD} times as high",
            holds=without.held_out_loss.low > AS_GOOD * base.held_out_loss.high,
            numbers=[_loss(base), _loss(without)],
            role="core",
        ),
        Check(
            what="so it is at the same step of both trainings",
            holds=now is not None and then is not None and now > AS_GOOD * then,
            numbers=[_training_loss(base, then), _training_loss(without, now)],
        ),
        Check(
            what=f"a new MLP on the trained attention comes within {AS_GOOD} times the loss of the "
            "first",
            holds=fresh.held_out_loss.high < AS_GOOD * base.held_out_loss.high,
            numbers=[_loss(base), _loss(fresh)],
        ),
        Check(
            what="on untrained attention it does not",
            holds=control.held_out_loss.low > AS_GOOD * base.held_out_loss.high,
            numbers=[_loss(base), _loss(control)],
        ),
    ]


def _loss(subject: Subject) -> Number:
    found = loss(f"held-out loss, {subject.name}", None, subject.held_out_loss)
    return msgspec.structs.replace(found, run=subject.name)


def _training_loss(subject: Subject, value: float | None) -> Number:
    what = f"training loss, {subject.name}"
    return Number(what=what, run=subject.name, kind="loss", estimate=value)
