"""Heads that compare: in subtraction, attention can go to the larger digit of a column.

In: attention patterns and questions. Out: a `Comparison` for each column that a head reads at a
row, and a sentence.

    A4, H5, column 1: D1 gets 99 % where it is the larger digit, 50 % where both are equal, 1 %
    where it is the smaller one

Attention itself then shows the state of the column: kill, propagate or generate. So one head is
enough for a column below the digit. The digit's own column takes both digits, and a head that
reads them alike cannot tell 7-2 from 2-7.
"""

from __future__ import annotations

import msgspec
import numpy as np

from carryscope.dissection.explaining import READS, column_shares
from carryscope.task.operation import MIXED, SUBTRACT, Array
from carryscope.task.questions import Questions
from carryscope.task.tokens import Format

SURE = 0.9
"""A share of what a column gets that leaves no doubt which digit is read."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """How a head divides its attention to a column between the two digits, on average."""

    layer: int
    head: int
    answer: str
    column: int
    larger: float
    """The share of the first number's digit, where it is the larger one,"""
    equal: float
    """where both are equal,"""
    smaller: float
    """and where it is the smaller one."""

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
    read = column_shares(patterns, layout).mean(0)
    found = []
    for layer, head, place, column in np.argwhere(read > READS):
        first = patterns[:, layer, head, place, n - 1 - column]
        second = patterns[:, layer, head, place, 2 * n - column]
        share, apart = first / (first + second), questions.first - questions.second
        larger, equal, smaller = (
            float(share[sign == np.sign(apart[:, column])].mean()) for sign in (1, 0, -1)
        )
        found.append(
            Comparison(
                layer=int(layer),
                head=int(head),
                answer=layout.answer_names[place],
                column=int(column),
                larger=larger,
                equal=equal,
                smaller=smaller,
            )
        )
    return found


def comparison_statement(found: list[Comparison]) -> str:
    """How many readings compare, and how many are of one digit."""
    own = [one for one in found if one.answer == f"A{one.column}"]
    below = [one for one in found if one not in own]
    if not below or not own:
        return ""
    return (
        f"Of {len(below)} times that a head reads a column which is not the digit's own, it "
        f"compares in {sum(one.compares for one in below)}: its attention goes to the larger "
        f"digit, or to the smaller. Of {len(own)} times that a head reads the digit's own column, "
        f"it reads one of the two digits alone in {sum(one.one_digit for one in own)}."
    )
