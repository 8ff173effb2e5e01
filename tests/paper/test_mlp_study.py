"""The MLP study: its exam on models whose abilities are known, its runs, and its page."""

import pytest
import torch
from built_adder import built_adder

from carryscope.core.errors import CallError
from carryscope.core.evidence import Mean, Share
from carryscope.core.progress import silent
from carryscope.model.files import load_model
from carryscope.run import Run
from carryscope.task.columns import Columns
from carryscope.training.config import part_of
from carryscope.training.data import held_out_questions
from carryscope.training.presets import run_config
from carryscope.training.trainer import Trainer
from paper import mlp as study_module
from paper.mlp import BASE, STUDY, VARIANTS, CaseRight, Subject, exam, pages, sit

SMALL = {"steps": 6, "d_model": 8, "batch": 32}


@pytest.fixture(scope="module", autouse=True)
def few_questions_of_each_kind():
    """What the models can do is not the point of most tests here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study_module, "UNIFORM_QUESTIONS", 60)
        patch.setattr(study_module, "BASE_RECIPE", run_config("tiny", SMALL))
        patch.setattr(study_module, "STEPS", 5)
        patch.setattr("carryscope.training.summary.UNIFORM_QUESTIONS", 50)
        patch.setattr("carryscope.training.data.HELD_OUT_BATCHES", 2)
        patch.setattr(study_module, "sit", lambda model: sit(model, each=20))
        held_out_questions.cache_clear()
        yield
    held_out_questions.cache_clear()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A base that has hardly been trained, and its variants, by name."""
    there, results = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("results")
    STUDY.make(there, results, silent, workers=1)
    found = {one.name for one in STUDY.read(results)}
    assert found == {BASE, *(variant.name for variant in VARIANTS)}
    return there / "mlp"


def weights(directory):
    return dict(load_model(directory).state_dict())


def same(one, other, *parts):
    """Which matrices of these parts are the same bit for bit in both."""
    names = [name for name in one if part_of(name) in parts and ".W_" in f".{name}"]
    return [torch.equal(one[name], other[name]) for name in names]


@pytest.mark.parametrize("digits", [1, 2, 4])
def test_every_question_of_the_exam_has_its_look_ahead(digits):
    for case, questions in exam(digits, 50).items():
        columns = Columns.of(questions)
        assert (columns.look_ahead[:, case.digit] == case.depth).all()
        assert (columns.carry_in[:, case.digit] == case.carrying).all()


@pytest.mark.parametrize("layout", ["plain", "signed"])
def test_an_adder_that_looks_two_columns_down_does_all_but_cascades(layout):
    found = sit(built_adder(4, reach=2, format=layout), each=50)
    cases = ["BA", "UC1", "simple US9", "cascade 2", "cascade 3", "quiet nines"]
    assert list(dict.fromkeys(cell.case for cell in found)) == cases
    for cell in found:
        able = not cell.case.startswith("cascade")
        assert cell.right.estimate == able, (cell.digit, cell.case)


@pytest.mark.parametrize(
    ("name", "learns", "kept"),
    [
        ("fresh-mlp", "mlp", ("embeddings", "attention", "readout")),
        ("fresh-attention", "attention", ("embeddings", "mlp", "readout")),
    ],
)
def test_only_the_part_that_is_new_has_moved(runs, name, learns, kept):
    before, after = weights(runs / BASE), weights(runs / name)
    assert all(same(before, after, *kept))
    assert not any(same(before, after, learns))


@pytest.mark.parametrize("frozen", ["attention", "mlp"])
def test_a_control_has_a_frozen_part_that_was_never_trained(runs, frozen):
    found, base = weights(runs / f"untrained-{frozen}"), weights(runs / BASE)
    drawn = Trainer(Run(runs / f"untrained-{frozen}").config).model.state_dict()
    assert all(same(found, drawn, frozen))
    assert not any(same(found, base, "attention", "mlp"))
    assert all(same(found, base, "embeddings", "readout"))


def test_what_is_new_is_not_what_the_base_had_begun_with(runs):
    began = Trainer(Run(runs / BASE).config).model.state_dict()
    drawn = Trainer(Run(runs / "fresh-mlp").config).model.state_dict()
    assert not any(same(began, drawn, "mlp"))


def test_the_model_without_an_mlp_has_none(runs):
    assert not any(".mlp." in name for name in weights(runs / "no-mlp"))


def test_a_base_without_an_mlp_is_refused(runs):
    with pytest.raises(CallError, match="has no MLP, or no recipe to repeat"):
        VARIANTS[1].config(Run(runs / "no-mlp"), 5)


def subject(name, loss):
    """A subject that is right in 70 % of one case."""
    return Subject(
        name=name,
        about=name,
        weights_sha256="",
        seed=0,
        steps=400,
        trained=1,
        training_loss=loss,
        held_out_loss=Mean(loss, 100, loss, loss),
        uniform_right=Share.measured(1, 2),
        right=[CaseRight(digit=d, case="BA", right=Share.measured(7, 10)) for d in ("A1", "A0")],
    )


def page_of(**losses):
    known = {BASE: 0.01, "no-mlp": 0.5, "fresh-mlp": 0.012, "fresh-attention": 0.2}
    known |= {"untrained-attention": 1.0, "untrained-mlp": 0.4}
    known |= {name.replace("_", "-"): loss for name, loss in losses.items()}
    (text,) = pages([subject(name, loss) for name, loss in known.items()]).values()
    return text


def test_the_statement_follows_the_numbers():
    said = page_of()
    assert "the loss is 50 times the base's (0.500 against 0.010 in training after 400" in said
    assert "So what a fresh MLP needs is in the trained attention" in said
    assert "fresh attention ends at 20 times the base's loss" in said
    assert "So what fresh attention needs" not in said


def test_where_a_control_does_as_well_nothing_is_concluded():
    assert "So what" not in page_of(untrained_attention=0.011)


def test_a_case_is_pooled_over_the_digits_that_have_it():
    assert subject("x", 1.0).by_case() == {"BA": Share.measured(14, 20)}


def test_the_committed_base_is_a_whole_training():
    base = next(one for one in STUDY.read() if one.name == BASE)
    assert (base.steps, base.seed) == (28_125, 129_000)
