"""What a hypothesis predicts, held against questions put together by hand."""

import numpy as np
import pytest
from cases import exact_sum, look_ahead_sum

from carryscope.dissection.hypotheses import MINUS, PLUS, Hypothesis, Pairs, hypotheses_for
from carryscope.task.operation import ADD, MIXED, SUBTRACT
from carryscope.task.questions import Questions, parse_question
from carryscope.task.sampling import uniform, with_nines
from carryscope.task.tokens import Format

DIGITS = 4


def drawn_pairs(generator, operation) -> Pairs:
    def drawn() -> Questions:
        cells = generator.random((500, DIGITS)) < 0.4
        return with_nines(generator, uniform(generator, 500, DIGITS, operation), cells)

    return Pairs(drawn(), drawn())


@pytest.fixture
def pairs(generator) -> Pairs:
    return drawn_pairs(generator, ADD)


def hybrid(pairs: Pairs, column: int) -> Questions:
    """The base with one column of the source."""
    first, second = pairs.base.first.copy(), pairs.base.second.copy()
    first[:, column] = pairs.source.first[:, column]
    second[:, column] = pairs.source.second[:, column]
    return Questions(first, second)


@pytest.mark.parametrize("digit", range(1, DIGITS + 1))
def test_the_state_of_a_column_is_all_that_higher_digits_see_of_it(pairs, digit):
    for column in range(digit):
        said = pairs.predict(Hypothesis("state", column, digit)).value
        np.testing.assert_array_equal(said, exact_sum(hybrid(pairs, column))[:, digit])


@pytest.mark.parametrize("digit", range(DIGITS))
def test_base_add_is_all_that_a_digit_sees_of_its_own_column(pairs, digit):
    said = pairs.predict(Hypothesis("BA", digit, digit)).value
    np.testing.assert_array_equal(said, exact_sum(hybrid(pairs, digit))[:, digit])


@pytest.mark.parametrize("digit", range(DIGITS + 1))
def test_the_digit_itself_is_the_sources(pairs, digit):
    said = pairs.predict(Hypothesis("digit", digit, digit)).value
    np.testing.assert_array_equal(said, exact_sum(pairs.source)[:, digit])


def test_the_example_of_the_docstring():
    pairs = Pairs(parse_question("17811+22222", 5), parse_question("17311+22222", 5))
    prediction = pairs.predict(Hypothesis("MC1", 2, 3))
    assert pairs.own_digit(3) == [0]
    assert prediction.value == [9]
    assert prediction.telling.all()


def test_carry_in_moves_the_carry_and_leaves_the_column():
    pairs = Pairs(parse_question("40+20", 2), parse_question("15+15", 2))
    assert pairs.predict(Hypothesis("carry_in", 1, 1)).value == [7]


def test_sure_predictions_are_those_of_algorithm_1_too(pairs):
    for digit in range(1, DIGITS + 1):
        prediction = pairs.predict(Hypothesis("state", digit - 1, digit))
        shallow = look_ahead_sum(hybrid(pairs, digit - 1), reach=2)[:, digit]
        agree = shallow == exact_sum(hybrid(pairs, digit - 1))[:, digit]
        assert not (prediction.sure & ~agree).any()
        assert prediction.telling.any()
        assert not (prediction.telling & (prediction.value == pairs.own_digit(digit))).any()


def test_a_base_that_the_model_gets_wrong_says_nothing(pairs):
    nothing = pairs.predict(Hypothesis("BA", 1, 1), right=np.zeros(500, dtype=bool))
    assert not nothing.sure.any()
    assert not nothing.telling.any()


def test_every_variable_a_digit_depends_on_is_a_hypothesis():
    names = [str(h) for h in hypotheses_for(2, Format(5))]
    assert names[:2] == ["BA(2)", "MC1(1)"]
    assert names[-2:] == ["carry_in(2)", "digit(2)"]
    assert {"MS9(0)", "state(0)", "MC1(0)"} <= set(names)
    assert [str(h) for h in hypotheses_for(0, Format(5))] == ["BA(0)", "digit(0)"]
    assert "BA(5)" not in [str(h) for h in hypotheses_for(5, Format(5))]


def worth(questions: Questions, negative, kind=None) -> list[int]:
    """The answer without its sign, if the numbers are exchanged where this says so."""
    kinds = np.ones(len(questions)) if kind is None else kind
    return [
        a + b if not subtract else b - a if exchanged else a - b
        for (a, b), exchanged, subtract in zip(questions.integers(), negative, kinds, strict=True)
    ]


def digit_of(number: int, digit: int) -> int:
    """Of a number that may be negative, as if a borrow left the highest column."""
    return number // 10**digit % 10


@pytest.mark.parametrize("operation", [SUBTRACT, MIXED])
def test_a_column_of_the_source_is_read_with_the_operator_and_sign_of_the_base(
    operation, generator
):
    pairs = drawn_pairs(generator, operation)
    kind, negative = pairs.base.kind, pairs.base.negative
    for column in range(DIGITS):
        mixed = worth(hybrid(pairs, column), negative, kind)
        for digit in range(column + 1, DIGITS):
            said = pairs.predict(Hypothesis("state", column, digit)).value
            assert said.tolist() == [digit_of(number, digit) for number in mixed]


def test_a_part_that_carries_the_sign_exchanges_the_numbers_of_the_base(generator):
    pairs = drawn_pairs(generator, SUBTRACT)
    exchanged = worth(pairs.base, pairs.source.negative)
    for digit in range(DIGITS):
        said = pairs.predict(Hypothesis("sign", digit, digit)).value
        assert said.tolist() == [digit_of(number, digit) for number in exchanged]


def test_a_part_that_carries_the_operator_answers_the_base_by_the_other_operation(generator):
    pairs = drawn_pairs(generator, MIXED)
    other = worth(pairs.base, pairs.base.negative, pairs.source.kind)
    for digit in range(DIGITS):
        said = pairs.predict(Hypothesis("operator", digit, digit)).value
        assert said.tolist() == [digit_of(number, digit) for number in other]


def test_the_sign_follows_a_column_of_the_source_as_it_is_written(generator):
    pairs, sign = drawn_pairs(generator, SUBTRACT), DIGITS + 1
    for column in range(DIGITS):
        said = pairs.predict(Hypothesis("state", column, sign)).value
        below = [a < b for a, b in hybrid(pairs, column).integers()]
        assert said.tolist() == np.where(below, MINUS, PLUS).tolist()
    finished = pairs.predict(Hypothesis("digit", sign, sign)).value
    assert finished.tolist() == np.where(pairs.source.negative, MINUS, PLUS).tolist()


def test_hypotheses_have_the_names_of_their_operation():
    signed = Format(3, "signed", 15, SUBTRACT)
    assert [str(h) for h in hypotheses_for(0, signed)] == ["MD(0)", "sign(0)", "digit(0)"]
    assert hypotheses_for(3, signed) == []  # always 0
    assert [str(h) for h in hypotheses_for(4, signed)][:3] == ["MB(2)", "MZ(2)", "state(2)"]
    mixed = [str(h) for h in hypotheses_for(3, Format(3, "signed", 15, MIXED))]
    assert mixed[0] == "MC1/MB(2)"
    assert mixed[-2:] == ["operator(3)", "digit(3)"]
