"""Ways to answer that a model might have learnt, each precise enough to compare with the model.

In: `Columns`. Out: answer digits (units first), and the named variables that decide them.

    exact addition    00445+00555 -> 001000
    Algorithm 1       00445+00555 -> 000000   (sees two columns below each digit)
    look-ahead 3      00445+00555 -> 001000   (sees three)

Algorithms are tested teacher-forced, as models are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Int

from carryscope.core.words import counted, listed
from carryscope.dissection.attention import AttentionFinding
from carryscope.dissection.keys import key_count
from carryscope.dissection.samples import numbered
from carryscope.task.columns import ALGORITHM_1_REACH, Columns
from carryscope.task.operation import ADD, Array, Operation, State

FARTHEST = 6
"""The farthest look-ahead compared in addition to exact addition. A farther one differs from exact
addition in fewer than one question in a million, which no sample here would show."""

ALGORITHM_1 = "Algorithm 1"
AS_DISSECTED = "as dissected"
WRONG = "wrong columns"


@dataclass(frozen=True, eq=False, kw_only=True)
class Algorithm:
    """A precise way to add."""

    name: str
    about: str
    """What it does, in a sentence."""
    answer: Callable[[Columns], Array]
    """The answer digits, of shape (batch, digit), units first: A0 .. An."""
    variables: Callable[[Columns], Mapping[str, Array]]
    """Named variables, each of shape (batch, digit). Their values at digit k together are the
    *key* of A_k: they decide it."""
    by_head: Callable[[Columns], Mapping[str, Array]] | None = None
    """What single heads carry, if these are other variables."""
    offsets: Mapping[str, int] = field(default_factory=dict)
    """How many columns below its digit a head reads each variable. One that is missing here belongs
    to no single column."""
    control: bool = False
    """Whether it is wrong on purpose, and no candidate."""

    def keys(self, columns: Columns, digit: int) -> Int[Array, " batch"]:
        """The key of one answer digit in each question, as a number."""
        variables = self.variables(columns).values()
        return numbered([columns.reading, *(values[:, digit] for values in variables)])


def shipped(
    digits: int, read: AttentionFinding | None = None, operation: Operation = ADD
) -> list[Algorithm]:
    """The algorithms to compare, with what the heads read as one of them.

    The last is wrong on purpose.

    A look-ahead as long as the number is exact addition, so the list ends before it. In subtraction
    the same algorithms follow borrows, with the numbers in order: they read the sign.
    """
    reaches = [1, 2, *range(3, min(digits - 1, FARTHEST) + 1)]
    known = [as_dissected(read, digits, operation)] if read is not None else []
    return [
        exact(digits, operation),
        *(look_ahead(reach, digits, operation) for reach in reaches),
        *known,
        wrong_columns(digits, operation),
    ]


def exact(digits: int, operation: Operation = ADD) -> Algorithm:
    """The correct answer; head by head, each brings the state of one column."""
    by_head, words = look_ahead(digits, digits, operation), operation.words
    keys = sum(key_count(k, digits, k, operation) for k in range(digits + 1))

    def variables(columns: Columns) -> dict[str, Array]:
        return {operation.subtasks.base: _base(columns), words.carry: columns.carry_in}

    return replace(
        by_head,
        name=f"exact {operation.name}",
        about=f"Every {words.carry} arrives, however far it travels. Each head brings the "
        f"state of one column, and the MLP tells {keys:,} keys apart.",
        answer=Columns.answer,
        variables=variables,
        by_head=by_head.variables,
    )


def look_ahead(reach: int, digits: int, operation: Operation = ADD) -> Algorithm:
    """Sees `reach` columns below each digit. Reach 2 is Algorithm 1, completed."""
    words = operation.words
    return _by_reach(
        ALGORITHM_1 if reach == ALGORITHM_1_REACH else f"look-ahead {reach}",
        f"Sees {counted(reach, 'column')} below each digit; if all of them are "
        f"{words.passing_plural}, it assumes that no {words.carry} arrives.",
        [reach] * (digits + 1),
        operation,
    )


def as_dissected(read: AttentionFinding, digits: int, operation: Operation = ADD) -> Algorithm:
    """Sees the columns below each digit that heads read at its row."""
    reach = [read.reach(k) for k in range(digits + 1)]
    seen = [f"A{k} sees {reach[k]}" for k in reversed(range(digits + 1))]
    about = f"Sees the columns below each digit that heads read: {listed(seen)}."
    return _by_reach(AS_DISSECTED, about, reach, operation)


def wrong_columns(digits: int, operation: Operation = ADD) -> Algorithm:
    """Algorithm 1 one column too low: the score of a claim about the wrong columns."""
    right = look_ahead(ALGORITHM_1_REACH, digits, operation)

    def lowered(columns: Columns) -> Columns:
        return replace(columns, sums=np.pad(columns.sums, ((0, 0), (1, 0)))[:, :-1])

    return replace(
        right,
        name=WRONG,
        about="Algorithm 1 one column too low: wrong on purpose, as a control.",
        answer=lambda columns: right.answer(lowered(columns)),
        variables=lambda columns: right.variables(lowered(columns)),
        offsets={name: 1 + offset for name, offset in right.offsets.items()},
        control=True,
    )


def _by_reach(name: str, about: str, reach: Sequence[int], operation: Operation) -> Algorithm:
    """Each digit with its own look-ahead."""
    reaches, names = np.array(reach), operation.subtasks
    states = {f"state {j} below": j for j in range(1, max(reach))}
    carries = {f"{names.makes} {j} below": j for j in sorted(set(reach) - {0})}

    def variables(columns: Columns) -> dict[str, Array]:
        found = {names.base: _base(columns)}
        for variable, j in states.items():
            found[variable] = np.where(reaches > j, _below(columns.state, j), 0)
        for variable, j in carries.items():
            made = columns.state == State.GENERATE
            found[variable] = np.where(reaches == j, _below(made, j), 0)
        return found

    return Algorithm(
        name=name,
        about=about,
        answer=lambda columns: columns.answer(columns.carry_seen(reaches)),
        variables=variables,
        offsets={names.base: 0, **states, **carries},
    )


def _base(columns: Columns) -> Int[Array, "batch digit"]:
    """BA at each answer digit; A_n has no column of its own."""
    return np.pad(columns.base_add, ((0, 0), (0, 1)))


def _below(values: Array, offset: int) -> Array:
    """The value `offset` columns below each answer digit; 0, which is *kill*, below the units."""
    n = values.shape[1]
    return np.pad(values, ((0, 0), (offset, 0)))[:, : n + 1]
