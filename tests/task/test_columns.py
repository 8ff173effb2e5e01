import numpy as np
import pytest
from cases import CASES, Case

from carryscope.task.columns import Columns, QuestionClass, Task
from carryscope.task.operation import State
from carryscope.task.questions import Questions, parse_question
from carryscope.task.sampling import uniform

cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def columns_of(case: Case) -> Columns:
    return Columns.of(parse_question(case.question, 5))


def spelled(row: np.ndarray) -> str:
    """Highest digit first, as people write."""
    return "".join(str(int(x)) for x in row[::-1])


@cases
def test_states_are_as_worked_out_by_hand(case):
    assert "".join(State(int(s)).letter for s in columns_of(case).state[0][::-1]) == case.states


@cases
def test_task_classes_are_as_worked_out_by_hand(case):
    assert " ".join(Task(int(t)).name for t in columns_of(case).task[0][::-1]) == case.tasks


@cases
def test_look_ahead_is_as_worked_out_by_hand(case):
    columns = columns_of(case)
    assert spelled(columns.look_ahead[0]) == case.look_ahead
    assert spelled(columns.carry_in[0]) == case.carrying


@cases
def test_question_class_is_as_worked_out_by_hand(case):
    assert QuestionClass(int(columns_of(case).question_class[0])).label == case.question_class


def test_cascade_of_three_nines_is_us9_at_every_column():
    columns = Columns.of(parse_question("9995+5", 4))
    assert columns.task[0, 1:4].tolist() == [Task.US9] * 3


def test_sub_tasks_of_one_column_follow_from_its_raw_sum():
    pairs = [(a, b) for a in range(10) for b in range(10)]
    columns = Columns.of(Questions.from_integers(pairs, 1))
    sums = np.array([a + b for a, b in pairs])
    assert (columns.base_add[:, 0] == sums % 10).all()
    assert (columns.make_carry[:, 0] == (sums >= 10)).all()
    assert (columns.make_sum_9[:, 0] == (sums == 9)).all()
    assert np.bincount(columns.state[:, 0]).tolist() == [45, 10, 45]


@pytest.mark.parametrize("digits", [1, 2, 5, 10, 20])
def test_carry_in_is_the_carry_of_integer_addition(generator, digits):
    questions = uniform(generator, 200, digits)
    carry = Columns.of(questions).carry_in
    for (first, second), row in zip(questions.integers(), carry, strict=True):
        expected = [(first % 10**k + second % 10**k) >= 10**k for k in range(digits + 1)]
        assert row.tolist() == expected
