"""Failing questions made simple, and a search for those that no stratum predicts.

In: a judge and failing questions. Out: the simplest failing question of each pattern; failing
questions found by changing single digits and by swapping the two numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from jaxtyping import Int

from carryscope.task.columns import Columns
from carryscope.task.operation import Array, State
from carryscope.task.questions import Questions
from carryscope.verification.estimate import Rate, weighted_rate
from carryscope.verification.judging import Judge
from carryscope.verification.partition import Partition

STARTS = 100
"""Failing questions that the search starts from."""

RESTARTS = 30
"""Failures that it found and starts from again."""

UNLIKELY = 0.01
"""A failure is unpredicted if fewer than this share of its stratum's questions fail."""

SWAPPED_PER_STRATUM = 40
"""Questions of each stratum that are asked both ways round."""


class Unpredicted(msgspec.Struct, frozen=True, kw_only=True):
    """A failing question in a stratum that hardly ever fails."""

    question: str
    stratum: str
    stratum_rate: float
    """The share of questions of the stratum that failed in the sample."""


class FailureSearch(msgspec.Struct, frozen=True, kw_only=True):
    """What came of looking around failing questions."""

    tried: int
    """Questions one digit away from a failing one."""
    failed: int
    """Those that fail too."""
    unpredicted: list[Unpredicted]
    """Those in strata that hardly ever fail, the least expected first."""
    common_pair: str | None
    """The digit pair that is commonest among failures of the sample in strata that hardly ever
    fail, such as `column 3: 5+5 in 17 of 20`. A hint where to look, not a test."""
    order_matters: Rate
    """The chance that a+b and b+a are not both right or both wrong: 0 if the model commutes."""


def simplest(judge: Judge, failing: Questions) -> Questions:
    """Each question shrunk to fewer non-zero digits, as long as it fails and keeps its states."""
    questions = Questions(failing.first.copy(), failing.second.copy())
    while True:
        owner, tried = _simpler(questions)
        if not len(owner):
            return questions
        still = judge(tried).failed
        size = _non_zero(tried)
        better = np.flatnonzero(still)
        if not len(better):
            return questions
        order = better[np.lexsort((size[better], owner[better]))]
        _, first = np.unique(owner[order], return_index=True)
        chosen = order[first]
        questions.first[owner[chosen]] = tried.first[chosen]
        questions.second[owner[chosen]] = tried.second[chosen]


def fewest_digits(questions: Questions, count: int) -> Questions:
    """The questions with the fewest non-zero digits, and among those with the smallest digits."""
    total = questions.first.sum(1) + questions.second.sum(1)
    return questions[np.lexsort((total, _non_zero(questions)))[:count]]


def _simpler(questions: Questions) -> tuple[Int[Array, " tried"], Questions]:
    """Every question with one column put more simply, in the same state."""
    owners, tried = [], []
    for column in range(questions.digits):
        for replace, first, second in _plainer(questions, column):
            owners.append(replace)
            changed = questions[replace]
            changed = Questions(changed.first.copy(), changed.second.copy())
            changed.first[:, column], changed.second[:, column] = first, second
            tried.append(changed)
    if not owners:
        return np.zeros(0, dtype=np.int64), questions[:0]
    return np.concatenate(owners), Questions.joined(tried)


