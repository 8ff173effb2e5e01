"""The paper's claims as data, what is measured of each, and the rule that gives the verdict.

In: `claims.json`, written by hand from the paper, and checks that a measure made. Out: `Judged`.

A claim is broken into checks, each a sentence that numbers can bear out or not. It *holds* if
all of its checks do, *in part* if some do, *not* if none does, or if a check fails with which
the claim falls. A claim that an untrained model of the same shape fulfils as well *holds for any
one-layer model*; one whose premise fails *cannot be asked*. Nothing here knows a result:
tolerances stand in the claims file, with their reasons.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from carryscope.core.storage import read_json
from carryscope.core.words import percent, with_interval
from carryscope.report.paper import paper_values
from carryscope.verification.estimate import Rate

CLAIMS_FILE = Path(__file__).with_name("claims.json")

SMALLEST_LOSS = 1e-6
"""Losses below this are not told apart."""

TOLD_AT_MOST = 2
"""Checks that a reason tells; the page has all of them."""


class Verdict(StrEnum):
    """What became of a claim."""

    HOLDS = "holds"
    PART = "holds in part"
    FAILS = "does not hold"
    ANY = "holds for any one-layer model"
    """Trained or not: it follows from the architecture and says nothing about the model."""
    MOOT = "cannot be asked"
    """Its premise fails: that cascades fail says nothing of a model that cannot add."""
    UNMEASURED = "not measured"


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One claim of the paper."""

    id: str
    title: str
    where: str
    """Section, table or figure, as a reader counts them."""
    label: str
    """The nearest label of the LaTeX source; not every section has one."""
    statement: str
    """What the paper says, in our words."""
    paper: list[str] = []
    """Its figures, by their ids in the file of the paper's values."""
    runs: list[str] = []
    """The models it is about, by the name of their run. None: it can be counted out."""
    how: str
    """How it is measured here."""
    measure: str
    tolerance: str
    because: str
    """Why just this tolerance; never that it fits."""
    leaves_open: bool = False
    """Whether it is a question that the paper leaves open, rather than a claim of it."""
    changed: str = ""
    """How the rule was changed after a result had been seen, and what it would say unchanged."""


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The file."""

    claims: list[Claim]


@cache
def load_claims() -> tuple[Claim, ...]:
    """All claims, in the order of the page."""
    return tuple(read_json(CLAIMS_FILE, Claims).claims)


class Number(msgspec.Struct, frozen=True, kw_only=True):
    """One measured number: of which run, how many questions are behind it, its 95 % interval."""

    what: str
    run: str | None
    """None for what is counted out, without a model."""
    kind: Literal["loss", "share", "count", "step", "steps"]
    """A step is a moment of a training, steps are how long something took."""
    estimate: float | None
    """None if there was nothing to measure it on, or, of a step, if it never came."""
    low: float | None = None
    """None, as is `high`, for what has no interval: counts, and what was never sampled."""
    high: float | None = None
    of: int | None = None
    of_what: str = "questions"
    paper: str | None = None
    """The paper's value of the same, by its id."""

    @property
    def text(self) -> str:
        """The number as a person reads it."""
        if self.estimate is None:
            return "never" if self.kind in ("step", "steps") else "nothing to ask"
        if self.kind == "share":
            return self._share(self.estimate)
        if self.kind == "loss":
            return self._loss(self.estimate)
        told = f"{self.estimate:,.0f}"
        return {"step": f"step {told}", "steps": f"{told} steps"}.get(self.kind, told)

    def _share(self, estimate: float) -> str:
        if self.low is None or self.high is None:
            return percent(estimate)
        return with_interval(Rate(estimate, self.low, self.high))

    def _loss(self, estimate: float) -> str:
        """Four decimals, and more for a loss that would have fewer than two digits in them."""
        if estimate < SMALLEST_LOSS:
            return f"below {SMALLEST_LOSS:.6f}"
        decimals = max(4, 1 - math.floor(math.log10(estimate)))
        if self.low is None or self.high is None:
            return f"{estimate:.{decimals}f}"
        return f"{estimate:.{decimals}f} ({self.low:.{decimals}f} to {self.high:.{decimals}f})"

    @property
    def paper_text(self) -> str:
        """The paper's value as it prints it; shares in per cent, as ours."""
        if self.paper is None:
            return ""
        value = paper_values()[self.paper]
        share = self.kind == "share" and isinstance(value.value, float)
        return percent(float(value.value)) if share else value.text


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence that numbers bear out, or not."""

    what: str
    holds: bool
    numbers: list[Number]
    role: Literal["part", "core", "premise"] = "part"
    """A claim falls with its core; without its premise, which is no part of it, it cannot be
    asked."""
    control: bool | None = None
    """Whether it holds for an untrained model of the same shape too; none if that is unknown."""

    @property
    def told(self) -> str:
        """The sentence and its numbers."""
        if len(self.numbers) == 1 and self.numbers[0].kind in ("loss", "share"):
            return f"{self.what}: {self.numbers[0].text}"
        numbers = ", ".join(f"{number.what} {number.text}" for number in self.numbers)
        return f"{self.what}: {numbers}" if numbers else self.what


class RunBehind(msgspec.Struct, frozen=True, kw_only=True):
    """A run that a verdict rests on."""

    name: str
    preset: str | None
    changes: list[str]
    """In what it is not its preset: a quick run has fewer steps."""
    seed: int | None
    steps: int | None
    weights_sha256: str


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A claim and what became of it."""

    claim: Claim
    verdict: Verdict
    reason: str
    checks: list[Check]
    runs: list[RunBehind]
    command: str | None = None
    """What would measure it, if it is not measured."""
    at_first: Verdict | None = None
    """The verdict on `paper-5`, if the claim was first to be asked of that and is now asked of
    `paper-5-long`, the same training gone on with."""
    earlier: Verdict | None = None
    """The verdict on an earlier reproduction that is kept beside this one, by the same rule."""

    @property
    def numbers(self) -> list[Number]:
        """All numbers behind it."""
        return [number for check in self.checks for number in check.numbers]


