import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

import carryscope
from carryscope.core.errors import CallError
from carryscope.dissection.story import LEARNT_LOSS, LossCurve, TrainingStory, training_story
from carryscope.task.tokens import Format
from carryscope.training.checkpoint import read_metrics
from carryscope.training.losses import StepRecord

SHIPPED = Path(carryscope.__file__).parent / "shipped" / "fast-5"

GUESSING = math.log(10)
SLOPE = 0.005
NAMES = ["A2", "A1", "A0"]
COUNTS = {"BA": [32, 35, 64], "UC1": [32, 26, 0], "US9": [0, 3, 0]}
STARTS = {"A2 BA": 10, "A2 UC1": 40, "A1 BA": 200, "A1 UC1": 320, "A1 US9": 500, "A0 BA": 100}
"""The step at which the loss of each pair begins to fall, along a line, from ln 10 to 0."""


def falling(start):
    return lambda step: min(GUESSING, max(0.0, GUESSING - SLOPE * (step - start)))


def crossing(start, level):
    """The first step at which a falling loss is below a level."""
    return math.floor(start + (GUESSING - level) / SLOPE) + 1


def record(step, loss_of):
    losses = {
        task: [
            loss_of[f"{name} {task}"](step) if count else None
            for name, count in zip(NAMES, counts, strict=True)
        ]
        for task, counts in COUNTS.items()
    }
    digits = [
        sum(COUNTS[task][i] * (losses[task][i] or 0) for task in COUNTS) / 64 for i in range(3)
    ]
    return StepRecord(step, sum(digits) / 3, digits, losses, COUNTS)


def story_of(loss_of, steps=1200):
    return training_story([record(step, loss_of) for step in range(1, steps + 1)], Format(2))


@pytest.fixture(scope="module")
def lines():
    return story_of({pair: falling(start) for pair, start in STARTS.items()})


@pytest.fixture(scope="module")
def shipped():
    return training_story(read_metrics(SHIPPED), Format(5))


def by_name(story):
    return {f"{pair.digit} {pair.task}": pair for pair in story.pairs}


def test_each_pair_is_learnt_at_the_step_its_formula_says(lines):
    found = {name: pair.learnt_at for name, pair in by_name(lines).items()}
    assert found == {name: crossing(start, LEARNT_LOSS) for name, start in STARTS.items()}


def test_phases_begin_where_the_formula_has_lost_a_tenth_and_nine_tenths(lines):
    a0 = lines.digits[2]
    assert a0.discovery_from == crossing(STARTS["A0 BA"], 0.9 * GUESSING)
    assert a0.clean_up_from == crossing(STARTS["A0 BA"], 0.1 * GUESSING)


def test_uc1_that_comes_first_does_not_lag():
    starts = STARTS | {"A2 UC1": 5, "A1 UC1": 150}
    story = story_of({pair: falling(start) for pair, start in starts.items()})
    assert "UC1 was learnt after BA in 0 of 2 digits." in story.statements


def test_what_was_learnt_and_lost_again_is_learnt_when_it_comes_back_for_good():
    def relapsing(step):
        return 1.0 if 600 <= step < 800 else falling(0)(step)

    story = story_of(dict.fromkeys(STARTS, relapsing))
    learnt = by_name(story)["A0 BA"].learnt_at
    assert 800 <= learnt <= 825  # the smoothed loss needs half a window to come down


def test_a_pair_that_is_never_learnt_lags_behind_one_that_is():
    flat = {"A1 UC1": lambda step: GUESSING, "A1 US9": lambda step: GUESSING}
    story = story_of({pair: falling(start) for pair, start in STARTS.items()} | flat)
    assert by_name(story)["A1 UC1"].learnt_at is None
    assert "UC1 was learnt after BA in 2 of 2 digits." in story.statements
    assert story.statements[0].endswith("Never learnt: A1.")


