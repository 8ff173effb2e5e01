"""All questions in disjoint strata, each with its exact probability and a way to draw from it.

In: a number of digits and an operation. Out: a `Partition`.

Up to six digits every pattern of column states is a stratum: `KKPPG` and 242 others for five.
Beyond that there are too many patterns, and questions are grouped by their longest cascades: how
many columns in a row pass a carry on, and how many propagate in a row with no carry arriving. In
subtraction also by the sign; the states are those after the exchange.

A small automaton reads the columns, the highest first, and ends in a stratum. Counting the ways
from each of its places to each stratum gives the size of a stratum and a way to draw from it. So
the rarest stratum is as easy to draw from as the commonest.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from carryscope.task.operation import ADD, PAIRS, Array, Operation, State
from carryscope.task.questions import Questions, check_digits
from carryscope.task.sampling import with_states
from carryscope.task.strata import stratum_name

MOST_DIGITS_BY_STATE = 6
"""Up to here every state pattern is a stratum: 729 of them for six digits."""

LONGEST = 7
"""Cascades of this length or longer are grouped together."""

Place = tuple[int, ...]
"""What the automaton remembers of the columns it has read."""


class Partition:
    """Disjoint strata that together hold every question.

    `then` says where a state leads from a place, `name` the stratum of a place at the end.
    """

    def __init__(
        self,
        digits: int,
        start: Place,
        then: Callable[[Any, State], Place],
        name: Callable[[Any], str],
        operation: Operation = ADD,
    ) -> None:
        self.digits, self.operation = digits, operation
        self._pairs = np.array(list(operation.pairs_per_state.values()), dtype=object)
        self._next: list[Int[Array, "place state"]] = []
        places = [start]
        for _ in range(digits):
            reached = [[then(place, state) for state in State] for place in places]
            places = sorted(set(chain(*reached)))
            index = {place: i for i, place in enumerate(places)}
            self._next.append(np.array([[index[place] for place in row] for row in reached]))
        ends = [name(place) for place in places]
        self.names = list(dict.fromkeys(ends))
        self._end = np.array([self.names.index(end) for end in ends])

    @cached_property
    def _ways(self) -> list[Array]:
        """For each column, in how many ways the pairs from there down lead to each stratum."""
        ways = [np.eye(len(self), dtype=int).astype(object)[self._end]]
        for then in reversed(self._next):
            ways.insert(0, (ways[0][then] * self._pairs[:, None]).sum(1))
        return ways

    @cached_property
    def probabilities(self) -> list[Fraction]:
        """The chance that a uniform question lies in each stratum; they add up to exactly 1."""
        return [Fraction(size, PAIRS**self.digits) for size in self._ways[0][0]]

    @cached_property
    def weights(self) -> Float[Array, " stratum"]:
        """The probabilities as floating-point numbers."""
        return np.array([float(p) for p in self.probabilities])

    def __len__(self) -> int:
        return len(self.names)

    def of(self, questions: Questions) -> Int[Array, " batch"]:
        """The stratum of each question."""
        state = self.operation.state[questions.first, questions.second]
        at = np.zeros(len(questions), dtype=np.int64)
        for then, column in zip(self._next, reversed(state.T), strict=True):
            at = then[at, column]
        return self._end[at]

    def draw(self, generator: np.random.Generator, stratum: int, count: int) -> Questions:
        """Questions drawn uniformly from one stratum."""
        states = np.empty((count, self.digits), dtype=np.int8)
        at = np.zeros(count, dtype=np.int64)
        for column, then, left in zip(reversed(states.T), self._next, self._ways[1:], strict=True):
            ways = left[then, stratum] * self._pairs
            shares = (ways / np.maximum(ways.sum(1, keepdims=True), 1)).astype(float)
            # A pattern leaves no choice: then no random number is used up.
            chance = generator.random((count, 1)) if (shares[at].max(1) < 1).any() else 0.5
            column[:] = (chance > shares[at].cumsum(1)[:, :-1]).sum(1)
            at = then[at, column]
        return with_states(generator, states, self.operation)

    def draw_each(
        self, generator: np.random.Generator, counts: Int[Array, " stratum"]
    ) -> tuple[Questions, Int[Array, " batch"]]:
        """So many questions of each stratum, and the stratum of each."""
        drawn = [self.draw(generator, int(s), int(counts[s])) for s in np.flatnonzero(counts)]
        return Questions.joined(drawn), np.repeat(np.arange(len(self)), counts)


class Mixture(Partition):
    """The partitions of several operations, each as likely; a question lies in that of its own."""

    def __init__(self, digits: int, operation: Operation) -> None:
        self.digits, self.operation = digits, operation
        self._parts = [partition(digits, one) for one in operation.parts]
        each = zip(operation.parts, self._parts, strict=True)
        self.names = [f"{one.symbol} {name}" for one, part in each for name in part.names]
        self._first = np.cumsum([0, *map(len, self._parts)])

    @cached_property
    def probabilities(self) -> list[Fraction]:
        """The chance that a question lies in each stratum; they add up to exactly 1."""
        chances = [chance for part in self._parts for chance in part.probabilities]
        return [chance / len(self._parts) for chance in chances]

    def of(self, questions: Questions) -> Int[Array, " batch"]:
        """The stratum of each question."""
        each = np.stack([part.of(questions) for part in self._parts])
        kind = questions.kinds
        return np.asarray(self._first[kind] + each[kind, np.arange(len(kind))])

    def draw(self, generator: np.random.Generator, stratum: int, count: int) -> Questions:
        """Questions drawn uniformly from one stratum."""
        place = int(np.searchsorted(self._first, stratum, side="right")) - 1
        return self._parts[place].draw(generator, stratum - int(self._first[place]), count)


@lru_cache
def partition(digits: int, operation: Operation = ADD) -> Partition:
    """The partition that suits the number of digits."""
    check_digits(digits)
    if operation.parts:
        return Mixture(digits, operation)
    return (by_state if digits <= MOST_DIGITS_BY_STATE else by_cascade)(digits, operation)


def by_state(digits: int, operation: Operation = ADD) -> Partition:
    """One stratum for each pattern of column states: a place is the pattern, highest first."""
    name = partial(stratum_name, operation=operation)
    return Partition(digits, (), lambda place, state: (*place, state), name, operation)


class _Cascades(NamedTuple):
    """What is remembered of cascades."""

    sign: int = 1
    """-1 in a difference once its answer is known to be negative; 0 while it can be either."""
    carry: int = 0
    """The longest run so far that passed a carry on."""
    quiet: int = 0
    """The longest run so far that had no carry to pass on."""
    run: int = 0
    """Propagating columns in a row down to here: what is below them decides about a carry."""

    def then(self, state: State) -> _Cascades:
        if state is State.PROPAGATE:
            return self._replace(run=min(self.run + 1, LONGEST))
        sign = self.sign or 1 - state
        if sign * (state - 1) > 0:
            return _Cascades(sign, max(self.carry, self.run), self.quiet)
        return _Cascades(sign, self.carry, max(self.quiet, self.run))

    @property
    def name(self) -> str:
        ended = self.carry, max(self.quiet, self.run)
        lengths = [f"{n} or more" if n == LONGEST else str(n) for n in ended]
        return f"longest carrying {lengths[0]}, longest quiet {lengths[1]}"


def by_cascade(digits: int, operation: Operation = ADD) -> Partition:
    """One stratum for each pair (longest cascade that carries, longest that does not), and sign."""

    def name(place: _Cascades) -> str:
        sign = "negative, " if place.sign < 0 else "positive, "
        return sign * operation.signed + place.name

    start = _Cascades(sign=0 if operation.signed else 1)
    return Partition(digits, start, _Cascades.then, name, operation)
