from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
from cases import stratum_names

from carryscope.core.errors import CallError
from carryscope.task.columns import Columns
from carryscope.task.questions import Questions
from carryscope.task.strata import (
    LookAhead,
    look_ahead_probabilities,
    stratum_probabilities,
    stratum_states,
)


@pytest.mark.parametrize("digits", [1, 2, 5, 8])
def test_stratum_probabilities_sum_to_exactly_one(digits):
    chances = stratum_probabilities(digits)
    assert len(chances) == 3**digits
    assert sum(chances.values()) == 1


def test_stratum_sizes_are_those_counted_over_every_two_digit_question():
    everything = Questions.from_integers(product(range(100), repeat=2), 2)
    counted = Counter(stratum_names(Columns.of(everything)))
    assert counted == {name: 10_000 * p for name, p in stratum_probabilities(2).items()}


def test_look_ahead_probabilities_are_those_counted_over_every_two_digit_question():
    columns = Columns.of(Questions.from_integers(product(range(100), repeat=2), 2))
    counted = Counter(
        LookAhead(digit, int(depth), bool(carrying))
        for depths, carries in zip(columns.look_ahead, columns.carry_in, strict=True)
        for digit, (depth, carrying) in enumerate(zip(depths, carries, strict=True))
    )
    assert {case: Fraction(n, 10_000) for case, n in counted.items()} == look_ahead_probabilities(2)


@pytest.mark.parametrize("digits", [1, 5, 20])
def test_look_ahead_probabilities_sum_to_one_for_each_answer_digit(digits):
    chances = look_ahead_probabilities(digits)
    for digit in range(digits + 1):
        assert sum(p for case, p in chances.items() if case.digit == digit) == 1


def test_a_cascade_of_two_is_a_matter_of_one_in_a_hundred():
    chance = look_ahead_probabilities(5)[LookAhead(3, 2, True)]
    assert chance == Fraction(10, 100) ** 2 * Fraction(45, 100)


@pytest.mark.parametrize("stratum", ["", "KXG", "kpg"])
def test_a_stratum_of_unknown_letters_is_refused(stratum):
    with pytest.raises(CallError, match="one letter per column"):
        stratum_states(stratum)
