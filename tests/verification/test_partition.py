"""Strata are disjoint, hold every question, and are drawn from uniformly."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from cases import stratum_names

from carryscope.task.columns import Columns
from carryscope.task.questions import Questions
from carryscope.task.sampling import uniform
from carryscope.verification.partition import by_cascade, by_state, partition

EVERY_QUESTION = Questions.from_integers(product(range(100), range(100)), 2)


@pytest.mark.parametrize("digits", range(1, 21))
def test_probabilities_add_up_to_exactly_1(digits):
    assert sum(partition(digits).probabilities) == 1


@pytest.mark.parametrize("kind", [by_state, by_cascade])
def test_sizes_are_those_counted_over_every_question(kind):
    strata = kind(2)
    counted = np.bincount(strata.of(EVERY_QUESTION), minlength=len(strata))
    assert [p * 10**4 for p in strata.probabilities] == counted.tolist()


@pytest.mark.parametrize(("kind", "digits"), [(by_state, 3), (by_cascade, 3), (by_cascade, 8)])
def test_what_is_drawn_from_a_stratum_lies_in_it(kind, digits, generator):
    strata = kind(digits)
    for stratum in range(len(strata)):
        drawn = strata.draw(generator, stratum, 20)
        assert (strata.of(drawn) == stratum).all()


def test_draws_within_a_stratum_are_uniform(generator):
    strata = by_cascade(2)
    stratum = strata.names.index("longest carrying 1, longest quiet 0")
    members = EVERY_QUESTION[strata.of(EVERY_QUESTION) == stratum]
    drawn = strata.draw(generator, stratum, 100 * len(members))
    counts = Counter(drawn.texts())
    assert set(counts) == set(members.texts())
    chi_squared = sum((n - 100) ** 2 / 100 for n in counts.values())
    assert chi_squared < len(members) + 4 * (2 * len(members)) ** 0.5


def test_state_patterns_are_named_as_elsewhere(generator):
    questions = uniform(generator, 200, 4)
    strata = partition(4)
    named = [strata.names[i] for i in strata.of(questions)]
    assert named == stratum_names(Columns.of(questions))


def test_rare_cascades_of_long_questions_can_be_drawn(generator):
    strata = partition(15)
    stratum = strata.names.index("longest carrying 7 or more, longest quiet 0")
    assert strata.probabilities[stratum] < 1e-3
    columns = Columns.of(strata.draw(generator, stratum, 50))
    assert np.where(columns.carry_in, columns.look_ahead, 0).max(axis=1).min() >= 7
