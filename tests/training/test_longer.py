"""A longer training that begins with the steps of a shorter one ends as if it had made them."""

from functools import partial

import pytest

from carryscope.core.errors import CallError
from carryscope.core.progress import Stopped
from carryscope.training.longer import begins_with, hand_on
from carryscope.training.loop import train
from carryscope.training.presets import run_config

SMALL = {"digits": 2, "d_model": 24}
SHORT = run_config("paper-5", {**SMALL, "steps": 4})
LONG = run_config("paper-5-long", {**SMALL, "steps": 10})

pytestmark = pytest.mark.usefixtures("few_questions")


def files(run):
    return [(run / name).read_bytes() for name in ("model.safetensors", "metrics.jsonl")]


def test_it_makes_only_the_steps_that_are_missing_and_ends_the_same(tmp_path):
    train(LONG, tmp_path / "whole")
    train(SHORT, tmp_path / "alone")
    handing_on = partial(hand_on, tmp_path / "short", LONG, tmp_path / "long")
    train(SHORT, tmp_path / "short", on_last_step=handing_on)
    made = []
    train(LONG, tmp_path / "long", on_step=lambda record: made.append(record.step))
    assert made == [5, 6, 7, 8, 9, 10]
    assert files(tmp_path / "long") == files(tmp_path / "whole")
    assert files(tmp_path / "short") == files(tmp_path / "alone")
    assert not (tmp_path / "short" / "checkpoint").exists()


def test_a_longer_run_that_has_steps_of_its_own_keeps_them(tmp_path):
    with pytest.raises(Stopped):
        train(LONG, tmp_path / "long", should_stop=lambda: True)
    before = (tmp_path / "long" / "metrics.jsonl").read_bytes()
    handing_on = partial(hand_on, tmp_path / "short", LONG, tmp_path / "long")
    train(SHORT, tmp_path / "short", on_last_step=handing_on)
    assert (tmp_path / "long" / "metrics.jsonl").read_bytes() == before


def test_a_hand_over_that_was_cut_short_is_made_by_the_next_call(tmp_path):
    """The config came, the steps did not."""

    def killed():
        hand_on(tmp_path / "short", LONG, tmp_path / "long")
        (tmp_path / "long" / "checkpoint" / "state.safetensors").unlink()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(SHORT, tmp_path / "short", on_last_step=killed)
    handing_on = partial(hand_on, tmp_path / "short", LONG, tmp_path / "long")
    train(SHORT, tmp_path / "short", on_last_step=handing_on)
    made = []
    train(LONG, tmp_path / "long", on_step=lambda record: made.append(record.step))
    assert made[0] == 5


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 1},
        {"d_model": 48},
        {"steps": 3},
        {"schedule": "linear"},
        {"final_batch": 128},
        {"nines": 0.5},
    ],
    ids=str,
)
def test_a_training_that_begins_differently_is_refused(tmp_path, changes):
    other = run_config("paper-5", {**SMALL, "steps": 10, **changes})
    assert not begins_with(other, SHORT)
    handing_on = partial(hand_on, tmp_path / "short", other, tmp_path / "other")
    with pytest.raises(CallError, match="does not begin as"):
        train(SHORT, tmp_path / "short", on_last_step=handing_on)


def test_a_recipe_that_knows_its_end_begins_only_as_one_of_its_own_length():
    """With a rate that falls to the last step, no step of a longer training is the same."""
    fast = [run_config("fast-5", {"steps": steps}) for steps in (100, 200)]
    assert not begins_with(fast[1], fast[0])
