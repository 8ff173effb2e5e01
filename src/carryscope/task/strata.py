"""Strata: questions grouped by the state of each column, and their exact probabilities.

In: a stratum, written like a number, highest column first (`KKPPG` holds 00445+00555).
Out: probabilities over uniform questions, as exact rationals.

    KKPPG     45/100 * 45/100 * 10/100 * 10/100 * 45/100
    -KKPPG    a difference whose answer is negative; the states are those after the exchange
    - -KKPPG  the same among questions of both operations: half as likely
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from carryscope.core.errors import CallError
from carryscope.task.operation import ADD, PAIRS, SUBTRACT, Array, Operation, State
from carryscope.task.questions import check_digits

ANY = "*"
"""In a pattern of states: a column of any state."""

ANY_STATE = -1
"""Its number, where states are numbers."""

_STATE_OF_LETTER = {state.letter: state for state in State}

_SIGNS = ("+", "-")


def stratum_states(stratum: str) -> Int[Array, " column"]:
    """The state of each column, units first, of a stratum such as `KKPPG` or `-KKPPG`.

    They are those of the question as written: in `-KKPPG` kill and generate change places.
    """
    sign = stratum[:1] if stratum[:1] in _SIGNS else ""
    letters = stratum.removeprefix(sign)
    if not is_pattern(letters) or ANY in letters:
        raise CallError(
            "A stratum has one letter per column: K (kill), P (propagate) or G (generate). "
            f"Got '{stratum}'."
        )
    found = pattern_states(letters)
    found = _exchanged(found) if sign == "-" else found
    if sign and stratum_name(found[::-1].tolist(), SUBTRACT) != stratum:
        raise CallError(
            "In subtraction the highest column with different digits has the larger one first: K. "
            f"Got '{stratum}'."
        )
    return found


def stratum_name(states: Sequence[int], operation: Operation = ADD) -> str:
    """The stratum of questions whose columns, highest first, have these states as written."""
    sign = ""
    if operation.signed:
        highest = next((s for s in states if s != State.PROPAGATE), State.KILL)
        sign = "-" if highest == State.GENERATE else "+"
        states = _exchanged(np.array(states)).tolist() if sign == "-" else states
    return sign + "".join(State(state).letter for state in states)


def as_written(stratum: str) -> str:
    """The states of a stratum's questions as they are written: `-KPG` and `- -KPG` are `GPK`."""
    name = stratum.rpartition(" ")[2]
    if name[:1] not in _SIGNS:
        return name
    return "".join(State(state).letter for state in stratum_states(name)[::-1])


def _exchanged(states: Int[Array, " column"]) -> Int[Array, " column"]:
    """The states once the two numbers are exchanged: D > D' becomes D < D'."""
    return np.asarray(State.GENERATE - states)


def stratum_probabilities(digits: int, operation: Operation = ADD) -> dict[str, Fraction]:
    """The chance that a uniform question lies in each stratum; of a mixture each part is as likely.

    Sums have the 3^n patterns of states, and so have differences, each with the sign it implies.
    """
    check_digits(digits)
    if operation.parts:
        return {
            f"{one.symbol} {name}": chance / len(operation.parts)
            for one in operation.parts
            for name, chance in stratum_probabilities(digits, one).items()
        }
    pairs = operation.pairs_per_state
    return {
        stratum_name(states, operation): Fraction(
            math.prod(pairs[state] for state in states), PAIRS**digits
        )
        for states in product(State, repeat=digits)
    }


def is_pattern(text: str) -> bool:
    """Whether a text has a state, or `*` for any, for each column: `KKPPG`, `*PG**`."""
    return bool(text) and set(text) <= {ANY, *_STATE_OF_LETTER}


def pattern_states(pattern: str) -> Int[Array, " column"]:
    """The state of each column, units first, and `ANY_STATE` where it is left open."""
    letters = _STATE_OF_LETTER | {ANY: ANY_STATE}
    return np.array([letters[letter] for letter in reversed(pattern)], dtype=np.int8)


class LookAhead(NamedTuple):
    """How far one answer digit has to look, and whether a carry is found there."""

    digit: int
    depth: int
    carrying: bool


def look_ahead_probabilities(digits: int, operation: Operation = ADD) -> dict[LookAhead, Fraction]:
    """The chance of every (answer digit, look-ahead depth, carrying or quiet) that can occur.

    For each answer digit the chances add up to 1. Depth k at digit k is the case in which
    every column below propagates and the look-ahead falls off the end: quiet.

    In subtraction, if all columns from the digit up have equal digits, those below it decide the
    sign, and after the exchange the highest of them that differs kills. Otherwise it is a fair
    coin whether they are exchanged, and kill is as likely as generate.
    """
    check_digits(digits)
    if operation.parts:
        each = [look_ahead_probabilities(digits, one) for one in operation.parts]
        return {
            case: sum((chances.get(case, Fraction()) for chances in each), Fraction()) / len(each)
            for case in each[0]
        }
    kill, pass_on, generate = (Fraction(operation.pairs_per_state[s], PAIRS) for s in State)
    chances: dict[LookAhead, Fraction] = {}
    for digit in range(digits + 1):
        tied = pass_on ** (digits - digit) if operation.signed else Fraction()
        for depth in range(digit):
            carrying = pass_on**depth * generate * (1 - tied)
            chances[LookAhead(digit, depth, True)] = carrying
            chances[LookAhead(digit, depth, False)] = pass_on**depth * (kill + generate) - carrying
        chances[LookAhead(digit, digit, False)] = pass_on**digit
    return {case: chance for case, chance in chances.items() if chance}


def sign_probabilities(digits: int, operation: Operation = ADD) -> dict[LookAhead, Fraction]:
    """The same for the sign of a difference, counted as the digit above A_n.

    Its depth is how many of the highest columns have equal digits. It is carrying if the sign is
    minus. The chances add up to the share of questions that are differences.
    """
    chances: dict[LookAhead, Fraction] = {}
    for one in operation.each_part if operation.signed else ():
        if not one.signed:
            continue
        kill, pass_on, generate = (Fraction(one.pairs_per_state[s], PAIRS) for s in State)
        for depth in range(digits):
            chances[LookAhead(digits + 1, depth, True)] = pass_on**depth * generate
            chances[LookAhead(digits + 1, depth, False)] = pass_on**depth * kill
        chances[LookAhead(digits + 1, digits, False)] = pass_on**digits
    return {case: chance / len(operation.each_part) for case, chance in chances.items()}


def cascades(digits: int, shortest: int) -> tuple[str, ...]:
    """Every pattern of at least so many nines above a column that decides: ***PPPK to PPPPPPG."""
    return tuple(
        f"{'*' * (digits - 1 - column - nines)}{'P' * nines}{state}{'*' * column}"
        for state in "KG"
        for column in range(digits)
        for nines in range(shortest, digits - column)
    )
