"""Operations as values, and all that follows from one."""

import numpy as np
import pytest
from cases import stratum_names

from carryscope.task.columns import Columns
from carryscope.task.operation import ADD, BASE, SUBTRACT, State
from carryscope.task.questions import Questions, parse_question
from carryscope.task.sampling import carry_pairs, enriched, uniform, with_states
from carryscope.task.strata import (
    look_ahead_probabilities,
    stratum_states,
)

DIGITS = np.arange(BASE, dtype=np.int8)

both = pytest.mark.parametrize("operation", [ADD, SUBTRACT], ids=lambda operation: operation.name)


def test_addition_propagates_at_nine_and_generates_from_ten_on():
    for first, second in np.ndindex(BASE, BASE):
        total = first + second
        state = State.KILL if total <= 8 else State.PROPAGATE if total == 9 else State.GENERATE
        assert ADD.raw[first, second] == total
        assert ADD.state[first, second] == state
    assert ADD.pairs_per_state == {State.KILL: 45, State.PROPAGATE: 10, State.GENERATE: 45}


@both
def test_the_digit_that_makes_a_column_propagate_is_known_for_either_number(operation):
    assert (operation.raw[DIGITS, operation.passing_second] == operation.propagates).all()
    assert (operation.raw[operation.passing_first, DIGITS] == operation.propagates).all()


@both
def test_raw_values_that_kill_and_generate_stand_in_pairs_of_one_digit(operation):
    kill, generate = (operation.raws_of_state[s] for s in (State.KILL, State.GENERATE))
    assert (operation.digit_of(kill) == operation.digit_of(generate)).all()


def test_questions_keep_their_operation(generator):
    questions = uniform(generator, 20, 3, SUBTRACT)
    kept = [
        questions[:5],
        questions.swapped(),
        Questions.joined([questions, questions]),
        enriched(generator, 5, 3, SUBTRACT, batch_share=1.0),
        with_states(generator, np.tile(stratum_states("KPG"), (5, 1)), SUBTRACT),
        *carry_pairs(generator, 5, 3, 1, SUBTRACT),
        parse_question("445-123", 3, SUBTRACT),
    ]
    assert all(each.operation is SUBTRACT for each in kept)
    assert kept[-1].texts() == ["445-123"]


def test_columns_of_another_operation_are_its_digits_and_its_borrows(generator):
    drawn = uniform(generator, 500, 4).integers()
    pairs = [(max(pair), min(pair)) for pair in drawn]
    columns = Columns.of(Questions.from_integers(pairs, 4, SUBTRACT))
    answer = columns.answer(columns.carry_in)
    for (first, second), digits in zip(pairs, answer, strict=True):
        assert int("".join(map(str, digits[::-1]))) == first - second


@both
def test_sampling_and_strata_follow_the_operation(generator, operation):
    drawn = with_states(generator, np.tile(stratum_states("KPG"), (100, 1)), operation)
    assert set(stratum_names(Columns.of(drawn))) == {"KPG"}
    nines = enriched(generator, 100, 3, operation, batch_share=1.0, cell_share=1.0)
    assert Columns.of(nines).make_sum_9.all()
    assert sum(look_ahead_probabilities(3, operation).values()) == 4
    a, b = carry_pairs(generator, 100, 4, 3, operation, depth=1)
    assert (Columns.of(a).carry_in[:, 3] != Columns.of(b).carry_in[:, 3]).all()
