"""The paper's claims as statements about draws, and the rule that gives each its verdict.

In: `claims.json`, frozen before the draws were trained, and the records of draws. Out: `Judged`.

A claim names an estimand. It holds in a draw whose number satisfies the rule. The verdict is about
the share of fresh draws in which it holds: *replicated* if that is surely more than half,
*contradicted* if surely less, else *mixed*. Both are one-sided exact tests, adjusted for the number
of claims (Holm): the chance of any false "replicated" is at most 5 %, and so is that of any false
"contradicted". A claim that untrained models satisfy as well is *vacuous*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from operator import eq, ge, gt, le, lt
from pathlib import Path
from typing import Literal

import msgspec
from scipy.stats import binom  # type: ignore[import-untyped]

from carryscope.core.evidence import Share
from carryscope.core.storage import read_json
from carryscope.training.presets import preset

CLAIMS_FILE = Path(__file__).with_name("claims.json")

RULES = {"above": gt, "at least": ge, "below": lt, "at most": le, "equal to": eq}

LEVEL = 0.05
"""The chance of a false verdict among all claims, in either direction."""

NEXT_SEED, NEXT_SHORTER = "the next seed", "the next shorter"
"""What a draw is compared with: another draw of the recipe, or the same seed with fewer digits."""

SHORTER = {"paper-10": "paper-5", "paper-15": "paper-10"}


class Verdict(StrEnum):
    """The verdict on a claim."""

    REPLICATED = "replicated"
    CONTRADICTED = "contradicted"
    MIXED = "mixed"
    VACUOUS = "vacuous"
    """True of any one-layer model, trained or not."""
    OPEN = "not decidable here"
    """Too few draws: even all of them alike would not decide it."""


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One claim of the paper."""

    id: str
    title: str
    where: str
    """Section, table or figure, as a reader counts them."""
    label: str
    """The nearest label of the LaTeX source."""
    sentence: str
    """What the paper says."""
    recipes: list[str]
    """The recipes whose draws it is judged on."""
    against: str = ""
    """What each draw is compared with, if the estimand is a difference between two draws."""
    estimand: str
    measures: str
    """The estimand in words."""
    rule: Literal["above", "at least", "below", "at most", "equal to"]
    limit: float
    any_one_layer: bool = False
    """Whether it follows from the architecture; untrained models must show it."""

    def satisfied(self, value: float | None) -> bool:
        """Whether a number satisfies the rule; one that is missing does not."""
        return value is not None and bool(RULES[self.rule](value, self.limit))


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The file."""

    about: str
    seeds: dict[str, list[int]]
    """The fresh seeds of each recipe."""
    claims: list[Claim]


@cache
def frozen() -> Claims:
    """The claims and the seeds they are judged on."""
    return read_json(CLAIMS_FILE, Claims)


def authors_seed(recipe: str) -> int:
    """The seed of the authors' own draw."""
    return preset(recipe).training.seed


def estimands_of(recipe: str) -> set[str]:
    """The numbers that claims need of the draws of a recipe."""
    return {c.estimand for c in frozen().claims if recipe in {*c.recipes, *compared_with(c)}}


def compared_with(claim: Claim) -> set[str]:
    """The recipes of the draws that those of a claim are compared with."""
    if claim.against == NEXT_SHORTER:
        return {SHORTER[recipe] for recipe in claim.recipes}
    return set() if claim.against in ("", NEXT_SEED) else {claim.against}


class DrawRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One training of a recipe: all that it takes to judge the claims again."""

    package_version: str
    weights_sha256: str
    machine: str
    recipe: str
    """The name of its preset."""
    seed: int
    steps: int
    heads: list[str]
    """What each head reads, `own column` first; `no column` if it has no staircase."""
    held_out_loss: float
    numbers: dict[str, float | None]
    """By estimand. Null if the draw has none, such as no head of a role."""
    untrained: dict[str, float | None] = {}
    """The same for the initial weights of the draw, where a claim is true of any model."""
    printed: dict[str, list[float]] = {}
    """By quantity that the paper prints: its value, or that of each of the last 100 batches."""


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """The number of one draw, or of a pair of draws."""

    recipe: str
    seed: int
    value: float | None
    columns: int
    """How many columns the draw's heads read: its circuit in a word."""
    holds: bool


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A claim, the numbers of all draws, and the verdict."""

    claim: Claim
    verdict: Verdict
    fresh: list[Value]
    authors: list[Value]
    """The authors' own draws. They are shown and do not count."""
    untrained: Share
    """Untrained models that satisfy the rule, of those tested."""

    @property
    def share(self) -> Share:
        """The fresh draws in which it holds."""
        return Share.measured(sum(value.holds for value in self.fresh), len(self.fresh))

    @property
    def complete(self) -> bool:
        """Whether all planned draws are in. Before that a verdict can still change."""
        return len(self.fresh) == planned(self.claim)

    @property
    def in_words(self) -> str:
        """The verdict, with what a reader must know as long as it can change."""
        final = self.complete or self.verdict in (Verdict.OPEN, Verdict.VACUOUS)
        return self.verdict if final else f"{self.verdict} so far"


