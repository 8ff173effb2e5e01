"""The paper's claims as data, what is measured of each, and the rule that gives the verdict.

In: `claims.json`, written by hand from the paper, and checks that a measure made. Out: `Judged`.

A claim is broken into checks, each a sentence that numbers support or not. It *holds* if all of
its checks pass, *in part* if some do, and *not* if none does or if a core check fails. A claim that
an untrained model of the same shape passes as well *holds for any one-layer model*. One whose
premise fails *does not apply*. Tolerances are in the claims file, with their reasons.
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
"""Losses below this are not distinguished."""

IN_A_REASON = 2
"""Checks that a reason names; the page has all of them."""


class Verdict(StrEnum):
    """The verdict on a claim."""

    HOLDS = "holds"
    PART = "holds in part"
    FAILS = "does not hold"
    ANY = "holds for any one-layer model"
    """Trained or not: it follows from the architecture and says nothing about the model."""
    MOOT = "does not apply"
    """Its premise fails: that cascades fail says nothing about a model that cannot add."""
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
    """The models it is about, by the name of their run. Without any it is decided by counting."""
    how: str
    """How it is measured here."""
    measure: str
    """The function that measures it, in a module of this package: `rows.rows_unused`."""
    tolerance: str
    because: str
    """The reason for this tolerance."""
    leaves_open: bool = False
    """Whether it is a question that the paper leaves open, not one of its claims."""


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The file."""

    claims: list[Claim]


@cache
def load_claims() -> tuple[Claim, ...]:
    """All claims, in the order of the page."""
    return tuple(read_json(CLAIMS_FILE, Claims).claims)


Kind = Literal["loss", "share", "count", "step", "steps"]


class Number(msgspec.Struct, frozen=True, kw_only=True):
    """One measured number: of which run, how many questions are behind it, its 95 % interval."""

    what: str
    run: str | None
    """None for what is counted, without a model."""
    kind: Kind
    """A step is a point of a training; steps are how long something took."""
    estimate: float | None
    """None if there was nothing to measure, or if a step was never reached."""
    low: float | None = None
    """None, like `high`, for numbers without an interval, such as counts."""
    high: float | None = None
    of: int | None = None
    of_what: str = "questions"
    paper: str | None = None
    """The paper's value of the same, by its id."""

    @property
    def text(self) -> str:
        """The number as a person reads it."""
        if self.estimate is None:
            return "never" if self.kind in ("step", "steps") else "no data"
        if self.kind == "share":
            return self._share(self.estimate)
        if self.kind == "loss":
            return self._loss(self.estimate)
        whole = f"{self.estimate:,.0f}"
        return {"step": f"step {whole}", "steps": f"{whole} steps"}.get(self.kind, whole)

    def _share(self, estimate: float) -> str:
        if self.low is None or self.high is None:
            return percent(estimate)
        return with_interval(Rate(estimate, self.low, self.high))

    def _loss(self, estimate: float) -> str:
        """Four decimals, and more for a loss that would show fewer than two digits."""
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
    """One sentence that numbers support, or not."""

    what: str
    holds: bool
    numbers: list[Number]
    role: Literal["part", "core", "premise"] = "part"
    """A claim fails with its core. If its premise, which is not part of it, fails, the claim does
    not apply."""
    control: bool | None = None
    """Whether an untrained model of the same shape passes too; None if that is unknown."""

    @property
    def text(self) -> str:
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
    """How it differs from its preset: a quick run has fewer steps."""
    seed: int | None
    steps: int | None
    weights_sha256: str


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A claim and its verdict."""

    claim: Claim
    verdict: Verdict
    reason: str
    checks: list[Check]
    runs: list[RunBehind]
    command: str | None = None
    """What would measure it, if it is not measured."""

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
    """All pass, some, or none; and whether an untrained model passes as well."""
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
    if verdict is Verdict.MOOT:
        premises = [check for check in failed if check.role == "premise"]
        return f"Its premise does not hold: {_first(premises)}."
    passed = f"{len(held)} of {len(counted)} checks passed"
    if verdict is Verdict.ANY:
        return (
            f"{passed}, and an untrained model of the same shape passes them too, so this says "
            f"nothing about the trained one: {_first(held)}."
        )
    if verdict is Verdict.HOLDS:
        return f"{passed}: {_first(held)}."
    forced = sum(check.control is True for check in held)
    besides = f" ({forced} of them would pass for any one-layer model)" if forced else ""
    decisive = [check for check in failed if check.role == "core"]
    return f"{passed}{besides}. Failed: {_first(decisive or failed)}."


def _first(checks: Sequence[Check]) -> str:
    """The first few checks with their numbers."""
    shown = "; ".join(check.text for check in checks[:IN_A_REASON])
    more = len(checks) - IN_A_REASON
    return f"{shown}; and {more} more" if more > 0 else shown
