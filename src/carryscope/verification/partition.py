"""All questions in disjoint strata, each with its exact probability and a way to draw from it.

In: a number of digits. Out: a `Partition`.

Up to six digits every pattern of column states is a stratum: `KKPPG` and 242 others for five.
Beyond that there are too many patterns, and questions are grouped by their longest cascades: how
many columns in a row pass a carry on, and how many propagate in a row with no carry arriving. A
small automaton reads the columns from the units up. It counts the questions of a group and draws
from it, so the rarest group is as easy to draw from as the commonest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from carryscope.task.columns import Columns
from carryscope.task.operation import ADD, PAIRS, Array, Operation, State
from carryscope.task.questions import Questions, check_digits
from carryscope.task.sampling import with_states
from carryscope.task.strata import all_strata, stratum_probability, stratum_states

MOST_DIGITS_BY_STATE = 6
"""Up to here every state pattern is a stratum: 729 of them for six digits."""

LONGEST = 7
"""Cascades of this length or longer are grouped together."""


class Partition(ABC):
    """Disjoint strata that together hold every question."""

    digits: int
    operation: Operation
    names: list[str]
    probabilities: list[Fraction]
    """The chance that a uniform question lies in each stratum; they add up to exactly 1."""

    @abstractmethod
    def draw(self, generator: np.random.Generator, stratum: int, count: int) -> Questions:
        """Questions drawn uniformly from one stratum."""

    def draw_each(
        self, generator: np.random.Generator, counts: Int[Array, " stratum"]
    ) -> tuple[Questions, Int[Array, " batch"]]:
        """So many questions of each stratum, and the stratum of each."""
        drawn = [self.draw(generator, int(s), int(counts[s])) for s in np.flatnonzero(counts)]
        return Questions.joined(drawn), np.repeat(np.arange(len(self)), counts)

    @abstractmethod
    def of(self, questions: Questions) -> Int[Array, " batch"]:
        """The stratum of each question."""

    @cached_property
    def weights(self) -> Float[Array, " stratum"]:
        """The probabilities as floating-point numbers."""
        return np.array([float(p) for p in self.probabilities])

    def __len__(self) -> int:
        return len(self.names)


@lru_cache
def partition(digits: int, operation: Operation = ADD) -> Partition:
    """The partition that suits the number of digits."""
    check_digits(digits)
    kind = ByState if digits <= MOST_DIGITS_BY_STATE else ByCascade
    return kind(digits, operation)


class ByState(Partition):
    """One stratum for each pattern of column states."""

    def __init__(self, digits: int, operation: Operation = ADD) -> None:
        self.digits, self.operation = digits, operation
        self.names = list(all_strata(digits))
        self.probabilities = [stratum_probability(name, operation) for name in self.names]
        self._states = np.stack([stratum_states(name) for name in self.names])

    def draw(self, generator: np.random.Generator, stratum: int, count: int) -> Questions:
        states = np.broadcast_to(self._states[stratum], (count, self.digits))
        return with_states(generator, states, self.operation)

    def of(self, questions: Questions) -> Int[Array, " batch"]:
        powers = len(State) ** np.arange(self.digits)
        order = np.argsort(self._states @ powers)
        found: Array = order[Columns.of(questions).state.astype(np.int64) @ powers]
        return found


class _Seen(NamedTuple):
    """What the automaton remembers of the columns it has read, from the units up."""

    run: int
    """Propagating columns in a row up to here."""
    carrying: bool
    """Whether a carry passes through them."""
    carry: int
    """The longest run so far that passed a carry on."""
    quiet: int
    """The longest run so far that had no carry to pass on."""

    def then(self, state: State) -> _Seen:
        if state is not State.PROPAGATE:
            return _Seen(0, state is State.GENERATE, self.carry, self.quiet)
        run = min(self.run + 1, LONGEST)
        if self.carrying:
            return _Seen(run, True, max(self.carry, run), self.quiet)
        return _Seen(run, False, self.carry, max(self.quiet, run))


_START = _Seen(0, False, 0, 0)


class ByCascade(Partition):
    """One stratum for each pair (longest cascade that carries, longest that does not)."""

    def __init__(self, digits: int, operation: Operation = ADD) -> None:
        self.digits, self.operation = digits, operation
        reached = Counter({_START: 1})
        for _ in range(digits):
            steps = [(seen.then(s), s, ways) for seen, ways in reached.items() for s in State]
            reached = Counter()
            for seen, state, ways in steps:
                reached[seen] += ways * operation.pairs_per_state[state]
        sizes = Counter[tuple[int, int]]()
        for seen, ways in reached.items():
            sizes[seen.carry, seen.quiet] += ways
        self._labels = sorted(sizes)
        self.names = [_name(carry, quiet) for carry, quiet in self._labels]
        self.probabilities = [Fraction(sizes[label], PAIRS**digits) for label in self._labels]

    def draw(self, generator: np.random.Generator, stratum: int, count: int) -> Questions:
        states = np.empty((count, self.digits), dtype=np.int8)
        at = {_START: np.arange(count)}
        for column in range(self.digits):
            states[:, column], at = self._step(generator, column, at, self._labels[stratum])
        return with_states(generator, states, self.operation)

    def _step(
        self,
        generator: np.random.Generator,
        column: int,
        at: dict[_Seen, Array],
        label: tuple[int, int],
    ) -> tuple[Int[Array, " batch"], dict[_Seen, Array]]:
        """Draw the state of one column for all questions, given the columns below it."""
        left = self.digits - column - 1
        chosen = np.empty(sum(map(len, at.values())), dtype=np.int8)
        reached: dict[_Seen, list[Array]] = {}
        for seen, members in at.items():
            pairs = self.operation.pairs_per_state
            ways = [pairs[s] * _ways(self.operation, left, seen.then(s), label) for s in State]
            shares = np.array([float(Fraction(w, sum(ways))) for w in ways])
            drawn = generator.choice(len(State), size=len(members), p=shares / shares.sum())
            chosen[members] = drawn
            for state in State:
                reached.setdefault(seen.then(state), []).append(members[drawn == state])
        joined = {seen: np.concatenate(parts) for seen, parts in reached.items()}
        return chosen, {seen: members for seen, members in joined.items() if len(members)}

    def of(self, questions: Questions) -> Int[Array, " batch"]:
        columns = Columns.of(questions)
        passes = columns.state == State.PROPAGATE
        run = np.zeros(len(questions), dtype=np.int64)
        carry, quiet = run.copy(), run.copy()
        for i in range(self.digits):
            run = np.where(passes[:, i], np.minimum(run + 1, LONGEST), 0)
            through = columns.carry_in[:, i]
            carry = np.where(passes[:, i] & through, np.maximum(carry, run), carry)
            quiet = np.where(passes[:, i] & ~through, np.maximum(quiet, run), quiet)
        index = {label: i for i, label in enumerate(self._labels)}
        pairs = zip(carry.tolist(), quiet.tolist(), strict=True)
        return np.array([index[pair] for pair in pairs], dtype=np.int64)


@cache
def _ways(operation: Operation, left: int, seen: _Seen, label: tuple[int, int]) -> int:
    """In how many ways the remaining digit pairs lead to a label."""
    if seen.carry > label[0] or seen.quiet > label[1]:
        return 0
    if left == 0:
        return int((seen.carry, seen.quiet) == label)
    pairs = operation.pairs_per_state
    return sum(pairs[s] * _ways(operation, left - 1, seen.then(s), label) for s in State)


def _name(carry: int, quiet: int) -> str:
    def length(run: int) -> str:
        return f"{run} or more" if run == LONGEST else str(run)

    return f"longest carrying {length(carry)}, longest quiet {length(quiet)}"
