"""Named sums with answers worked out by hand, shared by the tests. Five digits, highest first."""

from typing import NamedTuple

import numpy as np

from carryscope.task.columns import Columns
from carryscope.task.operation import State
from carryscope.task.questions import Questions


class Case(NamedTuple):
    question: str
    answer: str
    states: str  # D4 .. D0
    tasks: str  # A5 .. A0
    look_ahead: str  # A5 .. A0
    carrying: str  # A5 .. A0
    question_class: str
    algorithm_1: str


CASES = {
    "no carry anywhere": Case(
        "11111+22222", "033333", "KKKKK", "BA BA BA BA BA BA", "000000", "000000", "BA", "033333"
    ),
    "one carry": Case(
        "11811+22222", "034033", "KKGKK", "BA BA UC1 BA BA BA", "000000", "001000", "UC1", "034033"
    ),
    "one nine passes a carry on": Case(
        "17811+22222",
        "040033",
        "KPGKK",
        "BA UC1 US9 BA BA BA",
        "010000",
        "011000",
        "simple US9",
        "040033",
    ),
    "the paper's cascade of two": Case(
        "445+555",
        "001000",
        "KKPPG",
        "BA BA UC1 US9 US9 BA",
        "002100",
        "001110",
        "cascade US9",
        "000000",
    ),
    "the longest cascade": Case(
        "99999+1",
        "100000",
        "PPPPG",
        "UC1 US9 US9 US9 US9 BA",
        "432100",
        "111110",
        "cascade US9",
        "099000",
    ),
    "nines that pass nothing on": Case(
        "44444+55555", "099999", "PPPPP", "BA BA BA BA BA BA", "543210", "000000", "BA", "099999"
    ),
    "carries everywhere": Case(
        "99999+99999",
        "199998",
        "GGGGG",
        "UC1 UC1 UC1 UC1 UC1 BA",
        "000000",
        "111110",
        "UC1",
        "199998",
    ),
}


def exact_sum(questions: Questions) -> np.ndarray:
    """The digits of the true answer."""
    return Columns.of(questions).answer()


def look_ahead_sum(questions: Questions, *, reach: int) -> np.ndarray:
    """The answer of an adder that looks `reach` columns below each digit; 2 is Algorithm 1."""
    columns = Columns.of(questions)
    return columns.answer(columns.carry_seen(reach))


def stratum_names(columns: Columns) -> list[str]:
    """The stratum of each question."""
    letters = np.array([state.letter for state in State])
    return ["".join(row) for row in letters[columns.state[:, ::-1]]]
