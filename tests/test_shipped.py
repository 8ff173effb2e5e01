"""The model that comes with the package is what its card says."""

import pytest

import carryscope
from carryscope.dissection.dissect import dissect
from carryscope.model.prediction import predict
from carryscope.shipped import SHIPPED
from carryscope.stages import STAGES
from carryscope.training.data import held_out_questions
from carryscope.training.presets import preset
from carryscope.training.summary import card, curated_exam


@pytest.fixture(scope="module")
def run():
    return carryscope.load()


@pytest.fixture(scope="module")
def model(run):
    return run.model()


def test_it_was_made_by_the_default_recipe(run):
    assert run.config.preset == "fast-5"
    assert run.config.training == preset("fast-5").training
    assert run.config.model == preset("fast-5").model
    assert len(run.metrics()) == preset("fast-5").training.steps


@pytest.mark.parametrize("name", ["fast-5", "exact-5", "exact-7"])
def test_every_finding_that_comes_with_the_package_can_be_used(name):
    shipped = carryscope.load(name)
    for stage in STAGES:
        kept = shipped.read(stage)
        assert not kept.why
        assert (kept.found is not None) == (shipped.directory / stage.file).exists()


def test_its_held_out_loss_is_the_one_on_its_card(run, model):
    answers = predict(model, held_out_questions(5), free_running=False)
    assert answers.loss.mean() == pytest.approx(run.training().held_out_loss.estimate, rel=1e-3)


def test_its_curated_answers_are_those_on_its_card(run, model):
    assert curated_exam(model) == run.training().curated_correct


def test_its_card_is_the_one_its_findings_give(run):
    assert (SHIPPED / "fast-5" / "README.md").read_text() == card(run.training(), run.config)


def test_it_adds_simple_sums_and_fails_at_cascades_as_the_paper_found(run):
    exam = run.training().curated_correct
    assert exam["simple US9"].estimate > 0.9
    assert exam["cascade US9"].high < 0.9


@pytest.fixture(scope="module")
def fresh(model):
    """Some of the dissection, made anew."""
    *_, found = dissect(model, parts=["attention"])
    return found


def test_it_has_the_double_staircase(fresh):
    assert fresh.attention.staircase == "present"
    roles = {head.role for head in fresh.attention.heads}
    assert roles == {"own column", "one below", "two below"}
    for reading in fresh.attention.readings:
        if reading.column is not None:
            pair = [reading.tokens[f"D{reading.column}"], reading.tokens[f"D'{reading.column}"]]
            assert min(pair) > max(pair) / 2, "both numbers are read: a double one"


def test_its_first_digit_looks_further_than_the_others(fresh):
    assert [fresh.attention.reach(k) for k in range(6)] == [0, 1, 2, 2, 2, 3]


def test_its_findings_are_about_its_weights_and_of_this_version(run, fresh):
    kept = run.dissection()
    assert kept.weights_sha256 == fresh.weights_sha256
    assert kept.package_version == fresh.package_version
    assert [h.role for h in kept.attention.heads] == [h.role for h in fresh.attention.heads]


def test_every_sub_task_of_algorithm_1_was_found_in_it(run):
    subtasks = run.dissection().subtasks
    assert subtasks.missing == []
    assert subtasks.purpose_of("P14.L0.H0") == "A2.BA(2)"
    assert subtasks.purpose_of("P14.L0.H1") == "A2.state(1)"
    assert subtasks.purpose_of("P14.L0.H2") == "A2.MC1(0)"
