import numpy as np
import pytest
from cases import CASES, exact_sum, look_ahead_sum

from carryscope.task.columns import Columns
from carryscope.task.questions import Questions, parse_question
from carryscope.task.sampling import enriched, uniform


def algorithm_1_as_printed(questions: Questions) -> np.ndarray:
    """Algorithm 1 line by line: the n low answer digits, highest computed first."""
    columns = Columns.of(questions)
    answer = np.zeros_like(columns.sums)
    for pos in reversed(range(questions.digits)):
        zero = np.zeros(len(questions), dtype=bool)
        mc1_prev_prev = columns.make_carry[:, pos - 2] if pos - 2 >= 0 else zero
        mc1_prev = columns.make_carry[:, pos - 1] if pos - 1 >= 0 else zero
        ms9_prev = columns.make_sum_9[:, pos - 1] if pos - 1 >= 0 else zero
        prev_prev = ~mc1_prev & ms9_prev & mc1_prev_prev
        answer[:, pos] = columns.answer_digit(pos, mc1_prev | prev_prev)
    return answer


def spelled(answer: np.ndarray) -> str:
    return "".join(map(str, answer[0][::-1]))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_named_sums(case):
    question = parse_question(case.question, 5)
    assert spelled(exact_sum(question)) == case.answer
    assert spelled(look_ahead_sum(question, reach=2)) == case.algorithm_1


@pytest.mark.parametrize("digits", [1, 2, 3, 10, 20])
def test_exact_sum_is_integer_addition(generator, digits):
    questions = uniform(generator, 300, digits)
    for (first, second), answer in zip(questions.integers(), exact_sum(questions), strict=True):
        assert int("".join(map(str, answer[::-1]))) == first + second


@pytest.mark.parametrize("digits", [1, 2, 3, 5, 12])
def test_algorithm_1_completes_the_printed_one_and_leaves_its_digits_alone(generator, digits):
    questions = enriched(generator, 2000, digits, batch_share=1.0, cell_share=0.5)
    completed, printed = look_ahead_sum(questions, reach=2), algorithm_1_as_printed(questions)
    assert completed.shape[1] == digits + 1
    assert (completed[:, :-1] == printed).all()


def test_algorithm_1_errs_exactly_on_carrying_cascades_of_two_nines_and_more(generator):
    questions = enriched(generator, 5000, 6, batch_share=1.0, cell_share=0.5)
    columns = Columns.of(questions)
    wrong = look_ahead_sum(questions, reach=2) != exact_sum(questions)
    assert (wrong == (columns.carry_in & (columns.look_ahead >= 2))).all()
    assert wrong.any()


def test_looking_ahead_over_all_columns_is_exact():
    questions = Questions.from_integers([(99999, 1), (44445, 55555), (1234, 8769)], 5)
    assert (look_ahead_sum(questions, reach=5) == exact_sum(questions)).all()
    assert (look_ahead_sum(questions, reach=4) != exact_sum(questions)).any()
