"""Faithfulness on models that are an algorithm, on one that is none, and on the shipped one."""

import time
from contextlib import contextmanager

import msgspec
import numpy as np
import pytest
import torch
from built_adder import built_adder

import carryscope
from carryscope.core.progress import Stopped
from carryscope.core.storage import read_json
from carryscope.dissection.dissect import dissect
from carryscope.model.config import ModelConfig
from carryscope.model.transformer import Transformer, initialise
from carryscope.task.columns import Columns
from carryscope.verification import estimate, faithfulness, scrubbing, sight
from carryscope.verification.algorithms import ALGORITHM_1, AS_DISSECTED, WRONG
from carryscope.verification.estimate import WeightedSample
from carryscope.verification.faithfulness import FaithfulnessFinding, faithful

EXACT = "exact addition"

NAMES = {1: "look-ahead 1", 2: ALGORITHM_1, 3: "look-ahead 3"}

SHAPES = {
    "one digit, one head": {"digits": 1, "heads": 1},
    "two layers": {"digits": 2, "layers": 2},
    "three layers, signed, two heads": {"digits": 1, "layers": 3, "heads": 2, "format": "signed"},
    "attention only": {"digits": 2, "d_mlp": 0},
    "four heads, 15 tokens": {"digits": 3, "heads": 4, "vocabulary": 15, "format": "signed"},
    "ten digits": {"digits": 10, "heads": 2, "d_model": 16},
}


def scrubbed(found, name):
    return next(one for one in found.inside if one.name == name)


