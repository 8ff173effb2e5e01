"""How often a model fails over all 10^(2n) questions, and where: the numbers and a verdict.

In: a model, or any judge of questions. Out: `RiskFinding`.

Up to three digits every question is tested. Beyond that, questions are drawn stratum by stratum,
and the failure rates of the strata are combined by their exact probabilities (`trial.py`).
"""

from __future__ import annotations

import msgspec
import numpy as np

from carryscope.core.errors import require
from carryscope.core.evidence import Finding, Share
from carryscope.core.progress import Progress, silent
from carryscope.model.files import weights_hash
from carryscope.model.transformer import Transformer
from carryscope.task.operation import ADD, OPERATIONS, PAIRS, Operation, OperationName, Words
from carryscope.task.tokens import Format
from carryscope.verification.cases import CaseRisk, case_risks
from carryscope.verification.estimate import Rate
from carryscope.verification.failures import simplest_of_each
from carryscope.verification.partition import partition
from carryscope.verification.risk_verdict import risk_verdict
from carryscope.verification.trial import Judge, Tally, ask_everything, hold_trial, judge_of
from carryscope.version import __version__

EXHAUSTIVE_DIGITS = 3
"""Up to here every question is tested: a million of them for three digits."""

WIDTH, BUDGET = 0.05, 1_000_000
"""By default, test until the 95 % interval is 5 % of the estimate wide, or this many questions."""

MOST_FAILURES = 10
"""Patterns listed as the likeliest failures."""


class StratumRisk(msgspec.Struct, frozen=True, kw_only=True):
    """One stratum."""

    name: str
    probability: float
    failed: Share
    contribution: float
    """Its part in the chance of a wrong answer: probability times failure rate."""
    simplest: str | None
    """A failing question of the stratum with few non-zero digits; null if none failed."""


class DigitRisk(msgspec.Struct, frozen=True, kw_only=True):
    """The chance that one answer token is wrong."""

    digit: str
    teacher_forced: Rate


class RiskFinding(Finding, frozen=True, kw_only=True):
    """How often a model fails, and where."""

    package_version: str
    weights_sha256: str
    seed: int
    operation: OperationName = "addition"
    questions: str
    """How many there are, in decimal: 10^(2n) for each operation."""
    evaluated: int
    exhaustive: bool
    width: float
    budget: int
    teacher_forced: Rate
    """The chance of a wrong answer over all questions. Free-running it is the same, because up to
    the first wrong token the model reads the same."""
    digits: list[DigitRisk]
    cases: list[CaseRisk]
    strata: list[StratumRisk]
    """Failing strata first, by their contribution; then all others."""
    verdict: str

    @property
    def asked(self) -> Operation:
        """The operation of its questions."""
        return OPERATIONS.get(self.operation, ADD)

    @property
    def words(self) -> Words:
        """How its questions are spoken of."""
        return self.asked.words

    @property
    def failures(self) -> list[StratumRisk]:
        """The patterns that contribute most to the chance of a wrong answer."""
        return [stratum for stratum in self.strata[:MOST_FAILURES] if stratum.contribution]


def measure_risk(
    model: Transformer,
    *,
    seed: int = 0,
    width: float = WIDTH,
    budget: int = BUDGET,
    progress: Progress = silent,
) -> RiskFinding:
    """The risk of a model. `Stopped` ends the sampling; the finding reports what there is."""
    layout = model.config.layout
    return judged_risk(
        judge_of(model),
        layout,
        weights_sha256=weights_hash(model),
        seed=seed,
        width=width,
        budget=budget,
        progress=progress,
    )


def precise_enough(finding: RiskFinding, *, seed: int, width: float, budget: int) -> bool:
    """Whether a kept estimate has this seed and is as precise as these settings ask for.

    The last questions of a budget are dealt out to the patterns in whole numbers, so that up to
    one for each pattern is left over.
    """
    narrow = finding.teacher_forced.relative_width <= width
    spent = finding.evaluated + len(finding.strata) >= budget
    reached = finding.exhaustive or narrow or spent
    return finding.seed == seed and reached


def judged_risk(
    judge: Judge,
    layout: Format,
    *,
    weights_sha256: str,
    seed: int,
    width: float,
    budget: int,
    progress: Progress = silent,
) -> RiskFinding:
    """The risk of whatever the judge judges."""
    check_settings(seed, width, budget)
    digits, operation, answers = layout.digits, layout.operation, layout.answer_length
    generator = np.random.default_rng((seed, digits))
    strata, exhaustive = partition(digits, operation), digits <= EXHAUSTIVE_DIGITS
    every = len(operation.each_part) * PAIRS**digits
    with progress("risk", total=every if exhaustive else budget, unit="questions") as advance:
        tally = (
            ask_everything(judge, strata, answers, advance)
            if exhaustive
            else hold_trial(
                judge, strata, answers, generator, width=width, budget=budget, advance=advance
            )
        )
    finding = RiskFinding(
        package_version=__version__,
        weights_sha256=weights_sha256,
        seed=seed,
        operation=next(name for name, one in OPERATIONS.items() if one is operation),
        questions=str(every),
        evaluated=tally.evaluated,
        exhaustive=exhaustive,
        width=width,
        budget=budget,
        teacher_forced=tally.failure,
        digits=[
            DigitRisk(digit=name, teacher_forced=tally.rate(tally.wrong[:, i]))
            for i, name in enumerate(layout.answer_names)
        ],
        cases=case_risks(tally),
        strata=_strata(tally, judge),
        verdict="",
    )
    return msgspec.structs.replace(finding, verdict=risk_verdict(finding, layout))


def check_settings(seed: int, width: float, budget: int) -> None:
    """Refuse settings that make no sense."""
    require(0 < width < 2, "width must be between 0 and 2", width)
    require(budget >= 1, "budget must be at least 1", budget)
    require(seed >= 0, "seed must be at least 0", seed)


def _strata(tally: Tally, judge: Judge) -> list[StratumRisk]:
    asked, failed, weights = tally.asked, tally.failed, tally.partition.weights
    examples = simplest_of_each(judge, tally.failing)
    found = [
        StratumRisk(
            name=name,
            probability=float(weights[s]),
            failed=Share.measured(int(failed[s]), int(asked[s])),
            contribution=float(weights[s] * failed[s] / max(asked[s], 1)),
            simplest=examples.get(s),
        )
        for s, name in enumerate(tally.partition.names)
    ]
    return sorted(found, key=lambda stratum: (-stratum.contribution, -stratum.probability))
