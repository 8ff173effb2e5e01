"""Sets of digit pairs, from all hundred down to one: how a column of a box is split.

In: which pairs a row treats alike. Out: a `ColumnTree`. A pair (D, D') is the number
10 D + D', so 12345+67890 has the pair 50 in column 0. Every set of a tree is a stretch of one
permutation of the hundred pairs, and its children divide this stretch. So the numbers alone show
that the children are disjoint and together make up their parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from carryscope.core.errors import CallError
from carryscope.task.operation import PAIRS, Array, Operation


def levels_of(operation: Operation, kind: str) -> list[Int[Array, " pair"]]:
    """By what a column is split first: a row's own one, the one of the answer digit it reads last
    (the query), or any other.

    The raw value of the own column decides the digit and the carry that leaves. Of the query's
    column the last digit of the raw value is enough to know the query.
    """
    raw, states = operation.raw.ravel(), operation.state.ravel()
    return {"own": [states, raw], "query": [operation.digit_of(raw), states]}.get(kind, [states])


@dataclass(frozen=True, eq=False)
class ColumnTree:
    """A hierarchy of sets of digit pairs. Node 0 is all of them; leaves are single pairs."""

    order: Int[Array, " pair"]
    """A permutation of the pairs."""
    start: Int[Array, " node"]
    stop: Int[Array, " node"]
    """Node i holds the pairs order[start[i] : stop[i]]; parents stand before their children."""

    def __post_init__(self) -> None:
        if sorted(self.order.tolist()) != list(range(PAIRS)):
            raise CallError(f"A column tree must order all {PAIRS} digit pairs.")
        if not 0 < len(self.start) == len(self.stop):
            raise CallError("Every set of a column tree must have a beginning and an end.")
        if (int(self.start[0]), int(self.stop[0])) != (0, PAIRS):
            raise CallError(f"The first set of a column tree must hold all {PAIRS} digit pairs.")
        for node, children in enumerate(self.children):
            held = [int(self.start[node]), *(int(self.stop[c]) for c in children)]
            begins = [int(self.start[c]) for c in children]
            if children and (held[:-1] != begins or held[-1] != int(self.stop[node])):
                raise CallError("The sets of a column tree must be split without gap or overlap.")
            if len(children) == 1:
                raise CallError("A set of a column tree must have two parts or more.")
            if not children and self.stop[node] - self.start[node] != 1:
                raise CallError("The smallest sets of a column tree must be single pairs.")

    @cached_property
    def children(self) -> list[list[int]]:
        """The children of each node, in the order of their stretches."""
        children: list[list[int]] = [[] for _ in self.start]
        path: list[int] = []
        for node in range(len(self.start)):
            while path and self.stop[path[-1]] <= self.start[node]:
                path.pop()
            if path:
                children[path[-1]].append(node)
            path.append(node)
        return children

    @cached_property
    def parts(self) -> Int[Array, " node"]:
        """How many children each node has."""
        return np.array([len(children) for children in self.children])

    @cached_property
    def child_list(self) -> Int[Array, " child"]:
        """The children of all nodes, one after the other."""
        return np.array([child for children in self.children for child in children])

    @cached_property
    def first_child(self) -> Int[Array, " node"]:
        """Where the children of each node begin in `child_list`."""
        return np.cumsum(self.parts) - self.parts

    @cached_property
    def part_of(self) -> Int[Array, "node pair"]:
        """Which child of a node holds a pair; meaningless where the node does not hold it."""
        found = np.zeros((len(self.start), PAIRS), dtype=np.int8)
        for node, children in enumerate(self.children):
            for number, child in enumerate(children):
                found[node, self.members[child]] = number
        return found

    @property
    def sizes(self) -> Int[Array, " node"]:
        """How many pairs each node holds."""
        return self.stop - self.start

    @cached_property
    def members(self) -> Bool[Array, "node pair"]:
        """Which pairs each node holds."""
        place = np.empty(PAIRS, dtype=np.int64)
        place[self.order] = np.arange(PAIRS)
        return (place >= self.start[:, None]) & (place < self.stop[:, None])


def grow_tree(likeness: Float[Array, "pair pair"], levels: Sequence[Array]) -> ColumnTree:
    """A tree whose first levels are given, and whose small sets hold pairs treated alike.

    `likeness` is the Gram matrix of what a row makes of each pair.
    """
    order: list[int] = []
    stretches: list[tuple[int, int]] = []

    def add(pairs: Sequence[int], levels: Sequence[Array]) -> None:
        begin, place = len(order), len(stretches)
        stretches.append((0, 0))
        if len(pairs) == 1:
            order.append(pairs[0])
        else:
            for part in _parts(np.array(pairs), levels, likeness):
                add(part.tolist(), levels[1:])
        stretches[place] = (begin, len(order))

    add(range(PAIRS), levels)
    start, stop = np.array(stretches).T
    return ColumnTree(np.array(order), start, stop)


def _parts(pairs: Array, levels: Sequence[Array], likeness: Array) -> list[Array]:
    """The parts of a set: by the next level that separates them, else two parts of like pairs."""
    if levels:
        labels = levels[0][pairs]
        if len(set(labels.tolist())) > 1:
            return [pairs[labels == label] for label in sorted(set(labels.tolist()))]
        return _parts(pairs, levels[1:], likeness)
    return _two_alike(pairs, likeness[np.ix_(pairs, pairs)])


def _two_alike(pairs: Array, gram: Array) -> list[Array]:
    """Cut along the direction of largest spread, where the two parts become narrowest.

    A part counts by its width times its size, so a few outliers are cut off rather than
    the middle being cut through.
    """
    along = _widest(gram)
    rank = np.argsort(along, kind="stable")
    line, count = along[rank], np.arange(1, len(pairs))
    cost = count * (line[:-1] - line[0]) + (len(pairs) - count) * (line[-1] - line[1:])
    cut = int(cost.argmin()) + 1
    return [np.sort(pairs[rank[:cut]]), np.sort(pairs[rank[cut:]])]


def _widest(gram: Float[Array, "pair pair"]) -> Float[Array, " pair"]:
    """Where each pair lies along the direction of largest spread.

    Any direction is sound. So a Gram matrix that has no eigenvectors, because attention is so
    sharp that its numbers overflow, gets the direction of its furthest pair.
    """
    known = np.nan_to_num(gram, posinf=0.0, neginf=0.0)
    centred = known - known.mean(0) - known.mean(1, keepdims=True) + known.mean()
    try:
        return np.asarray(np.linalg.eigh(centred)[1][:, -1])
    except np.linalg.LinAlgError:
        return np.asarray(centred[:, centred.diagonal().argmax()])