Draws = Mapping[tuple[str, int], DrawRecord]
"""Records by recipe and seed."""


def judge(records: Sequence[DrawRecord]) -> list[Judged]:
    """Every claim, judged on the draws that are there."""
    draws = {(record.recipe, record.seed): record for record in records}
    seeds = frozen().seeds
    found = [
        Judged(
            claim=claim,
            verdict=Verdict.OPEN,
            fresh=list(_values(claim, draws, seeds)),
            authors=list(_values(claim, draws, {r: [authors_seed(r)] for r in claim.recipes})),
            untrained=_untrained(claim, draws),
        )
        for claim in frozen().claims
    ]
    tested = [one for one in found if not one.claim.any_one_layer]
    verdicts = {one.claim.id: _architecture(one) for one in found if one.claim.any_one_layer}
    verdicts |= _tested(tested)
    return [msgspec.structs.replace(one, verdict=verdicts[one.claim.id]) for one in found]


def _values(claim: Claim, draws: Draws, seeds: Mapping[str, Sequence[int]]) -> Iterator[Value]:
    """The number of each draw of the claim that is there, or of each pair of draws."""
    for recipe in claim.recipes:
        for seed, partner in _pairs(claim, recipe, seeds[recipe]):
            one, other = draws.get((recipe, seed)), draws.get(partner)
            if one is None or (claim.against and other is None):
                continue
            value = _difference(claim.estimand, one, other)
            yield Value(
                recipe=recipe,
                seed=seed,
                value=value,
                columns=int(one.numbers["columns_read"] or 0),
                holds=claim.satisfied(value),
            )


def _pairs(
    claim: Claim, recipe: str, seeds: Sequence[int]
) -> Iterator[tuple[int, tuple[str, int]]]:
    """Each seed with the draw that its draw is compared with; without a comparison, no draw."""
    if claim.against == NEXT_SEED:
        for seed, following in zip(seeds[::2], seeds[1::2], strict=False):
            yield seed, (recipe, following)
    else:
        other = SHORTER[recipe] if claim.against == NEXT_SHORTER else claim.against
        yield from ((seed, (other, seed)) for seed in seeds)


def _difference(estimand: str, one: DrawRecord, other: DrawRecord | None) -> float | None:
    """The number of a draw, or how much it differs from another's."""
    value = one.numbers[estimand]
    if value is None or other is None:
        return value
    theirs = other.numbers[estimand]
    return None if theirs is None else value - theirs


def _untrained(claim: Claim, draws: Draws) -> Share:
    """The untrained models, with the initial weights of the draws, that satisfy the rule."""
    values = [
        draw.untrained[claim.estimand]
        for draw in draws.values()
        if draw.recipe in claim.recipes and claim.estimand in draw.untrained
    ]
    return Share.measured(sum(map(claim.satisfied, values)), len(values))


def _architecture(one: Judged) -> Verdict:
    """Vacuous, if every draw and every untrained model shows it."""
    draws, untrained = one.share, one.untrained
    shown = untrained.of > 0 and untrained.count == untrained.of and draws.count == draws.of
    return Verdict.VACUOUS if shown else Verdict.OPEN


def _tested(judged: Sequence[Judged]) -> dict[str, Verdict]:
    """The verdicts of Holm's procedure, in both directions."""
    more, less = (
        holm({one.claim.id: chance(one.share, more=more) for one in judged})
        for more in (True, False)
    )
    return {
        one.claim.id: _verdict(one, more[one.claim.id], less[one.claim.id], len(judged))
        for one in judged
    }


def _verdict(one: Judged, more: float, less: float, claims: int) -> Verdict:
    if more < LEVEL:
        return Verdict.REPLICATED
    if less < LEVEL:
        return Verdict.CONTRADICTED
    unanimous = 0.5 ** len(one.fresh) * claims
    return Verdict.MIXED if one.complete or unanimous < LEVEL else Verdict.OPEN


def planned(claim: Claim) -> int:
    """How many fresh draws, or pairs of them, the claim is to be judged on."""
    draws = sum(len(frozen().seeds[recipe]) for recipe in claim.recipes)
    return draws // 2 if claim.against == NEXT_SEED else draws


def chance(share: Share, *, more: bool) -> float:
    """The chance of so many draws or more (or fewer), if a draw has it with chance one half."""
    count = share.count if more else share.of - share.count
    return float(binom.sf(count - 1, share.of, 0.5))


def holm(chances: Mapping[str, float]) -> dict[str, float]:
    """Chances adjusted for their number by Holm's step-down procedure."""
    adjusted, largest = {}, 0.0
    for place, name in enumerate(sorted(chances, key=lambda name: chances[name])):
        largest = max(largest, min(1.0, (len(chances) - place) * chances[name]))
        adjusted[name] = largest
    return adjusted
