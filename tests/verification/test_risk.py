"""The risk: right where the truth is known, honest where nothing failed."""

import re
from contextlib import contextmanager
from functools import partial
from itertools import product

import msgspec
import numpy as np
import pytest
import torch
from built_adder import built_adder
from cases import exact_sum, look_ahead_sum

import carryscope
from carryscope.core.errors import CallError
from carryscope.core.progress import Stopped
from carryscope.model.prediction import predict
from carryscope.task.questions import Questions, parse_question
from carryscope.task.strata import look_ahead_probabilities
from carryscope.task.tokens import Format
from carryscope.verification.cases import CaseRisk, by_look_ahead
from carryscope.verification.estimate import Rate
from carryscope.verification.failures import simplest
from carryscope.verification.partition import partition
from carryscope.verification.risk import RiskFinding, judged_risk, measure_risk, precise_enough
from carryscope.verification.trial import hold_trial, judge_of

NOISE = 1.5e-4
"""Relative noise on the weights of the built adder: about a third of its answers go wrong."""


def algorithm_judge(algorithm):
    """Judges an algorithm instead of a model."""

    return lambda questions: (algorithm(questions) != exact_sum(questions))[:, ::-1]


def risk_of(judge, digits=5, **options) -> RiskFinding:
    defaults = {"seed": 0, "width": 0.05, "budget": 50_000}
    return judged_risk(judge, Format(digits), weights_sha256="", **(defaults | options))


def true_rate(digits: int, reach: int) -> float:
    """The chance that an adder of this reach fails, by counting state patterns."""
    strata = partition(digits)
    bad = [bool(re.search("P" * reach + "+G", name)) for name in strata.names]
    return float(sum(p for p, b in zip(strata.probabilities, bad, strict=True) if b))


def noisy_adder():
    """A two-digit adder that also fails where no stratum predicts it."""
    model, draws = built_adder(2), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in (model.blocks[0].attn.W_V, model.blocks[0].mlp.W_in):
            weights.mul_(1 + NOISE * torch.randn(weights.shape, generator=draws))
    return model


@pytest.mark.parametrize("reach", [1, 2, 3])
def test_the_risk_of_an_algorithm_is_the_one_that_counting_gives(reach):
    found = risk_of(algorithm_judge(partial(look_ahead_sum, reach=reach)))
    assert found.teacher_forced.low <= true_rate(5, reach) <= found.teacher_forced.high
    assert found.teacher_forced.estimate == pytest.approx(true_rate(5, reach), rel=1e-6)


def test_failure_by_look_ahead_depth_is_all_or_nothing_for_algorithm_1():
    found = risk_of(algorithm_judge(partial(look_ahead_sum, reach=2)))
    for case in found.cases:
        fails = case.depth >= 2 and case.carrying
        assert case.wrong.estimate == pytest.approx(float(fails))
    assert len(found.cases) == len(look_ahead_probabilities(5))


def test_a_built_adder_has_the_risk_of_its_algorithm():
    found = measure_risk(built_adder(4), budget=20_000)
    assert found.teacher_forced.estimate == pytest.approx(true_rate(4, 2), rel=1e-6)
    assert found.questions == str(10**8)


def test_exhaustive_evaluation_of_two_digits_equals_the_estimate_within_its_interval():
    model = noisy_adder()
    exact = measure_risk(model)
    assert exact.exhaustive
    assert exact.evaluated == 10_000
    assert 0 < exact.teacher_forced.low == exact.teacher_forced.high < 1
    tally = hold_trial(
        judge_of(model), partition(2), 3, np.random.default_rng(1), width=0.01, budget=5_000
    )
    assert tally.failure.low <= exact.teacher_forced.estimate <= tally.failure.high


def test_exhaustive_evaluation_counts_every_question_once():
    found = risk_of(algorithm_judge(partial(look_ahead_sum, reach=1)), digits=2)
    every = Questions.from_integers(product(range(100), range(100)), 2)
    wrong = (look_ahead_sum(every, reach=1) != exact_sum(every)).any(1).mean()
    assert found.teacher_forced.estimate == wrong
    assert found.evaluated == 10_000


