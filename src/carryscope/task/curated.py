"""The curated questions: over 100 for five digits, and none of them ever trained on.

In: a number of digits and an operation. Out: the questions, and batches with none of them.

The set covers, for every answer digit, every look-ahead depth, carrying and quiet; for every
column that can pass a carry on (US9), the same with that column propagating; and the questions
that the paper names. The rule draws from a fixed generator: every machine has the same set.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from jaxtyping import UInt

from carryscope.task.operation import ADD, BASE, MIXED, PAIRS, SUBTRACT, Array, Operation, State
from carryscope.task.questions import Questions, check_digits
from carryscope.task.sampling import uniform, with_states
from carryscope.task.strata import LookAhead, look_ahead_probabilities, stratum_name

EXAMPLES_PER_CASE = 2
"""Questions drawn for each case of the rule; two make over 100 for five digits."""

LARGEST_SHARE = 0.1
"""At most this share of all questions is set aside, so that one-digit models can still learn."""

HAND_PICKED = {
    ADD: "0+0 1+0 0+1 5+5 9+9 9+1 1+9 25+79 45+55 55+45 99+1 1+99 99+99 445+555 555+445 123+877 "
    "999+1 1+999 888+11111 11111+22222 11811+22222 17811+22222 35000+35000 15020+45091 "
    "41127+10880 81818+18182 44445+55555 54321+45679 44450+55550 1234+8769 54321+77779 "
    "12345+67890 99999+1 1+99999 99999+99999 90000+9999 50000+49999 49999+50001",
    SUBTRACT: "0-0 1-0 0-1 5-5 9-9 9-1 1-9 10-1 1-10 25-79 45-55 55-45 100-1 1-100 99-99 445-555 "
    "555-445 1000-1 1-1000 1000-999 999-1000 11111-22222 22222-11111 12345-12345 12345-12346 "
    "54321-12345 90000-1 1-90000 10000-9999 9999-10000 10000-1 1-10000 99999-0 0-99999",
}
"""Sums the paper names, and what a person tries first."""

_KEY_BASE = 0x9E3779B97F4A7C15
"""An odd number with well-mixed bits (2^64 over the golden ratio)."""


@lru_cache
def curated_questions(digits: int, operation: Operation = ADD) -> Questions:
    """The curated questions that fit in `digits` digits, each once."""
    check_digits(digits)
    if operation.parts:
        each = [curated_questions(digits, one) for one in operation.parts]
        return Questions.joined(each).frozen()
    texts = HAND_PICKED[operation].split()
    pairs = [tuple(map(int, text.split(operation.symbol))) for text in texts]
    fitting = [(a, b) for a, b in pairs if max(a, b) < BASE**digits]
    named = Questions.from_integers(fitting, digits, operation)
    drawn = Questions.joined([_by_rule(digits, operation), named])
    _, first_seen = np.unique(question_keys(drawn), return_index=True)
    limit = max(1, int(LARGEST_SHARE * float(PAIRS) ** digits))
    return drawn[np.sort(first_seen)[:limit]].frozen()


def _by_rule(digits: int, operation: Operation) -> Questions:
    """Examples for every case of look-ahead, with the digit's own column in two states.

    Differences are positive and, exchanged, negative.
    """
    generator = np.random.default_rng(digits)
    strata = []
    for case in look_ahead_probabilities(digits, operation):
        own_column = [State.KILL, State.GENERATE]
        if case.carrying:
            own_column = [State.KILL, State.PROPAGATE]
        for own in own_column[: 1 if case.digit == digits else 2]:
            stratum = _states_for(case, own, digits)
            if stratum_name(stratum[::-1], operation)[:1] != "-":
                strata.append(stratum)
    states = np.repeat(np.array(strata, dtype=np.int8), EXAMPLES_PER_CASE, axis=0)
    drawn = with_states(generator, states, operation)
    return Questions.joined([drawn, drawn.swapped()]) if operation.signed else drawn


def _states_for(case: LookAhead, own: State, digits: int) -> list[State]:
    """States that give one answer digit the wanted look-ahead, all other columns quiet."""
    states = [State.KILL] * (digits + 1)
    states[case.digit] = own
    for column in range(case.digit - case.depth, case.digit):
        states[column] = State.PROPAGATE
    if case.carrying:
        states[case.digit - case.depth - 1] = State.GENERATE
    return states[:digits]


def question_keys(questions: Questions) -> UInt[Array, " batch"]:
    """One 64-bit number per question: a polynomial in its digits and operation, modulo 2^64.

    Two questions clash with a chance near 1e-19, and a clash only keeps one more question out
    of the training data.
    """
    both = np.concatenate([questions.first, questions.second], axis=1).astype(np.uint64)
    powers = np.full(both.shape[1], _KEY_BASE, dtype=np.uint64).cumprod(dtype=np.uint64)
    keys: Array = (both * powers).sum(axis=1, dtype=np.uint64)
    place = questions.each(lambda one: np.full(len(both), MIXED.parts.index(one), dtype=np.uint64))
    return keys + place


def without_curated(generator: np.random.Generator, questions: Questions) -> Questions:
    """The questions with every curated one replaced by a fresh uniform draw that is not."""
    reserved = _curated_keys(questions.digits, questions.operation)
    while (hit := np.isin(question_keys(questions), reserved)).any():
        fresh = uniform(generator, int(hit.sum()), questions.digits)
        first, second = questions.first.copy(), questions.second.copy()
        first[hit], second[hit] = fresh.first, fresh.second
        questions = replace(questions, first=first, second=second)
    return questions


@lru_cache
def _curated_keys(digits: int, operation: Operation) -> UInt[Array, " curated"]:
    return question_keys(curated_questions(digits, operation))