@contextmanager
def sample_sizes(floor, shared, pool, bases):
    """Smaller samples than those of the package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimate, "FLOOR", floor)
        patch.setattr(estimate, "SHARED", shared)
        patch.setattr(sight, "SHARED", shared)
        for module in (scrubbing, faithfulness):
            patch.setattr(module, "POOL", pool)
        patch.setattr(scrubbing, "BASES", bases)
        yield


@pytest.fixture
def few_questions():
    """These tests check whether it works, not what it finds."""
    with sample_sizes(10, 1000, 400, 100):
        yield


@pytest.fixture(scope="module")
def adders():
    with sample_sizes(10, 8000, 2000, 300):
        return {reach: faithful(built_adder(reach=reach)) for reach in NAMES}


@pytest.fixture(scope="module")
def untrained():
    model = initialise(Transformer(ModelConfig(d_model=48)), torch.Generator().manual_seed(1))
    with sample_sizes(10, 4000, 1000, 200):
        return faithful(model)


@pytest.mark.parametrize("reach", NAMES)
def test_the_algorithm_that_a_model_is_built_to_be_is_named_best(adders, reach):
    agreement = adders[reach].agreement
    assert agreement.best == agreement.best_on_errors == NAMES[reach]
    assert agreement.difference.low > 0
    assert agreement.of(AS_DISSECTED).same_as == NAMES[reach]


@pytest.mark.parametrize("reach", NAMES)
def test_it_agrees_in_every_answer_and_makes_every_error_with_the_same_digit(adders, reach):
    best = adders[reach].agreement.of(NAMES[reach])
    assert best.answer.agreement.estimate == 1
    assert 0.999 < best.answer.agreement.low < 1, "a sample claims no certainty"
    assert best.answer.left_wrong.estimate == 0
    for share in (best.answer.also_wrong, best.answer.errors_alike):
        assert share.estimate == 1


def test_probabilities_are_over_all_questions_not_over_the_sample(adders):
    """The strata decide where look-ahead adders fail, so here the sample leaves no error."""
    fails = {reach: found.agreement.of(NAMES[reach]).answer for reach, found in adders.items()}
    assert fails[2].model_wrong.estimate == pytest.approx(0.0135, abs=1e-12)
    assert fails[3].model_wrong.estimate == pytest.approx(0.0009, abs=1e-12)


def test_exact_addition_shares_no_error_with_algorithm_1(adders):
    exact = adders[2].agreement.of(EXACT)
    assert exact.answer.errors_alike.estimate == 0
    assert exact.answer.algorithm_wrong.estimate == 0, "exact addition makes no errors"


@pytest.mark.parametrize("reach", NAMES)
def test_scrubbing_by_the_right_algorithm_leaves_every_answer_and_by_a_wrong_one_few(adders, reach):
    right, wrong = scrubbed(adders[reach], NAMES[reach]), scrubbed(adders[reach], WRONG)
    for way in ("joint", "heads"):
        kept = getattr(right, way)
        assert kept.count == kept.of >= 1500
        assert getattr(wrong, way).high < 0.3
    for shorter in range(1, reach):
        assert scrubbed(adders[reach], NAMES[shorter]).joint.high < 0.98
    assert scrubbed(adders[reach], EXACT).joint.high < 1, "the model does not see so far"
    by_head = scrubbed(adders[reach], EXACT).heads
    assert by_head.count == by_head.of, "states of all columns are more than the model looks at"


def test_the_verdict_says_whether_errors_are_predicted(adders):
    verdict = adders[2].verdict
    assert verdict.startswith("Algorithm 1 predicts this model's answers, errors included")
    assert "not significantly better" not in verdict, "it leads by 1.35 points"
    assert "\n" not in verdict


def test_permuted_heads_and_signs_make_no_difference(few_questions):
    found = faithful(built_adder(4, offsets=(2, 0, 1), format="signed"))
    kept = scrubbed(found, ALGORITHM_1)
    assert found.agreement.best == ALGORITHM_1
    assert kept.heads.count == kept.heads.of > 0


def test_an_adder_with_a_head_for_every_column_is_exact_head_by_head(few_questions):
    model = built_adder(3, reach=3)
    *_, dissection = dissect(model, parts=["mlp"])
    assert [test.keys for test in dissection.mlp.digits] == [18, 60, 20, 10]
    assert all(test.decided and test.keys == test.needed for test in dissection.mlp.digits)
    found = faithful(model)
    assert found.agreement.best == EXACT
    assert "the MLP tells 108 keys apart" in found.agreement.of(EXACT).about
    for way in ("joint", "heads"):
        kept = getattr(scrubbed(found, EXACT), way)
        assert kept.count == kept.of > 0
        assert getattr(scrubbed(found, NAMES[1]), way).high < 0.95, "the carry is seen"


def test_a_model_whose_third_head_is_removed_is_the_shorter_look_ahead(few_questions):
    found = faithful(built_adder(without=(2,)))
    assert found.agreement.best == NAMES[1]
    assert found.agreement.of(NAMES[1]).answer.agreement.estimate == 1


def test_nothing_agrees_with_an_untrained_model(untrained):
    agreement = untrained.agreement
    assert agreement.best is agreement.runner_up is agreement.difference is None
    assert all(one.answer.agreement.high < 0.01 for one in agreement.algorithms)
    assert "None of the 6 algorithms describes this model" in untrained.verdict
    right, wrong = scrubbed(untrained, ALGORITHM_1).joint, scrubbed(untrained, WRONG).joint
    assert right.estimate - wrong.estimate < 0.05


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_any_model_can_be_compared_with_the_algorithms(shape, random_model, few_questions):
    found = faithful(random_model(**shape))
    assert msgspec.json.decode(msgspec.json.encode(found), type=FaithfulnessFinding) == found


def test_one_seed_gives_the_same_bytes_and_another_other_ones(few_questions):
    model = built_adder(3)
    first, again, other = (msgspec.json.encode(faithful(model, seed=s)) for s in (0, 0, 1))
    assert first == again != other


def test_an_algorithm_of_ones_own_is_compared_with_the_others(few_questions):
    def mine(columns):
        return np.pad(columns.base_add, ((0, 0), (0, 1)))

    found = faithful(built_adder(3), own=mine)
    assert [one.name for one in found.agreement.algorithms][-2:] == ["mine", WRONG]
    assert found.agreement.of("mine").answer.agreement.high < 0.5
    assert scrubbed(found, "mine").joint.high < 1
    assert found.own == "mine"


def test_progress_hears_of_every_algorithm_and_may_stop_the_work(few_questions):
    steps = []

    @contextmanager
    def progress(name, total=None, unit=""):
        def advance(amount=1, note=""):
            steps.append(note)
            if len(steps) == total + 1:
                raise Stopped("enough")

        yield advance

    found = faithful(built_adder(1), progress=progress)
    assert steps == ["", *(one.name for one in found.agreement.algorithms)]
    with pytest.raises(Stopped):
        faithful(built_adder(1), progress=progress)


def test_intervals_hold_the_truth_about_as_often_as_they_say(few_questions, generator):
    """Two coins that fall alike over a condition: the difference is 0, the share is 0.1."""
    inside = {"difference": 0, "share": 0}
    rounds = 300
    for _ in range(rounds):
        sample = WeightedSample.draw(generator, 2)
        first, second = generator.random((2, len(sample))) < 0.1
        among = Columns.of(sample.questions).question_class > 0
        gap, share = sample.difference(first, second), sample.share(first, among)
        inside["difference"] += gap.low <= 0 <= gap.high
        inside["share"] += share.low <= 0.1 <= share.high
    assert min(inside.values()) > 0.92 * rounds


@pytest.fixture(scope="module")
def shipped():
    path = carryscope.load().directory / "findings" / "faithfulness.json"
    return read_json(path, FaithfulnessFinding)


def assert_alike(found, kept):
    """The same values, numbers within rounding, prose aside."""
    if isinstance(found, dict):
        assert found.keys() == kept.keys()
        for key in found.keys() - {"about"}:
            assert_alike(found[key], kept[key])
    elif isinstance(found, list):
        for one, other in zip(found, kept, strict=True):
            assert_alike(one, other)
    else:
        assert found == (pytest.approx(kept, rel=1e-9) if isinstance(found, float) else kept)


@pytest.mark.slow
def test_the_shipped_model_is_judged_in_half_a_minute_as_its_findings_say(shipped):
    model = carryscope.load().model()
    began = time.process_time()
    found = faithful(model)
    assert time.process_time() - began < 30
    kept = msgspec.to_builtins(shipped.agreement)
    assert_alike(msgspec.to_builtins(found.agreement), kept)


def test_the_shipped_model_mostly_adds_but_no_algorithm_foresees_all_its_errors(shipped):
    agreement = shipped.agreement
    assert agreement.of(agreement.best).answer.agreement.low > 0.99
    assert (
        agreement.of(AS_DISSECTED).answer.agreement.low
        > agreement.of(ALGORITHM_1).answer.agreement.high
    ), "what the dissection found is nearer than what the paper states"
    assert agreement.best_on_errors == AS_DISSECTED
    assert 0.4 < agreement.of(AS_DISSECTED).answer.also_wrong.estimate < 0.8


def test_inside_the_shipped_model_the_claims_hold_but_for_deep_cascades(shipped):
    inside = scrubbed(shipped, AS_DISSECTED)
    for scrub in (inside.joint, inside.heads):
        assert scrub.low > 0.95
    assert scrubbed(shipped, WRONG).joint.high < 0.3
