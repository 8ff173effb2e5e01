"""Questions drawn at random, always from a generator that is passed in.

In: a numpy generator and what to draw. Out: `Questions`, or pairs of them.

    uniform            every question equally likely
    enriched           the paper's training data: some batches with extra columns that propagate
    in_stratum         uniform among questions with a given state in every column
    counterfactuals    pairs that differ in one named variable of one column
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Int

from carryscope.core.errors import CallError
from carryscope.task.operation import ADD, BASE, Array, Operation, State
from carryscope.task.questions import Questions, check_digits
from carryscope.task.strata import stratum_states

PAPER_BATCH_SHARE = 0.2
"""The paper enriches one batch in five."""

PAPER_CELL_SHARE = 0.2
"""In an enriched batch the paper overwrites one column in five so that it propagates."""


def uniform(
    generator: np.random.Generator, count: int, digits: int, operation: Operation = ADD
) -> Questions:
    """Questions drawn uniformly from all 10^(2n)."""
    check_digits(digits)
    pair = generator.integers(0, BASE, (2, count, digits), dtype=np.int8)
    return Questions(pair[0], pair[1], operation)


def enriched(
    generator: np.random.Generator,
    count: int,
    digits: int,
    operation: Operation = ADD,
    *,
    batch_share: float = PAPER_BATCH_SHARE,
    cell_share: float = PAPER_CELL_SHARE,
) -> Questions:
    """One training batch by the paper's rule.

    With chance `batch_share` the batch has `cell_share` of its (question, column) cells
    overwritten so that the column propagates, by changing the first number or the second, by
    a fair coin.
    """
    questions = uniform(generator, count, digits, operation)
    if generator.random() >= batch_share:
        return questions
    return with_nines(generator, questions, generator.random((count, digits)) < cell_share)


def with_nines(
    generator: np.random.Generator, questions: Questions, cells: Bool[Array, "batch column"]
) -> Questions:
    """The questions with the marked cells made to propagate, on a side chosen by a fair coin."""
    operation, (first, second) = questions.operation, (questions.first, questions.second)
    heads = generator.random(cells.shape) < 0.5
    return Questions(
        np.where(cells & heads, operation.passing_first[second], first),
        np.where(cells & ~heads, operation.passing_second[first], second),
        operation,
    )


def in_stratum(
    generator: np.random.Generator, count: int, stratum: str, operation: Operation = ADD
) -> Questions:
    """Questions drawn uniformly among those with the given state in every column."""
    states = stratum_states(stratum)
    check_digits(len(states))
    return with_states(generator, np.broadcast_to(states, (count, len(states))), operation)


def with_states(
    generator: np.random.Generator,
    states: Int[Array, "batch column"],
    operation: Operation = ADD,
) -> Questions:
    """Questions drawn uniformly among those whose columns have these states."""
    first = np.empty(states.shape, dtype=np.int8)
    second = np.empty(states.shape, dtype=np.int8)
    for state, pairs in operation.pairs_of_state.items():
        cells = states == state
        drawn = pairs[generator.integers(0, len(pairs), int(cells.sum()))]
        first[cells], second[cells] = drawn[:, 0], drawn[:, 1]
    return Questions(first, second, operation)


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
    operation: Operation = ADD,
    *,
    depth: int = 0,
) -> tuple[Questions, Questions]:
    """Pairs (base, source) that are the same in everything but `variable`.

    - BA: the state of the column is the same, its digit without a carry is not.
    - MC1: that digit is the same, one side generates and the other kills.
    - MS9: one side propagates and the other kills.
    - state: the states differ.
    - carry_in, which is UC1: the columns from the named one up are the same. `depth` columns
      directly below propagate, and MC1 differs in the one below those.
    - US9: as carry_in, and the named column propagates.

    Every other column has the same digits on both sides; which side is base is a fair coin.
    """
    check_digits(digits)
    column = _changed_column(variable, digits, depth)
    base = uniform(generator, count, digits, operation)
    passing = np.zeros((count, digits), dtype=bool)
    passing[:, column + 1 : column + 1 + depth + (variable.kind == "US9")] = True
    base = with_nines(generator, base, passing)
    raws = _differing_raws(generator, count, variable.kind, operation)
    raws = np.where(generator.random(count) < 0.5, raws, raws[::-1])
    sides = [_with_column(generator, base, column, side) for side in raws]
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


def _differing_raws(
    generator: np.random.Generator, count: int, kind: VariableKind, operation: Operation
) -> Int[Array, "2 batch"]:
    """Two raw values per pair that differ in the named variable and in as little else as can be."""
    if kind == "state":
        states = generator.permuted(np.tile(np.arange(len(State)), (count, 1)), axis=1)[:, :2].T
        drawn = with_states(generator, states, operation)
        return operation.raw[drawn.first, drawn.second]
    kill, generate = (operation.raws_of_state[state] for state in (State.KILL, State.GENERATE))
    place = generator.integers(0, len(kill), count)
    if kind == "BA":
        other = (place + generator.integers(1, len(kill), count)) % len(kill)
        carries = generator.integers(0, 2, count)
        return np.stack([kill, generate])[carries, np.stack([place, other])]
    if kind == "MS9":
        return np.stack([kill[place], np.full_like(kill[place], operation.propagates)])
    assert kind in ("MC1", "carry_in", "US9")
    return np.stack([kill[place], generate[place]])


def _with_column(
    generator: np.random.Generator, questions: Questions, column: int, raws: Int[Array, " batch"]
) -> Questions:
    """The questions with one column replaced by a random pair of the given raw values."""
    raw_of_pair = questions.operation.raw.ravel()
    pairs = np.argsort(raw_of_pair, kind="stable")
    start = np.searchsorted(raw_of_pair[pairs], raws, side="left")
    stop = np.searchsorted(raw_of_pair[pairs], raws, side="right")
    drawn = pairs[generator.integers(start, stop)]
    first, second = questions.first.copy(), questions.second.copy()
    first[:, column], second[:, column] = drawn // BASE, drawn % BASE
    return Questions(first, second, questions.operation)