def test_in_a_flat_training_nothing_is_learnt():
    generator = np.random.default_rng(0)
    noisy = lambda step: GUESSING + generator.normal() / 10  # noqa: E731
    story = story_of(dict.fromkeys(STARTS, noisy))
    assert all(pair.learnt_at is None for pair in story.pairs)
    assert all(d.learnt_at is d.discovery_from is d.clean_up_from is None for d in story.digits)
    assert story.statements == ["No answer digit was learnt (loss below 0.35) by step 1,200."]


def test_statements_say_what_the_numbers_say(lines):
    first, *others = lines.statements
    a2, a1 = lines.digits[0].learnt_at, lines.digits[1].learnt_at
    assert first == f"A2 was learnt first, at step {a2}, A1 last, at step {a1}."
    assert "UC1 was learnt after BA in 2 of 2 digits." in others
    other_way = story_of({pair: falling(500 - start) for pair, start in STARTS.items()})
    assert not set(lines.statements) & set(other_way.statements)
    early = "UC1 was learnt after BA in 0 of 2 digits. US9 was learnt before UC1 in A1."
    assert early in other_way.statements


def test_a_single_step_has_neither_phases_nor_order():
    story = story_of({pair: falling(start) for pair, start in STARTS.items()}, steps=1)
    assert (story.steps, story.curves.steps, story.curves.window) == (1, [1], 1)
    assert all(pair.learnt_at is None for pair in story.pairs)
    assert story.digits[0].discovery_from is None


def test_no_steps_at_all_are_refused():
    with pytest.raises(CallError, match="at least one step"):
        training_story([], Format(2))


def test_tasks_that_never_occurred_are_left_open():
    bare = [
        StepRecord(step, 2.0, [2.0] * 3, {"BA": [2.0] * 3}, {"BA": [64] * 3})
        for step in range(1, 41)
    ]
    story = training_story(bare, Format(2))
    assert by_name(story)["A1 UC1"].learnt_at is None
    assert set(story.curves.task_loss["A1"]["UC1"]) == {None}


def test_a_sign_has_a_curve_but_no_part_in_the_order():
    signed = [
        StepRecord(step, 1.0, [0.0, 1.0, 1.0], {"BA": [None, 1.0, 1.0]}, {"BA": [0, 64, 64]})
        for step in range(1, 41)
    ]
    story = training_story(signed, Format(1, "signed"))
    assert story.curves.digit_loss["A2"] == [0.0] * 40
    assert [digit.digit for digit in story.digits] == ["A1", "A0"]
    assert "A2" not in story.curves.task_loss


def test_smoothing_weighs_a_batch_by_its_questions():
    losses, counts = np.full(100, np.nan), np.zeros(100, dtype=int)
    losses[50:52], counts[50:52] = [10.0, 0.0], [1, 99]
    smooth = LossCurve(np.arange(1, 101), losses, counts).smooth  # five steps wide
    assert smooth[50] == smooth[51] == pytest.approx(0.1)
    assert smooth[48] == 10
    assert np.isnan(smooth[47])
    assert np.isnan(smooth[54])


def test_the_shipped_training_learnt_every_digit_and_uc1_behind_ba(shipped):
    when = {name: pair.learnt_at for name, pair in by_name(shipped).items()}
    assert all(when[name] for name in ("A0 BA", "A3 BA", "A3 UC1"))
    assert all(d.discovery_from < d.clean_up_from <= shipped.steps for d in shipped.digits)
    assert sum(when[f"A{k} BA"] < when[f"A{k} UC1"] for k in range(1, 6)) >= 3
    assert 2 <= len(shipped.statements) <= 5


def test_the_shipped_curves_are_short_and_fall(shipped):
    curves = shipped.curves
    assert len(curves.steps) <= 100
    assert (curves.steps[0], curves.steps[-1]) == (1, shipped.steps)
    assert all(loss[-1] < 0.1 * loss[0] for loss in curves.digit_loss.values())
    assert "US9" not in curves.task_loss["A5"]
    assert list(curves.task_loss["A0"]) == ["BA"]


def test_the_shipped_story_loads_back_as_it_was(shipped):
    again = msgspec.json.decode(msgspec.json.encode(shipped), type=TrainingStory)
    assert again == shipped
