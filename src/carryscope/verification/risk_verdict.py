"""What a measured risk means: a verdict in words, and a guard that refuses what fails.

In: a `RiskFinding`. Out: text, and a `Guard`. A model that fails where two columns in a row pass
a carry on is guarded by refusing such questions. That takes no model: the digits of the question
show it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from carryscope.core.words import counted, percent, with_interval
from carryscope.task.columns import Columns
from carryscope.task.operation import State, Words
from carryscope.task.tokens import Format
from carryscope.verification.cases import CaseRisk
from carryscope.verification.estimate import Rate, weighted_rate

if TYPE_CHECKING:
    from carryscope.verification.risk import RiskFinding, StratumRisk

SAFE, UNSAFE = 0.001, 0.05
"""A look-ahead is safe if at most 1 in 1,000 digits is wrong, interval included, and unsafe if at
least 1 in 20 is."""


def risk_verdict(finding: RiskFinding, layout: Format) -> str:
    """What a person who must decide whether to use the model should know."""
    often = how_often(finding.teacher_forced, int(finding.questions), finding.evaluated)
    words = layout.operation.words
    each = _of_each(finding, layout)
    parts = [often, each, on_what(finding, layout), _unsafe(finding, words), _safe(finding, words)]
    return " ".join(part for part in parts if part)


def how_often(rate: Rate, total: int, evaluated: int) -> str:
    """The share of wrong answers over all questions, measured on so many of them."""
    if rate.low == rate.high:  # counted over every question there is
        wrong = round(rate.estimate * total)
        if not wrong:
            return f"All {total:,} questions were tested, and all answers are right."
        share = percent(rate.estimate)
        return (
            f"{wrong:,} of all {total:,} questions get a wrong answer ({share}): all were tested."
        )
    if rate.estimate == 0:
        return (
            f"None of {evaluated:,} tested questions failed. With 95 % confidence, at most "
            f"{percent(rate.high)} of all {total:,} questions get a wrong answer."
        )
    return (
        f"{with_interval(rate)} of all {total:,} questions get a wrong answer, about 1 in "
        f"{round(1 / rate.estimate):,} (95 % confidence, {evaluated:,} questions tested)."
    )


def _of_each(finding: RiskFinding, layout: Format) -> str:
    """How often each operation of a mixture fails."""
    said = []
    for one in layout.operation.parts:
        ours = [stratum for stratum in finding.strata if stratum.name.startswith(f"{one.symbol} ")]
        rate = with_interval(_wrong(ours, exact=finding.exhaustive))
        said.append(f"{rate} of {one.words.question}s")
    return f"Wrong are {' and '.join(said)}." if said else ""


def on_what(finding: RiskFinding, layout: Format) -> str:
    """The kind of question that it fails on most often."""
    if not finding.failures:
        return ""
    failure = finding.failures[0]
    asked = layout.parse(str(failure.simplest))
    columns, words = Columns.of(asked), asked.operation.words
    passed = int(np.where(columns.carry_in, columns.look_ahead, 0).max())
    waiting = int(columns.look_ahead.max())
    kind, passing = "", (words.passing, words.passing_plural)
    if passed:
        kind = f", where a {words.carry} must pass {counted(passed, *passing)}"
    elif waiting:
        kind = f", where no {words.carry} reaches {counted(waiting, *passing)}"
    wrong, refused = finding.teacher_forced.estimate, guard(finding)
    if refused is None:
        share = percent(failure.contribution / wrong)
        like = f"{words.question}s like {failure.simplest}"
        return f"It fails most often on {like}{kind}: {share} of all wrong answers."
    share = percent(1 - refused.wrong.estimate * (1 - refused.refused) / wrong)
    return (
        f"{share} of the wrong answers are to {words.question}s in which {refused.said(words)}, "
        f"such as {failure.simplest}{kind}."
    )


def _unsafe(finding: RiskFinding, words: Words) -> str:
    """From which look-ahead on it fails often. Digits are judged teacher-forced."""
    unsafe = _unsafe_cases(finding)
    if not unsafe:
        return ""
    least = min(case.depth for case in unsafe)
    if not least:
        return "Do not use it."
    if least == 1:
        return f"Do not use it where a column {words.column[State.PROPAGATE]}."
    columns = f"{counted(least, 'column')} in a row {words.columns[State.PROPAGATE]}"
    return f"Do not use it where {columns}."


def _unsafe_cases(finding: RiskFinding) -> list[CaseRisk]:
    return [case for case in finding.cases if case.wrong.low >= UNSAFE]


def _safe(finding: RiskFinding, words: Words) -> str:
    """Up to which look-ahead it is safe."""
    unsafe = [case.depth for case in finding.cases if case.wrong.high > SAFE]
    safe = min(unsafe, default=1 + max(case.depth for case in finding.cases)) - 1
    if safe < 0:
        return ""
    nines = "at most " * (safe > 0) + counted(safe, words.passing, words.passing_plural)
    return f"A digit with {nines} directly below is wrong at most once in 1,000."


class Guard(NamedTuple):
    """Refuse questions in which this many neighbouring columns pass a carry on."""

    columns: int
    refused: float
    """The share of all questions that are refused."""
    wrong: Rate
    """How often an answer that is given is wrong."""

    def said(self, words: Words) -> str:
        """What is refused: "two neighbouring columns sum to 9"."""
        if self.columns == 1:
            return f"a column {words.column[State.PROPAGATE]}"
        columns = counted(self.columns, "neighbouring column")
        return f"{columns} {words.columns[State.PROPAGATE]}"


def guard(risk: RiskFinding) -> Guard | None:
    """The guard at the shallowest look-ahead that is unsafe; none if none is, or all are."""
    columns = min((case.depth for case in _unsafe_cases(risk)), default=0)
    kept = [stratum for stratum in risk.strata if longest_run(stratum.name) < columns]
    if not (columns and kept):
        return None
    refused = 1 - sum(stratum.probability for stratum in kept)
    return Guard(columns, refused, _wrong(kept, exact=risk.exhaustive))


def longest_run(stratum: str) -> int:
    """How many neighbouring columns propagate, in each question of a stratum.

    Up to six digits its name has a letter for each column; beyond, it says how long the longest
    runs are.
    """
    if lengths := re.findall(r"\d+", stratum):
        return max(map(int, lengths))
    return max(map(len, re.findall("P+", stratum)), default=0)


def _wrong(kept: list[StratumRisk], *, exact: bool) -> Rate:
    weight = np.array([stratum.probability for stratum in kept])
    asked = np.array([stratum.failed.of for stratum in kept])
    failed = np.array([stratum.failed.count for stratum in kept])
    if exact:
        return Rate.exactly(int(failed.sum()), int(asked.sum()))
    return weighted_rate(weight / weight.sum(), asked, failed)
