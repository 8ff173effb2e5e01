"""The MLP study: its exam on models whose abilities are known, its runs, and what it says."""

import shutil
from contextlib import nullcontext

import msgspec
import pytest
import torch
from built_adder import built_adder

from carryscope.core.errors import CallError
from carryscope.core.evidence import Mean, Share
from carryscope.core.progress import Stopped, silent
from carryscope.model.files import load_model, save_weights
from carryscope.run import Run
from carryscope.task.columns import Columns
from carryscope.training.config import part_of
from carryscope.training.data import held_out_questions
from carryscope.training.loop import train
from carryscope.training.presets import run_config
from carryscope.training.trainer import Trainer
from paper.exam import (
    EACH,
    CaseRight,
    cases,
    exam,
    sit,
)
from paper.mlp import study as study_module
from paper.mlp.figures import abilities, relearning
from paper.mlp.finding import (
    BASE,
    FRESH_ATTENTION,
    FRESH_MLP,
    NO_MLP,
    UNTRAINED_ATTENTION,
    UNTRAINED_MLP,
    CurvePoint,
    Milestone,
    Subject,
    overall,
)
from paper.mlp.study import base_subject, mlp_study, variant_subject
from paper.mlp.table import study_page
from paper.mlp.variants import VARIANTS, train_variant

SMALL = {"steps": 6, "d_model": 8, "batch": 32}


@pytest.fixture(scope="module", autouse=True)
def few_questions_of_each_kind():
    """What the models can do is not the point of most tests here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study_module, "QUESTIONS", 60)
        patch.setattr(study_module, "UNIFORM_QUESTIONS", 60)
        patch.setattr("carryscope.training.summary.UNIFORM_QUESTIONS", 50)
        patch.setattr("carryscope.training.data.HELD_OUT_BATCHES", 2)
        held_out_questions.cache_clear()
        yield
    held_out_questions.cache_clear()


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A run that has hardly been trained."""
    directory = tmp_path_factory.mktemp("runs") / "base"
    train(run_config("tiny", SMALL), directory)
    return Run(directory)


def made(base, directory, *, steps=5, progress=silent):
    """The study of a run, its variants one after the other."""
    first = base_subject(base, steps)
    settings = (base.directory, first.held_out_loss.estimate, steps)
    others = [variant_subject(v, *settings, directory / v.name, 1, progress) for v in VARIANTS]
    return mlp_study(base, [first, *others])


@pytest.fixture(scope="module")
def studied(base):
    """The study of that run, and where it is."""
    directory = base.directory.parent / "study"
    return made(base, directory), directory


def weights(directory):
    return dict(load_model(directory).state_dict())


def same(one, other, *parts):
    """Which matrices of these parts are the same bit for bit in both."""
    names = [name for name in one if part_of(name) in parts and ".W_" in f".{name}"]
    return [torch.equal(one[name], other[name]) for name in names]


@pytest.mark.parametrize("digits", [1, 2, 4])
def test_every_question_of_the_exam_has_the_look_ahead_of_its_block(digits):
    taken = exam(digits, EACH)
    columns = Columns.of(taken.questions)
    for i, case in enumerate(taken.blocks):
        block = slice(i * EACH, (i + 1) * EACH)
        assert (columns.look_ahead[block, case.digit] == case.depth).all()
        assert (columns.carry_in[block, case.digit] == case.carrying).all()
    assert len(taken.questions) == len(taken.blocks) * EACH


@pytest.mark.parametrize("layout", ["plain", "signed"])
def test_an_adder_that_looks_two_columns_down_does_all_but_cascades(layout):
    found = sit(built_adder(4, reach=2, format=layout)).right
    assert list(dict.fromkeys(cell.case for cell in found)) == cases(4)
    for cell in found:
        able = not cell.case.startswith("cascade")
        assert cell.right.estimate == able, (cell.digit, cell.case)


def test_an_adder_that_sees_far_enough_does_everything():
    assert all(cell.right.count == cell.right.of for cell in sit(built_adder(3, reach=3)).right)


def test_a_base_that_was_not_trained_is_right_about_as_often_as_by_chance(studied):
    found = studied[0].subject(BASE)
    assert found.can() == []
    own = [cell.right for cell in found.right if cell.digit != "A2"]
    assert sum(s.count for s in own) / sum(s.of for s in own) < 0.25
    assert "says nothing about the trained attention" in studied[0].statement


def test_only_the_part_that_is_new_has_moved(base, studied):
    before, directory = weights(base.directory), studied[1]
    for name, learns, kept in [
        (FRESH_MLP, "mlp", ("embeddings", "attention", "readout")),
        (FRESH_ATTENTION, "attention", ("embeddings", "mlp", "readout")),
    ]:
        after = weights(directory / name)
        assert all(same(before, after, *kept))
        assert not any(same(before, after, learns))


