"""Simplifies failing questions: the plainest example of each pattern that fails.

In: a judge and failing questions, such as 12447+34556. Out: questions of the same column states
that fail too, with as few digits that are not 0 as possible: 997+3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Int

from carryscope.task.operation import Array
from carryscope.task.questions import Questions
from carryscope.verification.trial import Judge

STARTS = 2
"""Failing questions of each pattern that are simplified; the simplest result is shown."""


def simplest_of_each(judge: Judge, failing: Mapping[int, Questions]) -> dict[int, str]:
    """The simplest failing question of every stratum that failed."""
    if not failing:
        return {}
    starts = [fewest_digits(questions, STARTS) for questions in failing.values()]
    shrunk = simplest(judge, Questions.joined(starts))
    ends = np.cumsum([len(part) for part in starts])
    return {
        stratum: fewest_digits(shrunk[end - len(part) : end], 1).texts()[0]
        for stratum, part, end in zip(failing, starts, ends, strict=True)
    }


def simplest(judge: Judge, failing: Questions) -> Questions:
    """Each question reduced to fewer non-zero digits while it fails and keeps its states."""
    questions = replace(failing, first=failing.first.copy(), second=failing.second.copy())
    while True:
        owner, tried = _simpler(questions)
        better = np.flatnonzero(judge(tried).any(axis=1)) if len(owner) else owner
        if not len(better):
            return questions
        order = better[np.lexsort((_non_zero(tried)[better], owner[better]))]
        _, first = np.unique(owner[order], return_index=True)
        chosen = order[first]
        questions.first[owner[chosen]] = tried.first[chosen]
        questions.second[owner[chosen]] = tried.second[chosen]


def fewest_digits(questions: Questions, count: int) -> Questions:
    """The questions with the fewest non-zero digits; among equals, those with small digits."""
    total = questions.first.sum(1) + questions.second.sum(1)
    return questions[np.lexsort((total, _non_zero(questions)))[:count]]


def _simpler(questions: Questions) -> tuple[Int[Array, " tried"], Questions]:
    """Every question with one column simplified, and the index of the question it comes from."""
    owners, tried = [np.zeros(0, dtype=np.int64)], [questions[:0]]
    for column in range(questions.digits):
        for changed, first, second in _plainer(questions, column):
            simpler = questions[changed]
            simpler.first[:, column], simpler.second[:, column] = first, second
            owners.append(changed)
            tried.append(simpler)
    return np.concatenate(owners), Questions.joined(tried)


def _plainer(questions: Questions, column: int) -> Iterator[tuple[Array, Array, Array]]:
    """Digit pairs with fewer non-zero digits in the same state, and the questions they fit."""
    first, second = questions.first[:, column], questions.second[:, column]
    zero = np.zeros_like(first)

    def state(first: Array, second: Array) -> Array:
        return questions.each(lambda one: one.state[first, second])

    ways = [
        (zero, zero),
        (first, zero),
        (zero, second),
        (questions.each(lambda one: one.passing_first[zero]), zero),
        (zero, questions.each(lambda one: one.passing_second[zero])),
    ]
    size = np.sign(first) + np.sign(second)
    for new_first, new_second in ways:
        fewer = np.sign(new_first) + np.sign(new_second) < size
        where = np.flatnonzero(fewer & (state(new_first, new_second) == state(first, second)))
        if len(where):
            yield where, new_first[where], new_second[where]


def _non_zero(questions: Questions) -> Int[Array, " batch"]:
    count: Array = (questions.first > 0).sum(1) + (questions.second > 0).sum(1)
    return count
