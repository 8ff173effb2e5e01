"""Verdicts in plain language, put together from the numbers and changing with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from carryscope.verification.risk_finding import CaseRisk, RiskFinding

SAFE, UNSAFE = 0.001, 0.05
"""A look-ahead is called safe if at most 1 in 1,000 digits is wrong, interval included, and unsafe
if at least 1 in 20 is."""


def risk_verdict(finding: RiskFinding) -> str:
    """What a person who must decide whether to use the model should know."""
    rate = finding.teacher_forced
    if finding.exhaustive:
        asked = f"All {int(finding.questions):,} questions were asked"
        told = f"{asked}: {rate.estimate:.4%} are answered wrongly."
    elif rate.estimate == 0:
        told = (
            f"None of {finding.evaluated:,} questions failed. That does not make it 0 %: with 95 % "
            f"confidence fewer than {_percent(rate.high)} of all questions fail."
        )
    else:
        told = (
            f"{_percent(rate.estimate)} of all {int(finding.questions):,} questions get a wrong "
            f"answer ({_percent(rate.low)} to {_percent(rate.high)}, 95 % confidence, "
            f"{finding.evaluated:,} questions asked): about 1 in {round(1 / rate.estimate):,}."
        )
    return " ".join([told, *_where(finding), *_order(finding)])


def _where(finding: RiskFinding) -> list[str]:
    """At which look-ahead it is safe, and at which it is not. Digits are judged teacher-forced."""
    by_depth: dict[int, list[CaseRisk]] = {}
    for case in finding.cases:
        by_depth.setdefault(case.depth, []).append(case)
    told = []
    safe = 0
    while safe in by_depth and all(c.wrong.high <= SAFE for c in by_depth[safe]):
        safe += 1
    if safe:
        nines = {1: "no nine", 2: "at most one nine"}.get(safe, f"up to {safe - 1} nines")
        told.append(f"Digits with {nines} directly below are wrong at most 1 time in 1,000.")
    unsafe = [c for c in finding.cases if c.wrong.low >= UNSAFE]
    if unsafe:
        least, worst = min(c.depth for c in unsafe), max(unsafe, key=lambda c: c.wrong.estimate)
        kind = "carrying" if worst.carrying else "quiet"
        above = f"above {worst.depth} nines ({kind})" if worst.depth else "with no nine below"
        nines = "a column sums" if least == 1 else f"{least} columns or more in a row sum"
        where = f"where {nines} to 9" if least else "for anything"
        told.append(
            f"Do not use it {where}: its worst digit is {worst.digit} {above}, wrong in "
            f"{worst.wrong.estimate:.0%} of such questions."
        )
    if finding.failures:
        likeliest = finding.failures[0]
        told.append(
            f"The likeliest failure is {likeliest.stratum}, {likeliest.share_of_failures:.0%} of "
            f"all wrong answers; the simplest such question is {likeliest.question}."
        )
    return told


def _order(finding: RiskFinding) -> list[str]:
    """Whether the order of the numbers matters, and whether there are failures out of line."""
    told = []
    if finding.search.order_matters.low > 0:
        rate = finding.search.order_matters
        told.append(
            f"It does not commute: for {_percent(rate.estimate)} of questions "
            f"({_percent(rate.low)} to {_percent(rate.high)}) only one order is right."
        )
    if finding.search.unpredicted:
        example = finding.search.unpredicted[0]
        told.append(
            f"It also fails where its kind of question is otherwise safe, at {example.question} "
            "for one."
        )
    return told


def _percent(share: float) -> str:
    """Enough digits to see a rare failure."""
    return f"{share:.3%}" if share >= 0.0001 else f"{share:.1e}"
