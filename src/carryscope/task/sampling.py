"""Questions drawn at random, always from a generator that is passed in.

In: a numpy generator and what to draw. Out: `Questions`, or pairs of them.

    uniform            every question equally likely
    enriched           the paper's training data: some batches with extra columns that sum to 9
    in_stratum         uniform among questions with a given state in every column
    counterfactuals    pairs that differ in one named variable of one column
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Int

from carryscope.core.errors import CallError
from carryscope.task.operation import Array, State
from carryscope.task.questions import Questions, check_digits
from carryscope.task.strata import stratum_states

PAPER_BATCH_SHARE = 0.2
"""The paper enriches one batch in five."""

PAPER_CELL_SHARE = 0.2
"""In an enriched batch the paper overwrites one column in five so that it sums to 9."""


def uniform(generator: np.random.Generator, count: int, digits: int) -> Questions:
    """Questions drawn uniformly from all 10^(2n)."""
    check_digits(digits)
    pair = generator.integers(0, 10, (2, count, digits), dtype=np.int8)
    return Questions(pair[0], pair[1])


def enriched(
    generator: np.random.Generator,
    count: int,
    digits: int,
    *,
    batch_share: float = PAPER_BATCH_SHARE,
    cell_share: float = PAPER_CELL_SHARE,
) -> Questions:
    """One training batch by the paper's rule.

    With chance `batch_share` the batch has `cell_share` of its (question, column) cells
    overwritten so that the pair sums to 9, by changing the first number or the second, by
    a fair coin.
    """
    questions = uniform(generator, count, digits)
    if generator.random() >= batch_share:
        return questions
    return with_nines(generator, questions, generator.random((count, digits)) < cell_share)


def with_nines(
    generator: np.random.Generator, questions: Questions, cells: Bool[Array, "batch column"]
) -> Questions:
    """The questions with the marked cells made to sum to 9, on a side chosen by a fair coin."""
    heads = generator.random(cells.shape) < 0.5
    first = np.where(cells & heads, 9 - questions.second, questions.first)
    return Questions(first, np.where(cells & ~heads, 9 - questions.first, questions.second))


def in_stratum(generator: np.random.Generator, count: int, stratum: str) -> Questions:
    """Questions drawn uniformly among those with the given state in every column."""
    states = stratum_states(stratum)
    check_digits(len(states))
    return with_states(generator, np.broadcast_to(states, (count, len(states))))


def with_states(generator: np.random.Generator, states: Int[Array, "batch column"]) -> Questions:
    """Questions drawn uniformly among those whose columns have these states."""
    first = np.empty(states.shape, dtype=np.int8)
    second = np.empty(states.shape, dtype=np.int8)
    for state, pairs in _PAIRS_OF_STATE.items():
        cells = states == state
        drawn = pairs[generator.integers(0, len(pairs), int(cells.sum()))]
        first[cells], second[cells] = drawn[:, 0], drawn[:, 1]
    return Questions(first, second)


def _pairs_of_state(state: State) -> Int[Array, "pair 2"]:
    low, high = {State.KILL: (0, 8), State.PROPAGATE: (9, 9), State.GENERATE: (10, 18)}[state]
    pairs = [(a, b) for a in range(10) for b in range(10) if low <= a + b <= high]
    return np.array(pairs, dtype=np.int8)


_PAIRS_OF_STATE = {state: _pairs_of_state(state) for state in State}


VariableKind = Literal["BA", "MC1", "MS9", "state", "carry_in", "US9"]


@dataclass(frozen=True)
class Variable:
    """A variable of one column that a node might carry."""

    kind: VariableKind
    column: int

    def __post_init__(self) -> None:
        if self.kind not in get_args(VariableKind):
            raise CallError(
                f"A variable is one of {', '.join(get_args(VariableKind))} (UC1 is carry_in). "
                f"Got '{self.kind}'."
            )

    def __str__(self) -> str:
        return f"{self.kind}({self.column})"


def counterfactuals(
    generator: np.random.Generator,
    count: int,
    digits: int,
    variable: Variable,
    *,
    depth: int = 0,
) -> tuple[Questions, Questions]:
    """Pairs (base, source) that are the same in everything but `variable`.

    - BA: the state of the column is the same, S mod 10 is not.
    - MC1: S mod 10 is the same, one side carries and the other does not.
    - MS9: neither side carries, on one S is 9.
    - state: the states differ.
    - carry_in, which is UC1: the columns from the named one up are the same. `depth` columns
      directly below propagate, and MC1 differs in the one below those.
    - US9: as carry_in, with the named column at 9.

    Every other column has the same digits on both sides; which side is base is a fair coin.
    """
    check_digits(digits)
    column = _changed_column(variable, digits, depth)
    base = uniform(generator, count, digits)
    nines = np.zeros((count, digits), dtype=bool)
    nines[:, column + 1 : column + 1 + depth + (variable.kind == "US9")] = True
    base = with_nines(generator, base, nines)
    sums = _differing_sums(generator, count, variable.kind)
    sums = np.where(generator.random(count) < 0.5, sums, sums[::-1])
    sides = [_with_column(generator, base, column, side) for side in sums]
    return sides[0], sides[1]


def _changed_column(variable: Variable, digits: int, depth: int) -> int:
    """The one column in which the two sides of a counterfactual pair differ."""
    if variable.kind not in ("carry_in", "US9"):
        if not 0 <= variable.column < digits:
            raise CallError(f"column must be between 0 and {digits - 1}. Got {variable.column}.")
        if depth:
            raise CallError(
                f"depth applies to carry_in and US9 only. Got depth {depth} for {variable}."
            )
        return variable.column
    highest = digits if variable.kind == "carry_in" else digits - 1
    if not 1 <= variable.column <= highest:
        raise CallError(
            f"The column of a {variable.kind} must be between 1 and {highest}. "
            f"Got {variable.column}."
        )
    if not 0 <= depth < variable.column:
        raise CallError(
            f"depth must be between 0 and {variable.column - 1} for {variable}. Got {depth}."
        )
    return variable.column - 1 - depth


def _differing_sums(
    generator: np.random.Generator, count: int, kind: VariableKind
) -> Int[Array, "2 batch"]:
    """Two raw sums per pair that differ in the named variable and in as little else as can be."""
    if kind == "state":
        states = generator.permuted(np.tile(np.arange(3), (count, 1)), axis=1)[:, :2].T
        drawn = with_states(generator, states)
        return drawn.first + drawn.second
    low = generator.integers(0, 9, count)
    if kind == "BA":
        other = (low + generator.integers(1, 9, count)) % 9
        shift = 10 * generator.integers(0, 2, count)
        return np.stack([low + shift, other + shift])
    if kind == "MS9":
        return np.stack([low, np.full(count, 9)])
    assert kind in ("MC1", "carry_in", "US9")
    return np.stack([low, low + 10])


def _with_column(
    generator: np.random.Generator, questions: Questions, column: int, sums: Int[Array, " batch"]
) -> Questions:
    """The questions with one column replaced by a random pair of the given raw sums."""
    lowest, highest = np.maximum(sums - 9, 0), np.minimum(sums, 9)
    first, second = questions.first.copy(), questions.second.copy()
    first[:, column] = generator.integers(lowest, highest + 1)
    second[:, column] = sums - first[:, column]
    return Questions(first, second)
