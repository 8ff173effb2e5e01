"""Heads that compare: in subtraction, attention can go to the larger digit of a column.

In: attention patterns and questions. Out: for each column that a head reads at a row, how its
attention is divided between the two digits; and a sentence.

    A4, H5, column 1: D1 gets 99 % where it is the larger digit, 1 % where it is the smaller one

Attention itself then shows the state of the column: kill, propagate or generate. So one head is
enough for a column below the digit. The digit's own column takes both digits, and a head that
reads them alike cannot tell 7-2 from 2-7.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from carryscope.dissection.explaining import READS, column_shares
from carryscope.task.operation import MIXED, SUBTRACT, Array
from carryscope.task.questions import Questions
from carryscope.task.tokens import Format

SURE = 0.9
"""A share of what a column gets that leaves no doubt which digit is read."""


class Comparison(NamedTuple):
    """What the first number's digit gets of a head's attention to a column, on average."""

    own: bool
    """Whether it is the column of the digit that is written."""
    larger: float
    """Where the first number has the larger digit,"""
    smaller: float
    """and where it has the smaller one."""

    @property
    def compares(self) -> bool:
        """Whether the larger digit, or the smaller one, gets nearly all."""
        low, high = sorted((self.larger, self.smaller))
        return low < 1 - SURE and high > SURE

    @property
    def one_digit(self) -> bool:
        """Whether one digit gets nearly all, whatever it is."""
        low, high = sorted((self.larger, self.smaller))
        return low > SURE or high < 1 - SURE


def comparisons(patterns: Array, questions: Questions, layout: Format) -> list[Comparison]:
    """Every column that gets more than half of a head's attention in differences; none in sums."""
    if not layout.operation.signed:
        return []
    ours, n = questions.kinds == MIXED.parts.index(SUBTRACT), layout.digits
    patterns, questions = patterns[ours], questions[ours]
    found, sign = [], np.sign(questions.first - questions.second)
    for *place, column in np.argwhere(column_shares(patterns, layout).mean(0) > READS):
        first, second = (patterns[:, *place, at - column] for at in (n - 1, 2 * n))
        share, own = first / (first + second), layout.answer_length - 1 - place[-1] == column
        larger, smaller = (float(share[sign[:, column] == s].mean()) for s in (1, -1))
        found.append(Comparison(bool(own), larger, smaller))
    return found


def comparison_statement(found: list[Comparison]) -> str:
    """How many readings compare, and how many are of one digit."""
    own = [one for one in found if one.own]
    below = [one for one in found if not one.own]
    if not below or not own:
        return ""
    return (
        f"Of {len(below)} times that a head reads a column which is not the digit's own, it "
        f"compares in {sum(one.compares for one in below)}: its attention goes to the larger "
        f"digit, or to the smaller. Of {len(own)} times that a head reads the digit's own column, "
        f"it reads one of the two digits alone in {sum(one.one_digit for one in own)}."
    )