@pytest.mark.parametrize(
    ("name", "frozen"), [(UNTRAINED_ATTENTION, "attention"), (UNTRAINED_MLP, "mlp")]
)
def test_a_control_has_a_frozen_part_that_was_never_trained(base, studied, name, frozen):
    found = weights(studied[1] / name)
    drawn = Trainer(Run(studied[1] / name).config).model.state_dict()
    assert all(same(found, drawn, frozen))
    assert not any(same(found, weights(base.directory), "attention", "mlp"))
    assert all(same(found, weights(base.directory), "embeddings", "readout"))


def test_what_is_new_is_not_what_the_base_had_begun_with(base, studied):
    began = Trainer(base.config).model.state_dict()
    drawn = Trainer(Run(studied[1] / FRESH_MLP).config).model.state_dict()
    assert not any(same(began, drawn, "mlp"))


def test_the_model_without_an_mlp_has_none_and_gets_the_same_questions(studied):
    study, directory = studied
    assert not any(".mlp." in name for name in weights(directory / NO_MLP))
    counts = [[cell.right.of for cell in subject.right] for subject in study.subjects]
    assert all(count == counts[0] for count in counts)
    assert study.questions == len(exam(2, study_module.QUESTIONS).questions)


def stop_after(steps):
    """Progress that stops the work after so many calls."""
    seen = []

    def advance(amount=1, note=""):
        seen.append(amount)
        if len(seen) == steps:
            raise Stopped("Enough.")

    return lambda name, total=None, unit="": nullcontext(advance)


def test_what_is_trained_is_not_trained_again(base, studied):
    study, directory = studied
    assert made(base, directory, progress=stop_after(1)) == study, "no step is made"


def test_a_study_that_was_stopped_ends_as_one_that_was_not(tmp_path, base, studied):
    whole = shutil.copytree(studied[1], tmp_path / "study")
    shutil.rmtree(whole / FRESH_MLP)
    with pytest.raises(Stopped):
        made(base, whole, progress=stop_after(3))
    assert (whole / FRESH_MLP / "checkpoint").exists()
    assert not (whole / FRESH_MLP / "model.safetensors").exists()
    assert made(base, whole) == studied[0]


def with_other_weights(run):
    model = run.model()
    with torch.no_grad():
        model.unembed.b_U[0] += 1
    save_weights(model, run.directory)
    return run


def test_a_variant_of_another_base_is_refused_and_the_directory_to_delete_is_named(
    tmp_path, base, studied
):
    other = with_other_weights(Run(shutil.copytree(base.directory, tmp_path / "other")))
    for name in (NO_MLP, FRESH_MLP):
        directory = studied[1] / name
        variant = next(variant for variant in VARIANTS if variant.name == name)
        with pytest.raises(CallError, match=f"To train it again, delete {directory}.$"):
            trained(variant, other, directory)
    began = shutil.copytree(studied[1], tmp_path / "began")
    (began / FRESH_MLP / "findings" / "relearning.json").unlink()
    with pytest.raises(CallError, match="was started differently: training.start_weights"):
        trained(VARIANTS[1], other, began / FRESH_MLP)


def trained(variant, base, directory, *, loss=1.0, steps=5):
    settings = {"threads": None, "progress": silent}
    return train_variant(variant, base, directory, loss=loss, steps=steps, **settings)


def test_a_loss_that_is_never_reached_is_said_so(tmp_path, base):
    fresh_mlp = VARIANTS[1]
    marks = trained(fresh_mlp, base, tmp_path / "a", loss=1e-9)
    assert [(mark.times, mark.steps) for mark in marks] == [(10, None), (2, None), (1, None)]
    marks = trained(fresh_mlp, base, tmp_path / "b", loss=90.0, steps=51)
    assert [mark.steps for mark in marks] == [50, 50, 50]
    assert Run(tmp_path / "b").training().steps == 51


@pytest.mark.parametrize("change", ["attention only", "imported"])
def test_a_base_with_nothing_to_study_is_refused(tmp_path, base, change):
    if change == "attention only":
        train(run_config("tiny", {**SMALL, "d_mlp": 0}), tmp_path / "base")
        message = "has no MLP to study"
    else:
        shutil.copytree(base.directory, tmp_path / "base")
        path = tmp_path / "base" / "config.json"
        config = msgspec.structs.replace(base.config, training=None)
        path.write_bytes(msgspec.json.encode(config))
        message = "was imported: it has no recipe to repeat"
    with pytest.raises(CallError, match=message):
        base_subject(Run(tmp_path / "base"), 5)


