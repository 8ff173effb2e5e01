from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from carryscope.core.errors import CallError
from carryscope.task.columns import Columns, Task
from carryscope.task.framework import DigitTask, framework
from carryscope.task.questions import Questions

SIZES = range(1, 21)


def by_task(digits):
    return {found.learnt: found for found in framework(digits)}


def every_question(digits):
    cells = np.indices((10,) * (2 * digits)).reshape(2 * digits, -1).T.astype(np.int8)
    return Questions(cells[:, :digits], cells[:, digits:])


@pytest.mark.parametrize("digits", SIZES)
def test_the_shares_of_each_digit_add_up_to_exactly_one(digits):
    totals = Counter()
    for found in framework(digits):
        totals[found.learnt.digit] += found.share
    assert totals == dict.fromkeys(range(digits + 1), 1)


def test_the_five_digit_shares_are_those_worked_out_by_hand():
    tasks = by_task(5)
    shares = {task.name: found.share for task, found in tasks.items()}
    percent = Fraction(1, 100)
    assert len(shares) == 6 + 5 + 4 + 3 + 2 + 1
    assert shares["A0 BA"] == 1
    assert shares["A1 BA"] == 55 * percent
    assert shares["A1 UC1"] == 45 * percent
    assert shares["A3 BA"] == Fraction(5005, 10_000)
    assert shares["A3 UC1"] == 45 * percent
    assert shares["A3 US9 depth 1"] == Fraction(45, 1000)
    assert shares["A3 US9 depth 2"] == Fraction(45, 10_000)
    assert shares["A5 US9 depth 4"] == Fraction(45, 1_000_000)


def test_the_class_us9_of_a_column_is_every_us9_depth_of_the_digit_above():
    above, tasks = Counter(), Columns.of(every_question(3)).task
    for found in framework(3):
        if found.learnt.task is Task.US9:
            above[found.learnt.digit - 1] += found.share
    counted = (tasks == Task.US9).sum(axis=0)
    assert above == {k: Fraction(int(counted[k]), len(tasks)) for k in range(4) if counted[k]}


@pytest.mark.parametrize("digits", SIZES)
def test_no_task_unlocks_more_than_one_that_it_needs(digits):
    tasks = by_task(digits)
    for found in tasks.values():
        assert all(tasks[need].share >= found.share for need in found.needs)


def test_the_longest_cascade_is_a_chain_through_all_digits():
    tasks, chain = by_task(5), [DigitTask(5, Task.US9, 4)]
    while below := [task for task in tasks[chain[-1]].needs if task.digit < chain[-1].digit]:
        chain += below
    assert [task.name for task in reversed(chain)] == [
        "A1 UC1",
        "A2 US9 depth 1",
        "A3 US9 depth 2",
        "A4 US9 depth 3",
        "A5 US9 depth 4",
    ]


@pytest.mark.parametrize("digits", [0, 21])
def test_a_size_nobody_can_ask_for_is_refused(digits):
    with pytest.raises(CallError, match="digits must be between 1 and 20"):
        framework(digits)
