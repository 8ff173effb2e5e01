"""Questions that climb towards what a model gets wrong."""

import numpy as np

from carryscope.task.columns import Columns
from carryscope.task.curated import curated_questions, question_keys
from carryscope.task.operation import MIXED
from carryscope.task.tokens import Format
from carryscope.training.data import POOL, Climbers
from carryscope.training.presets import run_config
from carryscope.training.trainer import Trainer


def carries(questions):
    return Columns.of(questions).carry_in.sum(axis=1).astype(float)


def test_they_climb_until_they_are_as_hard_as_can_be():
    climbers = Climbers(0, Format(4))
    rounds = [climbers.climbed(step, POOL, carries) for step in range(60)]
    means = [carries(one).mean() for one in rounds]
    assert means == sorted(means)
    assert means[0] < 2.5
    assert means[-1] > 3.9


def test_a_turn_moves_as_many_as_are_asked_for_and_leaves_the_others():
    climbers = Climbers(0, Format(4))
    before = climbers.pool.first.copy()
    moved = climbers.climbed(1, 100, carries)
    changed = (climbers.pool.first != before).any(axis=1)
    assert len(moved) == 100
    assert changed[100:200].any()
    assert not changed[:100].any()
    assert not changed[200:].any()


def test_no_curated_question_is_ever_trained_on():
    reserved = question_keys(curated_questions(2))
    climbers = Climbers(0, Format(2))

    def is_curated(questions):
        return np.isin(question_keys(questions), reserved).astype(float)

    assert not is_curated(climbers.climbed(0, POOL, is_curated)).any()


def test_half_of_a_batch_is_hard_from_its_start_on():
    recipe = run_config("tiny", {"steps": 10, "batch": 9, "hard_start": 0.5}).training
    assert [recipe.hard_at(step) for step in (0, 4, 5, 9)] == [0, 0, 4, 4]
    assert run_config("tiny", {}).training.hard_at(799) == 0


def test_a_trainer_takes_questions_that_its_model_finds_harder():
    trainer = Trainer(run_config("tiny", {"steps": 30, "d_model": 24, "hard_start": 0.0}))
    before = trainer.climbers.pool.first.copy()
    trainer.advance()
    assert (trainer.climbers.pool.first != before).any()


def test_in_a_mixture_every_question_keeps_its_operation():
    climbers = Climbers(0, Format(3, "signed", 15, MIXED))
    kind = climbers.pool.kind.copy()
    moved = climbers.climbed(0, POOL, carries)
    assert (moved.kind == kind).all()
    assert set(kind) == {0, 1}
    assert carries(moved).mean() > 0.5
