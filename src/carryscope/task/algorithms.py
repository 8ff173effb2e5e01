"""Ways to add, on digit arrays: exact addition, and the paper's Algorithm 1.

In: `Questions`. Out: answer digits of shape (batch, digit), units first: A0 .. An.

    exact_sum           00445+00555 -> 001000
    algorithm_1         00445+00555 -> 000000   (the carry dies after one nine)
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from carryscope.core.errors import CallError
from carryscope.task.columns import Columns
from carryscope.task.operation import Array
from carryscope.task.questions import Questions

ALGORITHM_1_REACH = 2
"""Algorithm 1 looks two columns below each answer digit."""


def exact_sum(questions: Questions) -> Int[Array, "batch digit"]:
    """The true answer."""
    return _answer(questions, Columns.of(questions).carry_in)


def look_ahead_sum(questions: Questions, *, reach: int) -> Int[Array, "batch digit"]:
    """Addition by an adder that looks `reach` columns below each answer digit.

    The carry into digit k is the one generated within reach; if every column in reach
    propagates, the adder assumes that none arrives. `reach >= digits` is exact addition.
    """
    if reach < 0:
        raise CallError(f"reach must be at least 0. Got {reach}.")
    columns = Columns.of(questions)
    seen = columns.carry_in & (columns.look_ahead < reach)
    return _answer(questions, seen)


def algorithm_1(questions: Questions) -> Int[Array, "batch digit"]:
    """The paper's Algorithm 1 with our completion for the highest digit.

    As printed it never produces A_n. We complete it by the same rule, with nothing of its
    own to add: A_n = MC1 one column below, or MS9 there and MC1 two below. Digit by digit
    that is addition with a reach of two columns.
    """
    return look_ahead_sum(questions, reach=ALGORITHM_1_REACH)


def algorithm_1_as_printed(questions: Questions) -> Int[Array, "batch column"]:
    """Algorithm 1 line by line: the n low answer digits, highest computed first."""
    sums = Columns.of(questions).sums
    answer = np.zeros_like(sums)
    for pos in reversed(range(questions.digits)):
        zero = np.zeros(len(questions), dtype=bool)
        mc1_prev_prev = sums[:, pos - 2] >= 10 if pos - 2 >= 0 else zero
        mc1_prev = sums[:, pos - 1] >= 10 if pos - 1 >= 0 else zero
        ms9_prev = sums[:, pos - 1] == 9 if pos - 1 >= 0 else zero
        prev_prev = ~mc1_prev & ms9_prev & mc1_prev_prev
        answer[:, pos] = (sums[:, pos] + mc1_prev + prev_prev) % 10
    return answer


def _answer(questions: Questions, carry: Array) -> Int[Array, "batch digit"]:
    """The answer digits that follow from the raw sums and a carry into each digit."""
    sums = Columns.of(questions).sums
    top = carry[:, -1:].astype(sums.dtype)
    return np.concatenate([(sums + carry[:, :-1]) % 10, top], axis=1)