def subject(name, loss, right, *, curve=(), steps=(None, None, None)):
    """A subject with one digit and these shares, in percent, of three cases."""
    return Subject(
        name=name,
        about=name,
        control=False,
        weights_sha256="",
        seed=0,
        steps=400,
        trained=1,
        held_out_loss=Mean(loss, 100, loss, loss),
        held_out_digit_loss={"A1": loss},
        uniform_right=Share.measured(1, 2),
        right=[
            CaseRight(digit="A1", case=case, right=Share.measured(10 * percent, 1000))
            for case, percent in zip(("BA", "UC1", "simple US9"), right, strict=True)
        ],
        milestones=[
            Milestone(times=times, loss=times * 0.01, steps=step)
            for times, step in zip((10, 2, 1), steps, strict=True)
        ],
        curve=[CurvePoint(step=100 * (i + 1), loss=x) for i, x in enumerate(curve)],
    )


def subjects(**changed):
    found = {
        BASE: subject(BASE, 0.01, (100, 100, 99), curve=(2.0, 0.4, 0.2, 0.01)),
        NO_MLP: subject(NO_MLP, 0.5, (100, 70, 10)),
        FRESH_MLP: subject(
            FRESH_MLP, 0.012, (100, 100, 99), curve=(0.2, 0.1), steps=(50, 150, None)
        ),
        FRESH_ATTENTION: subject(FRESH_ATTENTION, 0.2, (100, 90, 60)),
        UNTRAINED_ATTENTION: subject(UNTRAINED_ATTENTION, 1.0, (20, 20, 20)),
        UNTRAINED_MLP: subject(UNTRAINED_MLP, 0.4, (60, 60, 20)),
    }
    return found | {name.replace("_", "-"): new for name, new in changed.items()}


def test_a_sentence_says_what_a_model_can_does_in_part_and_cannot():
    said = subject("x", 0.5, (100, 70, 10)).statement()
    assert said == (
        "x: held-out loss 0.5000; can do BA; does in part UC1 (70%); cannot do simple US9 (10%)."
    )
    assert subject("x", 0.01, (100, 99, 99)).statement().endswith("can do BA, UC1, simple US9.")


def test_the_statement_follows_the_numbers():
    said = overall(subjects())
    assert "ends at 50 times the base's held-out loss: in 400 steps it does not learn UC1" in said
    assert "is learned (training loss below 0.35) after 100 steps, where the base took 300" in said
    assert "within 10 times the base's loss after 50 steps" in said
    assert "down to it not in 400 steps" in said
    assert "So what a fresh MLP needs to reach such a loss is in the trained attention" in said
    assert "It ends at 20 times that loss; with untrained weights in its place" in said


def test_a_base_that_was_trained_for_longer_is_compared_at_the_same_step_as_well():
    longer = subject(BASE, 0.01, (100, 100, 99), curve=(2.0, 0.4, 0.3, 0.25, 0.1, 0.01))
    none = subject(NO_MLP, 0.5, (100, 70, 10), curve=(2.0, 1.8, 1.7, 1.6))
    said = overall(subjects(base=msgspec.structs.replace(longer, steps=600), no_mlp=none))
    assert (
        "has 6 times the base's training loss after 400 steps (1.600 against 0.250), and ends at "
        "50 times the held-out loss that the base has after 600 steps:" in said
    )


def test_where_a_control_does_as_well_nothing_is_claimed():
    said = overall(subjects(untrained_attention=subject("c", 0.011, (100, 100, 99))))
    assert "too, so this says nothing about the trained attention" in said
    assert "So what a fresh MLP needs" not in said


def test_where_the_model_without_an_mlp_does_as_well_it_is_not_called_needed():
    said = overall(subjects(no_mlp=subject("n", 0.011, (100, 100, 99))))
    assert "ends at 1.1 times the base's held-out loss: it does all that the base does." in said


def test_the_curves_are_said_to_be_means_over_as_many_steps_as_they_are(studied):
    """Also of a base that was trained for longer, and has more points."""
    known = studied[0]
    longer = subject(BASE, 0.01, (100, 100, 99), curve=(2.0, 0.4, 0.3, 0.25, 0.1, 0.01))
    variant = subject(FRESH_MLP, 0.012, (100, 100, 99), curve=(0.2, 0.1))
    drawn = relearning(msgspec.structs.replace(known, subjects=[longer, variant]))
    assert drawn.subtitle.startswith("Means over 100 steps each, teacher-forced")


def test_the_page_and_the_figures_show_every_model(studied):
    study = studied[0]
    page = study_page(study)
    assert study.statement in page
    for found in study.subjects:
        assert f"{found.about}, digit by digit:" in page
        assert f"| {found.about} | {found.trained:,} |" in page
    cell = study.subject(NO_MLP).right[0]
    assert f"| BA | {1000 * cell.right.count // cell.right.of / 10:.1f} % (" in page
    for figure in (abilities(study), relearning(study)):
        drawn = figure.svg()
        assert all(found.about in drawn for found in study.subjects)
        assert "Infinity" not in drawn
    assert relearning(study).subtitle.startswith("Means over 1 step each, teacher-forced")
    assert len(abilities(study).csv().splitlines()) == 1 + sum(len(s.right) for s in study.subjects)
