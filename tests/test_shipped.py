"""The model that comes with the package is what its card says."""

import pytest

import carryscope
from carryscope.model.prediction import predict
from carryscope.runs import SHIPPED
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


def test_its_held_out_loss_is_the_one_on_its_card(run, model):
    answers = predict(model, held_out_questions(5), free_running=False)
    assert answers.loss.mean() == pytest.approx(run.training().held_out_loss.estimate, rel=1e-3)


def test_its_curated_answers_are_those_on_its_card(run, model):
    assert curated_exam(model) == run.training().curated_correct


def test_its_card_is_the_one_its_findings_give(run):
    assert (SHIPPED / "README.md").read_text() == card(run.training(), run.config)


def test_it_adds_simple_sums_and_fails_at_cascades_as_the_paper_found(run):
    exam = run.training().curated_correct
    assert exam["simple US9"].estimate > 0.9
    assert exam["cascade US9"].high < 0.9
