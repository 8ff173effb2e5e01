"""Strata: questions grouped by the state of each column, and their exact probabilities.

In: a stratum, written like a number, highest column first (`KKPPG` holds 00445+00555).
Out: probabilities over uniform questions, as exact rationals.

    probability("KKPPG") = 45/100 * 45/100 * 10/100 * 10/100 * 45/100
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from carryscope.core.errors import CallError
from carryscope.task.operation import ADD, PAIRS, Array, Operation, State
from carryscope.task.questions import check_digits

ANY = "*"
"""In a pattern of states: a column of any state."""

ANY_STATE = -1
"""Its number, where states are numbers."""

_STATE_OF_LETTER = {state.letter: state for state in State}


def stratum_states(stratum: str) -> Int[Array, " column"]:
    """The state of each column, units first, from a stratum such as `KKPPG`."""
    unknown = set(stratum) - set(_STATE_OF_LETTER)
    if unknown or not stratum:
        raise CallError(
            "A stratum has one letter per column: K (kill), P (propagate) or G (generate). "
            f"Got '{stratum}'."
        )
    return np.array([_STATE_OF_LETTER[letter] for letter in reversed(stratum)], dtype=np.int8)


def is_pattern(text: str) -> bool:
    """Whether a text has a state, or `*` for any, for each column: `KKPPG`, `*PG**`."""
    return bool(text) and set(text) <= {ANY, *_STATE_OF_LETTER}


def pattern_states(pattern: str) -> Int[Array, " column"]:
    """The state of each column, units first, and `ANY_STATE` where it is left open."""
    letters = _STATE_OF_LETTER | {ANY: ANY_STATE}
    return np.array([letters[letter] for letter in reversed(pattern)], dtype=np.int8)


def all_strata(digits: int) -> Iterator[str]:
    """The 3^n strata of n-digit questions."""
    check_digits(digits)
    return ("".join(letters) for letters in product(_STATE_OF_LETTER, repeat=digits))


def stratum_probability(stratum: str, operation: Operation = ADD) -> Fraction:
    """The chance that a uniform question lies in the stratum."""
    pairs = operation.pairs_per_state
    size = math.prod(pairs[State(int(state))] for state in stratum_states(stratum))
    return Fraction(size, PAIRS ** len(stratum))


class LookAhead(NamedTuple):
    """How far one answer digit has to look, and whether a carry is found there."""

    digit: int
    depth: int
    carrying: bool


def look_ahead_probabilities(digits: int, operation: Operation = ADD) -> dict[LookAhead, Fraction]:
    """The chance of every (answer digit, look-ahead depth, carrying or quiet).

    For each answer digit the chances add up to 1. Depth k at digit k is the case in which
    every column below propagates and the look-ahead falls off the end: quiet.
    """
    check_digits(digits)
    kill, pass_on, generate = (Fraction(operation.pairs_per_state[s], PAIRS) for s in State)
    chances: dict[LookAhead, Fraction] = {}
    for digit in range(digits + 1):
        for depth in range(digit):
            chances[LookAhead(digit, depth, True)] = pass_on**depth * generate
            chances[LookAhead(digit, depth, False)] = pass_on**depth * kill
        chances[LookAhead(digit, digit, False)] = pass_on**digit
    return chances
