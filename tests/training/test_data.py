import random

import numpy as np
import pytest
import torch

from carryscope.task.columns import Columns
from carryscope.task.curated import curated_questions, question_keys
from carryscope.training.config import TrainingConfig
from carryscope.training.data import AuthorsStream, held_out_questions, training_batch

PAPER = TrainingConfig(seed=3)
OURS = TrainingConfig(seed=3, nines=0.6, paper_tail=0.2, steps=100, batch=5000)


def test_a_batch_is_a_function_of_seed_and_step():
    once, again = (training_batch(PAPER, 5, 17).texts() for _ in range(2))
    assert once == again
    assert once != training_batch(PAPER, 5, 18).texts()
    assert once != training_batch(TrainingConfig(seed=4), 5, 17).texts()


@pytest.mark.parametrize("recipe", [PAPER, OURS])
def test_curated_questions_are_never_trained_on(recipe):
    curated = question_keys(curated_questions(2))
    assert len(curated) > 30
    for step in range(100):
        assert not np.isin(question_keys(training_batch(recipe, 2, step)), curated).any()


def test_the_authors_stream_draws_what_their_notebook_draws():
    torch.manual_seed(129000)
    random.seed(129000)
    recipe, enriched = TrainingConfig(stream="authors"), 0
    for step in range(12):
        one, two = torch.randint(0, 10, (64, 5)), torch.randint(0, 10, (64, 5))
        if random.randint(1, 5) == 1:
            enriched += 1
            changed, kept = (one, two) if random.randint(1, 2) == 1 else (two, one)
            for cell in torch.randperm(320)[:64].tolist():
                changed[cell // 5, cell % 5] = 9 - kept[cell // 5, cell % 5]
        batch = training_batch(recipe, 5, step)
        assert batch.first.tolist() == one.flip(1).tolist()
        assert batch.second.tolist() == two.flip(1).tolist()
    assert enriched


def test_a_batch_of_the_authors_stream_does_not_depend_on_what_was_drawn_before():
    recipe = TrainingConfig(stream="authors", seed=3)
    inorder = [training_batch(recipe, 5, step).texts() for step in range(9)]
    assert training_batch(recipe, 5, 4).texts() == inorder[4]
    assert training_batch(recipe, 5, 8).texts() == inorder[8]
    assert AuthorsStream(recipe, 5).batch(8).texts() == inorder[8]


def test_our_rule_gives_each_question_its_own_share_of_nines():
    nines = Columns.of(training_batch(OURS, 10, 0)).make_sum_9.mean(axis=1)
    # Shares are uniform between 0 and 0.6: 0.3 on average, and one column in ten anyway.
    assert nines.mean() == pytest.approx(0.3 + 0.7 * 0.1, abs=0.01)
    assert nines.std() > 0.2  # a fixed share of 0.37 in ten columns would give 0.15


def test_our_rule_can_start_with_more_nines():
    start = TrainingConfig(seed=3, nines=0.6, nines_start=0.1, steps=100, batch=5000)
    shares = [Columns.of(training_batch(start, 5, step)).make_sum_9.mean() for step in (9, 10)]
    assert shares[0] == pytest.approx(0.65 + 0.35 * 0.1, abs=0.01)
    assert shares[1] == pytest.approx(0.3 + 0.7 * 0.1, abs=0.01)


def test_our_rule_can_draw_columns_next_to_nines():
    recipe = TrainingConfig(seed=3, nines=1.0, near_nines=0.6, paper_tail=0.0, batch=20_000)
    questions = training_batch(recipe, 5, 0)
    raw = questions.first.astype(int) + questions.second
    # Nines overwrite: half of all columns stay, 0.3 of them drawn as 8 or 10, the rest by chance.
    assert np.mean((raw == 8) | (raw == 10)) == pytest.approx(0.5 * (0.3 + 0.7 * 0.18), abs=0.01)
    assert np.mean(raw == 9) == pytest.approx(0.5 + 0.5 * 0.7 * 0.1, abs=0.01)


def test_a_batch_has_the_size_that_the_recipe_gives_its_step():
    growing = TrainingConfig(batch=8, final_batch=16, steps=10)
    assert [len(training_batch(growing, 5, step)) for step in (0, 5, 9)] == [8, 8, 14]


def test_the_end_of_our_rule_is_the_papers():
    shares = [Columns.of(training_batch(OURS, 5, step)).make_sum_9.mean() for step in (79, 80)]
    assert shares[0] > 0.35
    assert shares[1] < 0.3


def test_held_out_questions_are_fixed_and_enriched_by_the_papers_rule():
    questions = held_out_questions(5)
    assert len(questions) == 8192
    by_batch = Columns.of(questions).make_sum_9.reshape(128, -1).mean(axis=1)
    assert 0.1 < np.mean(by_batch > 0.19) < 0.3
