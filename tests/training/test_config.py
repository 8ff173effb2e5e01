import msgspec
import pytest

from carryscope.core.errors import CallError
from carryscope.model.config import ModelConfig
from carryscope.training.config import RunConfig, TrainingConfig, differences
from carryscope.training.presets import PRESETS, changed, preset, run_config


def test_the_papers_rate_rises_over_ten_steps_and_stays():
    recipe = TrainingConfig()
    assert [recipe.rate(step) for step in (0, 4, 9, 10, 4999)] == [0.1, 0.5, 1.0, 1.0, 1.0]
    authors = TrainingConfig(stream="authors")
    assert [authors.rate(step) for step in (0, 4, 9, 10, 4999)] == [0.0, 0.4, 0.9, 1.0, 1.0]


@pytest.mark.parametrize(("schedule", "middle"), [("linear", 0.5), ("cosine", 0.5)])
def test_schedules_fall_from_the_full_rate_to_nothing(schedule, middle):
    recipe = TrainingConfig(schedule=schedule, warmup=0, steps=1000)
    rates = [recipe.rate(step) for step in range(1000)]
    assert rates[0] == 1.0
    assert rates[500] == pytest.approx(middle)
    assert 0 < rates[-1] < 0.01
    assert rates == sorted(rates, reverse=True)


def test_the_batch_stays_and_then_grows_along_a_line():
    recipe = TrainingConfig(batch=64, final_batch=192, steps=1000)
    sizes = [recipe.batch_at(step) for step in range(1000)]
    assert set(sizes[:501]) == {64}
    assert (sizes[750], sizes[999]) == (128, 192)
    assert sizes == sorted(sizes)
    assert recipe.questions_in(1000) == sum(sizes)
    assert {TrainingConfig(batch=7).batch_at(step) for step in (0, 4999)} == {7}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"steps": 0}, "steps must be at least 1. Got 0."),
        ({"batch": -1}, "batch must be at least 1. Got -1."),
        ({"learning_rate": 0.0}, "learning_rate must be above 0. Got 0.0."),
        ({"enriched_cells": 1.5}, "enriched_cells must be between 0 and 1. Got 1.5."),
        ({"betas": (0.9, 1.0)}, r"betas must be from 0 to below 1. Got \(0.9, 1.0\)."),
        ({"seed": -1}, "seed must be at least 0. Got -1."),
        ({"seed": 2**32}, "seed must be at most 4294967295. Got 4294967296."),
        ({"learning_rate": float("inf")}, "learning_rate must be finite. Got inf."),
        ({"optimizer": "adam"}, "weight_decay must be 0 with adam. Got 0.1."),
        ({"sharpness": -0.1}, "sharpness must be at least 0. Got -0.1."),
        ({"sharpness_start": 1.5}, "sharpness_start must be between 0 and 1. Got 1.5."),
        ({"hard_start": -0.5}, "hard_start must be between 0 and 1. Got -0.5."),
        ({"head_delay": -1}, "head_delay must be at least 0. Got -1."),
        ({"stream": "authors", "nines": 0.5}, "nines must be 0 with the authors' stream. Got 0.5."),
        ({"stream": "authors", "enriched_batches": 0.4}, "enriched_batches must be 0.2 with the"),
    ],
)
def test_recipes_that_cannot_be_are_refused(fields, message):
    with pytest.raises(CallError, match=message):
        TrainingConfig(**fields)


def test_differences_name_the_fields_and_both_values():
    wanted = run_config("tiny", {"steps": 7, "heads": 4})
    found = run_config("tiny", {})
    text = "; ".join(differences(wanted, found))
    assert "model.heads is 2, asked for 4" in text
    assert f"training.steps is {found.training.steps}, asked for 7" in text
    assert differences(found, found) == []


def test_another_package_version_is_not_a_difference():
    config = run_config("tiny", {})
    older = msgspec.structs.replace(config, package_version="0.0.1")
    assert differences(config, older) == []


def test_all_presets_of_the_paper_are_there():
    papers = "fast-5 paper-5 paper-10 paper-15 paper-5-heads-2 paper-5-heads-4 reuse-5"
    ours = "tiny exact-3 exact-5 exact-7 exact-10 deep-5 mix-5-deep sub-3 sub-5 mix-5"
    assert set(PRESETS) == {*papers.split(), *ours.split()}
    assert preset("paper-5").training == TrainingConfig(stream="authors")
    assert preset("paper-5").model == preset("fast-5").model == ModelConfig()
    assert preset("reuse-5").model == ModelConfig(format="signed", vocabulary=15)


@pytest.mark.parametrize("digits", [3, 5])
def test_an_exact_preset_has_a_head_for_every_column(digits):
    model = preset(f"exact-{digits}").model
    assert (model.layers, model.digits, model.heads) == (1, digits, digits)


def test_columns_next_to_nines_belong_to_our_own_rule():
    with pytest.raises(CallError, match="near_nines must be 0 without nines. Got 0.5."):
        TrainingConfig(near_nines=0.5)
    with pytest.raises(CallError, match="near_nines must be between 0 and 1. Got 1.5."):
        TrainingConfig(nines=1.0, near_nines=1.5)


def test_any_field_can_be_overridden():
    config = run_config("paper-5", {"digits": 7, "learning_rate": 0.1})
    assert (config.model.digits, config.training.learning_rate) == (7, 0.1)


def test_widths_follow_the_papers_rule_when_heads_change():
    assert run_config("paper-5", {"heads": 4}).model == ModelConfig(heads=4)
    assert run_config("paper-5", {"d_model": 60}).model.d_mlp == 240
    assert run_config("paper-5", {"d_model": 60, "d_mlp": 0}).model.d_mlp == 0


def test_a_head_width_of_its_own_survives_a_change():
    config = run_config("paper-5", {"heads": 4, "d_model": 510, "d_head": 170})
    assert changed(config, {"seed": 1}).model == config.model
    assert changed(config, {"heads": 3, "d_head": 0}).model == ModelConfig()
    assert run_config("paper-5", {"d_model": 60}).model.d_head == 20


def test_a_width_of_more_heads_than_the_papers_rule_knows_survives_a_change():
    config = run_config("paper-5", {"heads": 600, "d_model": 600})
    assert changed(config, {"seed": 1}).model.d_model == 600


def test_changes_to_a_config_keep_all_else():
    config = run_config("tiny", {"digits": 3})
    assert changed(config, {"seed": 5}).model.digits == 3


def test_a_config_survives_json():
    config = run_config("reuse-5", {})
    assert msgspec.json.decode(msgspec.json.encode(config), type=RunConfig) == config


def test_an_unknown_preset_is_refused_with_the_known_ones():
    with pytest.raises(CallError, match="preset must be one of fast-5, .* Got 'slow-5'."):
        run_config("slow-5", {})


def test_an_unknown_setting_is_refused():
    with pytest.raises(CallError, match="no setting 'colour' in a recipe"):
        run_config("tiny", {"colour": 1})
