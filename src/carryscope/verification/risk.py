"""How often a model fails, over all 10^(2n) questions, and where: the numbers and a verdict.

In: a model, or any judge of questions. Out: `RiskFinding`.

Up to three digits every question is asked. Beyond, questions are drawn stratum by stratum, and
what is measured in each is put together with its exact probability (`trial.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from carryscope.core.errors import CallError
from carryscope.core.evidence import Z_95, Share
from carryscope.core.storage import read_json
from carryscope.model.files import weights_hash
from carryscope.model.transformer import Transformer
from carryscope.task.questions import Questions
from carryscope.task.strata import look_ahead_probabilities
from carryscope.verification.estimate import Rate, weighted_rate
from carryscope.verification.exhaustive import ask_everything
from carryscope.verification.failures import (
    FailureSearch,
    fewest_digits,
    look_around,
    simplest,
)
from carryscope.verification.judging import Judge, judge_of
from carryscope.verification.partition import partition
from carryscope.verification.risk_finding import (
    CaseRisk,
    DigitRisk,
    LikelyFailure,
    NaiveTest,
    RiskFinding,
    StratumRisk,
)
from carryscope.verification.risk_verdict import risk_verdict
from carryscope.verification.trial import Tally, hold_trial
from carryscope.version import __version__

RISK_FILE = Path("findings") / "risk.json"

EXHAUSTIVE_DIGITS = 3
"""Up to here every question is asked: a million of them for three digits."""

WIDTH, BUDGET = 0.05, 1_000_000
"""By default, ask until the 95 % interval is as wide as 5 % of the estimate, or this many."""

NAIVE = 1_000_000
"""The uniform questions of the usual test."""

MOST_FAILURES = 10
"""Patterns listed as the likeliest failures."""

STARTS_PER_PATTERN = 2
"""Failing questions of each pattern that are shrunk, the simplest to begin with; the simplest
outcome is shown."""


def measure_risk(
    model: Transformer,
    *,
    seed: int = 0,
    width: float = WIDTH,
    budget: int = BUDGET,
    on_round: Callable[[Tally], bool | None] = lambda _: None,
) -> RiskFinding:
    """The risk of a model. `on_round` may end the sampling by returning True."""
    if not 0 < width < 2:
        raise CallError(f"width must be between 0 and 2. Got {width}.")
    if budget < 1:
        raise CallError(f"budget must be at least 1. Got {budget}.")
    if seed < 0:
        raise CallError(f"seed must be at least 0. Got {seed}.")
    layout = model.config.layout
    return judged_risk(
        judge_of(model),
        layout.digits,
        layout.answer_names,
        weights_sha256=weights_hash(model),
        seed=seed,
        width=width,
        budget=budget,
        on_round=on_round,
    )


def judged_risk(
    judge: Judge,
    digits: int,
    answer_names: list[str],
    *,
    weights_sha256: str,
    seed: int,
    width: float,
    budget: int,
    on_round: Callable[[Tally], bool | None],
) -> RiskFinding:
    """The risk of whatever the judge judges."""
    generator = np.random.default_rng((seed, digits))
    exhaustive = digits <= EXHAUSTIVE_DIGITS
    strata, answers = partition(digits), len(answer_names)
    if exhaustive:
        tally = ask_everything(judge, strata, answers, on_round)
    else:
        tally = hold_trial(
            judge, strata, answers, generator, width=width, budget=budget, on_round=on_round
        )
    by_stratum, failure = _strata(tally, judge), _rate(tally, tally.failed, exhaustive)
    finding = RiskFinding(
        package_version=__version__,
        weights_sha256=weights_sha256,
        seed=seed,
        questions=str(10 ** (2 * digits)),
        evaluated=tally.evaluated,
        exhaustive=exhaustive,
        width=width,
        budget=budget,
        teacher_forced=failure,
        free_running=failure,
        digits=[
            DigitRisk(
                digit=name,
                teacher_forced=_rate(tally, tally.forced[:, i], exhaustive),
                free_running=_rate(tally, tally.free[:, i], exhaustive),
            )
            for i, name in enumerate(answer_names)
        ],
        cases=_cases(tally, exhaustive),
        strata=by_stratum,
        failures=_failures(by_stratum),
        search=_search(tally, judge, generator),
        naive=_naive(failure),
        verdict="",
    )
    return msgspec.structs.replace(finding, verdict=risk_verdict(finding))


def read_risk(directory: Path) -> RiskFinding:
    """The findings in a run directory."""
    path = directory / RISK_FILE
    if not path.exists():
        raise CallError(f"The risk of {directory} is not known. Run: carryscope risk {directory}")
    return read_json(path, RiskFinding)


def _rate(tally: Tally, counts: np.ndarray, exhaustive: bool) -> Rate:
    if exhaustive:
        return Rate.exactly(int(counts.sum()), tally.evaluated)
    return weighted_rate(tally.partition.weights, tally.asked, counts)


def _cases(tally: Tally, exhaustive: bool) -> list[CaseRisk]:
    """Every look-ahead there is, highest digit first; one that was not met may fail always."""
    cases = []
    chances = look_ahead_probabilities(tally.partition.digits)
    for case in sorted(chances, key=lambda c: (-c.digit, c.depth, not c.carrying)):
        place = (slice(None), case.digit, case.depth, int(case.carrying))
        asked, wrong = tally.case_asked[place], tally.case_wrong[place]
        cases.append(
            CaseRisk(
                digit=f"A{case.digit}",
                depth=case.depth,
                carrying=case.carrying,
                probability=float(chances[case]),
                wrong=_case_rate(tally, asked, wrong, exhaustive),
                asked=int(asked.sum()),
            )
        )
    return cases


def _case_rate(tally: Tally, asked: np.ndarray, wrong: np.ndarray, exhaustive: bool) -> Rate:
    """The rate among the questions of a case.

    Up to six digits a stratum is all inside a case or all outside. Beyond, the part of it that
    is inside is estimated from the sample, which the interval does not allow for.
    """
    if not asked.any():
        return Rate(0.0, 0.0, 1.0)
    if exhaustive:
        return Rate.exactly(int(wrong.sum()), int(asked.sum()))
    met = asked > 0
    inside = tally.partition.weights[met] * asked[met] / tally.asked[met]
    return weighted_rate(inside / inside.sum(), asked[met], wrong[met])


def _strata(tally: Tally, judge: Judge) -> list[StratumRisk]:
    asked, failed, weights = tally.asked, tally.failed, tally.partition.weights
    examples = _simplest_of_each(tally, judge)
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


def _simplest_of_each(tally: Tally, judge: Judge) -> dict[int, str]:
    """The simplest failing question of every stratum that was met failing, the pilot included."""
    if not tally.failing:
        return {}
    strata = list(tally.failing)
    starts = [fewest_digits(tally.failing[s], STARTS_PER_PATTERN) for s in strata]
    shrunk = simplest(judge, Questions.joined(starts))
    ends = np.cumsum([len(part) for part in starts])
    return {
        s: fewest_digits(shrunk[end - len(part) : end], 1).texts()[0]
        for s, part, end in zip(strata, starts, ends, strict=True)
    }


def _failures(strata: list[StratumRisk]) -> list[LikelyFailure]:
    """The patterns that contribute most."""
    total = sum(stratum.contribution for stratum in strata)
    return [
        LikelyFailure(
            stratum=stratum.name,
            share_of_failures=stratum.contribution / total,
            rate=stratum.failed.estimate,
            question=stratum.simplest,
        )
        for stratum in strata[:MOST_FAILURES]
        if stratum.contribution and stratum.simplest
    ]


def _search(tally: Tally, judge: Judge, generator: np.random.Generator) -> FailureSearch:
    failing = list(tally.failing.values())
    digits = tally.partition.digits
    joined = Questions.joined(failing) if failing else Questions.from_integers([], digits)
    asked, failed = tally.asked, tally.failed
    return look_around(judge, tally.partition, joined, failed / np.maximum(asked, 1), generator)


def _naive(rate: Rate) -> NaiveTest:
    expected = Share.measured(round(rate.estimate * NAIVE), NAIVE)
    half = (rate.high - rate.low) / 2
    spread = rate.estimate * (1 - rate.estimate)
    needed = round(spread * (Z_95 / half) ** 2) if half and rate.estimate else 0
    return NaiveTest(questions=NAIVE, low=expected.low, high=expected.high, for_our_width=needed)
