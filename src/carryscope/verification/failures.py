"""Simplifies failing questions, and searches for failures that no stratum predicts.

In: a judge and failing questions. Out: the simplest failing question of each pattern, and failing
questions found by changing single digits and by swapping the two numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec
import numpy as np
from jaxtyping import Int

from carryscope.task.operation import BASE, Array
from carryscope.task.questions import Questions
from carryscope.verification.estimate import Rate, weighted_rate
from carryscope.verification.judging import Judge
from carryscope.verification.partition import Partition

STARTS = 100
"""Failing questions that the search starts from."""

RESTARTS = 30
"""Rare failures that it found and starts from again."""

UNLIKELY = 0.01
"""A failure is unpredicted if less than this share of its stratum's questions fail."""

SHOWN = 10
"""Unpredicted failures in the finding."""

SWAPPED_PER_STRATUM = 40
"""Questions of each stratum that are tested in both orders."""


class Unpredicted(msgspec.Struct, frozen=True, kw_only=True):
    """A failing question in a stratum that almost never fails."""

    question: str
    stratum: str
    stratum_rate: float
    """The share of questions of the stratum that failed in the sample."""


class FailureSearch(msgspec.Struct, frozen=True, kw_only=True):
    """What was found near failing questions."""

    tried: int
    """Questions one digit away from a failing one."""
    failed: int
    """Those that fail too."""
    unpredicted: list[Unpredicted]
    """Those in strata that almost never fail, the least expected first."""
    order_matters: Rate
    """The chance that only one of a+b and b+a is right: 0 if the model commutes."""


def simplest(judge: Judge, failing: Questions) -> Questions:
    """Each question reduced to fewer non-zero digits while it fails and keeps its states."""
    questions = replace(failing, first=failing.first.copy(), second=failing.second.copy())
    while True:
        owner, tried = _simpler(questions)
        better = np.flatnonzero(judge(tried).failed) if len(owner) else owner
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
    zero, operation = np.zeros_like(first), questions.operation
    ways = [
        (zero, zero),
        (first, zero),
        (zero, second),
        (zero + operation.passing_first[0], zero),
        (zero, zero + operation.passing_second[0]),
    ]
    size = np.sign(first) + np.sign(second)
    for new_first, new_second in ways:
        fewer = np.sign(new_first) + np.sign(new_second) < size
        same = operation.state[new_first, new_second] == operation.state[first, second]
        where = np.flatnonzero(fewer & same)
        if len(where):
            yield where, new_first[where], new_second[where]


def _non_zero(questions: Questions) -> Int[Array, " batch"]:
    count: Array = (questions.first > 0).sum(1) + (questions.second > 0).sum(1)
    return count


def look_around(
    judge: Judge,
    partition: Partition,
    failing: Questions,
    rate: Array,
    generator: np.random.Generator,
) -> FailureSearch:
    """Change single digits of failing questions, repeat from the rare failures found, and swap.

    `rate` is the share of failing questions measured in each stratum.
    """

    def rare(questions: Questions) -> Questions:
        return questions[rate[partition.of(questions)] < UNLIKELY]

    start = failing[generator.permutation(len(failing))[:STARTS]]
    found, tried = _failing_neighbours(judge, start)
    again, more = _failing_neighbours(judge, rare(found)[:RESTARTS])
    return FailureSearch(
        tried=tried + more,
        failed=len(found) + len(again),
        unpredicted=_unpredicted(partition, Questions.joined([rare(found), rare(again)]), rate),
        order_matters=_order_matters(judge, partition, generator),
    )


def _failing_neighbours(judge: Judge, questions: Questions) -> tuple[Questions, int]:
    """The failing questions one digit away, and how many were tried."""
    if not len(questions):
        return questions, 0
    both = np.concatenate([questions.first, questions.second], axis=1)
    places, steps = both.shape[1], BASE - 1
    near = np.repeat(both, places * steps, axis=0)
    place = np.tile(np.repeat(np.arange(places), steps), len(both))
    step = np.tile(np.arange(1, BASE), len(both) * places)
    rows = np.arange(len(near))
    near[rows, place] = (near[rows, place] + step) % BASE
    first, second = np.split(near, 2, axis=1)
    tried = replace(questions, first=first, second=second)
    return tried[judge(tried).failed], len(tried)


def _unpredicted(partition: Partition, rare: Questions, rate: Array) -> list[Unpredicted]:
    strata = partition.of(rare)
    order = np.lexsort((_non_zero(rare), rate[strata]))
    seen: dict[str, Unpredicted] = {}
    for i in order:
        text = rare[i : i + 1].texts()[0]
        name, share = partition.names[strata[i]], round(float(rate[strata[i]]), 6)
        seen.setdefault(text, Unpredicted(question=text, stratum=name, stratum_rate=share))
    return list(seen.values())[:SHOWN]


def _order_matters(judge: Judge, partition: Partition, generator: np.random.Generator) -> Rate:
    """The chance that a question is right and its swap is wrong, or the reverse."""
    asked = np.full(len(partition), SWAPPED_PER_STRATUM)
    drawn, stratum = partition.draw_each(generator, asked)
    unlike = judge(drawn).failed != judge(drawn.swapped()).failed
    counts = np.bincount(stratum[unlike], minlength=len(partition))
    return weighted_rate(partition.weights, asked, counts)