def test_a_model_that_never_fails_gets_an_upper_bound_and_never_zero():
    found = risk_of(algorithm_judge(exact_sum), budget=30_000)
    assert found.teacher_forced.estimate == 0.0
    assert 0 < found.teacher_forced.high < 1e-3
    assert "None of" in found.verdict
    assert "at most 0.0" in found.verdict
    assert found.failures == []
    assert 29_000 < found.evaluated <= 30_000


def test_long_questions_meet_their_rare_cascades():
    found = risk_of(algorithm_judge(partial(look_ahead_sum, reach=3)), digits=10, budget=20_000)
    assert found.teacher_forced.low > 0
    assert any("carrying 6" in stratum.name for stratum in found.strata if stratum.failed.count)
    deep = [case for case in found.cases if case.depth == 10]
    assert [case.wrong.high for case in deep] == [1.0], "a case that was not tested may always fail"


def test_the_simplest_failing_question_keeps_its_pattern_and_has_fewest_digits():
    judge = algorithm_judge(partial(look_ahead_sum, reach=2))
    shrunk = simplest(judge, parse_question("12445+34555", 5))
    assert judge(shrunk).any(axis=1).all()
    first, second = shrunk.integers()[0]
    assert sum(digit != "0" for digit in f"{first}{second}") == 4


def test_teacher_forced_and_free_running_fail_on_the_same_questions():
    model = carryscope.load().model()
    questions = partition(5).draw(np.random.default_rng(0), 40, 300)
    forced = predict(model, questions, free_running=False)
    free = predict(model, questions, free_running=True)
    np.testing.assert_array_equal(forced.correct, free.correct)
    assert 0 < forced.correct.sum() < len(questions)
    np.testing.assert_array_equal(judge_of(model)(questions), ~forced.right)


def test_the_same_seed_gives_the_same_findings_and_they_load_back_by_type():
    judge = algorithm_judge(partial(look_ahead_sum, reach=2))
    first = msgspec.json.encode(risk_of(judge, budget=30_000))
    assert first == msgspec.json.encode(risk_of(judge, budget=30_000))
    assert msgspec.json.decode(first, type=RiskFinding).evaluated <= 30_000