def judged(claim: Claim, checks: Sequence[Check], runs: Sequence[RunBehind]) -> Judged:
    """The verdict on a claim that was measured."""
    verdict = verdict_of(checks)
    reason = _reason(verdict, checks)
    return Judged(claim=claim, verdict=verdict, reason=reason, checks=list(checks), runs=list(runs))


def verdict_of(checks: Sequence[Check]) -> Verdict:
    """All hold, some, or none; and whether an untrained model does as well."""
    counted = _counted(checks)
    held = sum(check.holds for check in counted)
    if any(check.role == "premise" and not check.holds for check in checks):
        return Verdict.MOOT
    if held == 0 or any(check.role == "core" and not check.holds for check in checks):
        return Verdict.FAILS
    if held < len(counted):
        return Verdict.PART
    return Verdict.ANY if all(check.control for check in counted) else Verdict.HOLDS


def _counted(checks: Sequence[Check]) -> list[Check]:
    """The checks that make up the claim."""
    counted = [check for check in checks if check.role != "premise"]
    assert counted, "a measure checks something of the claim itself"
    return counted


def _reason(verdict: Verdict, checks: Sequence[Check]) -> str:
    counted = _counted(checks)
    held = [check for check in counted if check.holds]
    failed = [check for check in checks if not check.holds]
    if verdict is Verdict.HOLDS:
        return f"{_tally(held, counted)}: {_told(held)}."
    if verdict is Verdict.ANY:
        return (
            f"{_tally(held, counted)}, and so for an untrained model of the same shape, so that "
            f"it says nothing about this one: {_told(held)}."
        )
    premises = [check for check in failed if check.role == "premise"]
    if premises:
        return f"Its premise fails: it is not found that {_told(premises)}."
    decisive = [check for check in failed if check.role == "core"]
    opening = f"{_tally(held, counted)}, {'but' if held else 'for'} it is not found that"
    forced = [check for check in held if check.control]
    beside = f" ({len(forced)} of those that do would for any one-layer model)" if forced else ""
    return f"{opening} {_told(decisive or failed)}{beside}."


def _tally(held: Sequence[Check], counted: Sequence[Check]) -> str:
    if len(counted) == 1:
        return "Its one check holds" if held else "Its one check does not hold"
    if not held:
        return (
            "Neither check holds" if len(counted) == 2 else f"None of {len(counted)} checks holds"
        )
    if len(held) == len(counted):
        return "Both checks hold" if len(counted) == 2 else f"All {len(counted)} checks hold"
    return f"{len(held)} of {len(counted)} checks {'holds' if len(held) == 1 else 'hold'}"


def _told(checks: Sequence[Check]) -> str:
    told = "; ".join(check.told for check in checks[:TOLD_AT_MOST])
    more = len(checks) - TOLD_AT_MOST
    return f"{told}; and {more} more" if more > 0 else told
