"""Ways to compute an answer on digit arrays: the exact one, and the paper's Algorithm 1.

In: `Questions`. Out: answer digits of shape (batch, digit), units first: A0 .. An.

    exact_sum           00445+00555 -> 001000
    algorithm_1         00445+00555 -> 000000   (the carry dies after one nine)

Differences have digits by the same rules, with borrows for carries: 01000-00001 -> 000999, and
001999 by Algorithm 1, which sees no borrow beyond one pair of equal digits. The sign is apart.
"""

from __future__ import annotations

from jaxtyping import Bool, Int

from carryscope.core.errors import CallError
from carryscope.task.columns import Columns
from carryscope.task.operation import Array
from carryscope.task.questions import Questions

ALGORITHM_1_REACH = 2
"""Algorithm 1 looks two columns below each answer digit."""


def exact_sum(questions: Questions) -> Int[Array, "batch digit"]:
    """The digits of the true answer; its sign is `questions.negative`."""
    columns = Columns.of(questions)
    return columns.answer(columns.carry_in)


def look_ahead_sum(questions: Questions, *, reach: int) -> Int[Array, "batch digit"]:
    """The answer of an adder that looks `reach` columns below each answer digit.

    The carry into digit k is the one generated within reach; if every column in reach
    propagates, the adder assumes that none arrives. `reach >= digits` is exact.
    """
    if reach < 0:
        raise CallError(f"reach must be at least 0. Got {reach}.")
    columns = Columns.of(questions)
    return columns.answer(columns.carry_in & (columns.look_ahead < reach))


def look_ahead_sign(questions: Questions, *, reach: int) -> Bool[Array, " batch"]:
    """Where an adder that looks at the `reach` highest columns writes a minus.

    If all of them have equal digits, it assumes a plus. `reach >= digits` is exact.
    """
    return questions.negative & (Columns.of(questions).sign_look_ahead < reach)


def algorithm_1(questions: Questions) -> Int[Array, "batch digit"]:
    """The paper's Algorithm 1 with our completion for the highest digit.

    As printed it never produces A_n. We complete it by the same rule: A_n = MC1 one column
    below, or MS9 there and MC1 two below. Digit by digit that is a reach of two columns. In
    subtraction it is the same with MB and MZ, and the two highest columns give the sign.
    """
    return look_ahead_sum(questions, reach=ALGORITHM_1_REACH)