def _plainer(questions: Questions, column: int) -> Iterator[tuple[Array, Array, Array]]:
    """Which questions a column can be put more simply in, and how: fewer non-zero digits."""
    first, second = questions.first[:, column], questions.second[:, column]
    state = Columns.of(questions).state[:, column]
    zero = np.zeros_like(first)
    both = (first > 0) & (second > 0)
    ways = [
        ((state == State.KILL) & ((first > 0) | (second > 0)), zero, zero),
        ((state == State.KILL) & both, first, zero),
        ((state == State.KILL) & both, zero, second),
        ((state == State.PROPAGATE) & both, zero + 9, zero),
        ((state == State.PROPAGATE) & both, zero, zero + 9),
    ]
    for mask, new_first, new_second in ways:
        where = np.flatnonzero(mask)
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
    """Change single digits of failing questions, start again from what that finds, and swap.

    `rate` is the share of failing questions measured in each stratum.
    """
    if not len(failing):
        unlike = _order_matters(judge, partition, generator)
        return FailureSearch(
            tried=0, failed=0, unpredicted=[], common_pair=None, order_matters=unlike
        )
    start = failing[generator.permutation(len(failing))[:STARTS]]
    found, tried = _failing_neighbours(judge, start)
    rare = found[rate[partition.of(found)] < UNLIKELY] if len(found) else found
    if len(rare):
        again, more = _failing_neighbours(judge, rare[:RESTARTS])
        found, tried = Questions.joined([found, again]), tried + more
        rare = Questions.joined([rare, again[rate[partition.of(again)] < UNLIKELY]])
    return FailureSearch(
        tried=tried,
        failed=len(found),
        unpredicted=_told(partition, rare, rate),
        common_pair=_common_pair(failing[rate[partition.of(failing)] < UNLIKELY]),
        order_matters=_order_matters(judge, partition, generator),
    )


def _failing_neighbours(judge: Judge, questions: Questions) -> tuple[Questions, int]:
    """The questions one digit away that fail, and how many there are in all."""
    both = np.concatenate([questions.first, questions.second], axis=1)
    places, steps = both.shape[1], 9
    near = np.repeat(both, places * steps, axis=0)
    place = np.tile(np.repeat(np.arange(places), steps), len(both))
    step = np.tile(np.arange(1, 10), len(both) * places)
    rows = np.arange(len(near))
    near[rows, place] = (near[rows, place] + step) % 10
    tried = Questions(near[:, : questions.digits], near[:, questions.digits :])
    return tried[judge(tried).failed], len(tried)


def _told(partition: Partition, rare: Questions, rate: Array) -> list[Unpredicted]:
    strata = partition.of(rare) if len(rare) else np.zeros(0, dtype=np.int64)
    order = np.lexsort((_non_zero(rare), rate[strata]))
    seen: dict[str, Unpredicted] = {}
    for i in order:
        text = rare[i : i + 1].texts()[0]
        name, share = partition.names[strata[i]], round(float(rate[strata[i]]), 6)
        seen.setdefault(text, Unpredicted(question=text, stratum=name, stratum_rate=share))
    return list(seen.values())[:10]


def _common_pair(rare: Questions) -> str | None:
    """The (column, pair) that most of the questions share, order within the pair aside."""
    if len(rare) < 2:
        return None
    low = np.minimum(rare.first, rare.second).astype(np.int64)
    high = np.maximum(rare.first, rare.second).astype(np.int64)
    code = np.where(high > 0, 10 * low + high, -1)
    best, where = 0, (0, 0)
    for column in range(rare.digits):
        values, counts = np.unique(code[:, column][code[:, column] >= 0], return_counts=True)
        if len(counts) and counts.max() > best:
            best, where = int(counts.max()), (column, int(values[counts.argmax()]))
    pair = f"{where[1] // 10}+{where[1] % 10}"
    return f"column {where[0]}: {pair} in {best} of {len(rare)}"


def _order_matters(judge: Judge, partition: Partition, generator: np.random.Generator) -> Rate:
    """The chance that a question and its swap are not judged alike."""
    strata = len(partition)
    drawn = Questions.joined(
        [partition.draw(generator, s, SWAPPED_PER_STRATUM) for s in range(strata)]
    )
    unlike = judge(drawn).failed != judge(drawn.swapped()).failed
    counts = unlike.reshape(strata, SWAPPED_PER_STRATUM).sum(1)
    asked = np.full(strata, SWAPPED_PER_STRATUM)
    return weighted_rate(partition.weights, asked, counts)
