import numpy as np
import pytest

from carryscope.task.columns import Columns, Task
from carryscope.task.curated import curated_questions, question_keys, without_curated
from carryscope.task.questions import Questions
from carryscope.task.strata import LookAhead, look_ahead_probabilities


def test_there_are_over_a_hundred_for_five_digits_and_each_only_once():
    texts = curated_questions(5).texts()
    assert len(texts) > 100
    assert len(set(texts)) == len(texts)


def test_the_papers_own_examples_are_among_them():
    texts = set(curated_questions(5).texts())
    assert {"888+11111", "25+79", "41127+10880", "123+877", "81818+18182", "445+555"} <= texts


@pytest.mark.parametrize("digits", [1, 2, 3, 5, 10, 15, 20])
def test_every_look_ahead_occurs_at_every_answer_digit(digits):
    columns = Columns.of(curated_questions(digits))
    found = {
        LookAhead(k, int(columns.look_ahead[row, k]), bool(columns.carry_in[row, k]))
        for row in range(len(columns.sums))
        for k in range(digits + 1)
    }
    assert found == set(look_ahead_probabilities(digits))


@pytest.mark.parametrize("digits", [2, 5, 10])
def test_every_task_class_occurs_at_every_answer_digit_that_can_have_it(digits):
    tasks = Columns.of(curated_questions(digits)).task
    for k in range(digits + 1):
        possible = {Task.BA} if k == 0 else {Task.BA, Task.UC1, Task.US9}
        if k == digits:
            possible = {Task.BA, Task.UC1}
        assert set(tasks[:, k].tolist()) == possible


def test_one_digit_models_keep_most_questions_for_training():
    assert len(curated_questions(1)) <= 10


def test_the_set_cannot_be_changed_by_accident():
    with pytest.raises(ValueError, match="read-only"):
        curated_questions(5).first[0, 0] = 9


def test_keys_tell_all_two_digit_questions_apart():
    every = Questions.from_integers([(a, b) for a in range(100) for b in range(100)], 2)
    assert len(np.unique(question_keys(every))) == 10_000


def test_curated_questions_are_replaced_and_all_others_left_alone(generator):
    curated = curated_questions(5)
    other = Questions.from_integers([(31313, 2)], 5)
    cleaned = without_curated(generator, Questions.joined([curated, other]))
    assert len(cleaned) == len(curated) + 1
    assert not set(cleaned.texts()) & set(curated.texts())
    assert cleaned.texts()[-1] == "31313+2"