@pytest.mark.parametrize(
    ("options", "message"),
    [({"width": 0.0}, "width must be between 0 and 2"), ({"budget": 0}, "at least 1. Got 0")],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(CallError, match=message):
        measure_risk(built_adder(1), **options)


def test_a_stopped_sampling_reports_what_it_has():
    heard = []

    @contextmanager
    def progress(name, total=None, unit=""):
        def advance(amount=1, note=""):
            heard.append((amount, note))
            if len(heard) == 2:
                raise Stopped("enough")

        assert (name, total, unit) == ("risk", 50_000, "questions")
        yield advance

    judge = algorithm_judge(partial(look_ahead_sum, reach=2))
    found = risk_of(judge, width=1e-6, progress=progress)
    assert found.evaluated == sum(amount for amount, _ in heard) < 49_000
    assert found.teacher_forced.low <= true_rate(5, 2) <= found.teacher_forced.high
    assert re.fullmatch(r"1.\d+% wrong, interval ± [\d.]+%", heard[0][1])


def test_an_estimate_that_is_precise_enough_is_current():
    found = risk_of(algorithm_judge(partial(look_ahead_sum, reach=2)), width=0.5)
    wide, spent = found.teacher_forced.relative_width, found.evaluated
    assert precise_enough(found, seed=0, width=wide, budget=10**6)
    assert not precise_enough(found, seed=0, width=wide / 2, budget=10**6)
    assert precise_enough(found, seed=0, width=wide / 2, budget=spent)
    assert not precise_enough(found, seed=1, width=wide, budget=10**6)


def test_an_estimate_that_has_spent_its_budget_is_current_and_a_stopped_one_is_not():
    spent = risk_of(algorithm_judge(exact_sum), budget=30_000)
    assert spent.evaluated < 30_000
    assert precise_enough(spent, seed=0, width=0.05, budget=30_000)
    assert not precise_enough(spent, seed=0, width=0.05, budget=40_000)


def test_digits_of_one_look_ahead_are_pooled_by_their_probability():
    def case(digit, probability, wrong):
        rate = Rate(wrong, wrong / 2, wrong * 2)
        fields = {"depth": 1, "carrying": True, "probability": probability, "asked": 10}
        return CaseRisk(digit=digit, wrong=rate, **fields)

    groups = by_look_ahead([case("A3", 0.1, 0.5), case("A2", 0.3, 0.1)])
    assert list(groups) == [(1, True)]
    pooled = CaseRisk.pooled(groups[1, True])
    assert (pooled.digit, pooled.asked) == ("all", 20)
    assert (pooled.wrong.estimate, pooled.wrong.high) == pytest.approx((0.2, 0.4))


def test_the_verdict_leads_with_the_share_and_shows_the_kind_of_sum_that_fails():
    verdict = risk_of(algorithm_judge(partial(look_ahead_sum, reach=2))).verdict
    assert verdict.startswith("1.35")
    assert "of all 10,000,000,000 questions get a wrong answer, about 1 in 74" in verdict
    assert "where a carry must pass two nines" in verdict
    assert "Do not use it where two columns in a row sum to 9" in verdict
    assert "\n" not in verdict


def profile(kind: str) -> np.ndarray:
    """Chances of failing in each stratum of five digits, for a predictor whose rate is known."""
    strata = partition(5)
    chances = np.zeros(len(strata))
    for i, name in enumerate(strata.names):
        nines = max([len(run) for run in re.findall("P+", name)], default=0)
        weight = float(strata.probabilities[i])
        chances[i] = {
            "like a model": {0: 1e-5, 1: 1e-3, 2: 0.2}.get(nines, 0.4),
            "1e-4 everywhere": 1e-4,
            "1e-6 everywhere": 1e-6,
            "1e-6, all in the longest cascade": 1e-6 / weight if name == "PPPPG" else 0.0,
            "1e-4, all where nobody expects it": 1e-4 / weight if name == "KKKKK" else 0.0,
            "always in one pattern": float(name.endswith("PPG")),
        }[kind]
    return chances


PROFILES = [
    "like a model",
    "1e-4 everywhere",
    "1e-6 everywhere",
    "1e-6, all in the longest cascade",
    "1e-4, all where nobody expects it",
    "always in one pattern",
]


@pytest.mark.slow
@pytest.mark.parametrize("width", [0.05, 0.12])
@pytest.mark.parametrize("kind", PROFILES)
def test_the_interval_covers_the_truth_in_at_least_92_of_100_trials(kind, width, record_property):
    """At a width of 0.12 trials of the first and the last kind stop by their width."""
    strata, chances, seeds = partition(5), profile(kind), 200
    truth = float(strata.weights @ chances)
    rates, stopped = [], 0
    for seed in range(seeds):
        luck = np.random.default_rng((1, seed))

        def judge(questions: Questions, luck=luck) -> np.ndarray:
            failed = luck.random(len(questions)) < chances[strata.of(questions)]
            wrong = np.zeros((len(questions), 6), dtype=bool)
            wrong[:, 2] = failed
            return wrong

        generator = np.random.default_rng((2, seed))
        tally = hold_trial(judge, strata, 6, generator, width=width, budget=90_000)
        rates.append(tally.failure)
        stopped += tally.evaluated < 85_000
    covered = np.mean([rate.low <= truth <= rate.high for rate in rates])
    estimates = np.array([rate.estimate for rate in rates])
    bias, error = estimates.mean() / truth - 1, estimates.std() / truth / np.sqrt(seeds)
    record_property("coverage", covered)
    record_property("stopped by width", stopped)
    record_property("bias", f"{bias:.4f} +- {error:.4f}")
    assert covered >= 0.92
    assert abs(bias) < 4 * error + 0.002
