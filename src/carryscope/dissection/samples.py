"""The questions of the experiments. All of them follow from one seed.

In: a number of digits, a seed and an operation. Out: `Questions`, the same on every machine:

    Samples(digits=5, seed=0).nines_rich("edges", 256)
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int

from carryscope.core.errors import CallError
from carryscope.task.columns import Columns, QuestionClass
from carryscope.task.curated import curated_questions
from carryscope.task.operation import ADD, Array, Operation, State
from carryscope.task.questions import Questions
from carryscope.task.sampling import enriched, uniform, with_nines, with_states
from carryscope.task.tokens import Format

BATCH, BATCHES = 64, 15
"""The paper's batch, and how many of them: 960 questions, and the curated ones."""

PER_CLASS = 250
"""Questions of each class."""

_DRAWN_AT_ONCE, _MOST_DRAWS = 20_000, 20
"""Cascades are 1 in 200 enriched questions. If a class does not exist we stop looking."""


@dataclass(frozen=True)
class Samples:
    """Named sets of questions."""

    digits: int
    seed: int
    operation: Operation = ADD

    @classmethod
    def of(cls, layout: Format, seed: int) -> Samples:
        """The questions for models with this layout."""
        return cls(layout.digits, seed, layout.operation)

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise CallError(f"seed must be at least 0. Got {self.seed}.")

    def generator(self, purpose: str) -> np.random.Generator:
        """A generator of its own for every purpose, so that no experiment disturbs another."""
        return np.random.default_rng((self.seed, zlib.crc32(purpose.encode())))

    @cached_property
    def varied(self) -> Questions:
        """The curated questions, and batches by the paper's rule. Means are taken over these."""
        generator = self.generator("varied")
        asked = (self.digits, self.operation)
        batches = [enriched(generator, BATCH, *asked) for _ in range(BATCHES)]
        return Questions.joined([curated_questions(*asked), *batches])

    @cached_property
    def by_class(self) -> dict[QuestionClass, Questions]:
        """The same number of questions of each class, enriched by the paper's rule."""
        generator = self.generator("by class")
        found: dict[QuestionClass, list[Questions]] = {kind: [] for kind in QuestionClass}
        for _ in range(_MOST_DRAWS):
            drawn = enriched(
                generator, _DRAWN_AT_ONCE, self.digits, self.operation, batch_share=1.0
            )
            classes = Columns.of(drawn).question_class
            for kind, parts in found.items():
                missing = PER_CLASS - sum(map(len, parts))
                parts.append(drawn[np.flatnonzero(classes == kind)[:missing]])
            if all(sum(map(len, parts)) == PER_CLASS for parts in found.values()):
                break
        joined = {kind: Questions.joined(parts) for kind, parts in found.items()}
        return {kind: questions for kind, questions in joined.items() if len(questions)}

    def nines_rich(self, purpose: str, count: int) -> Questions:
        """Questions, each with its own share of columns that propagate, from none to all.

        So long look-aheads, which are hard, are as common as short ones.
        """
        generator = self.generator(purpose)
        questions = uniform(generator, count, self.digits, self.operation)
        cells = generator.random((count, self.digits)) < generator.random((count, 1))
        return with_nines(generator, questions, cells)

    def any_states(self, generator: np.random.Generator, count: int) -> Questions:
        """Questions whose columns have every state as often; of a mixture, each operation."""
        states, parts = (
            generator.integers(0, len(State), (count, self.digits)),
            self.operation.each_part,
        )
        each = [with_states(generator, states[i :: len(parts)], one) for i, one in enumerate(parts)]
        return Questions.joined(each)


def numbered(parts: Sequence[Array]) -> Int[Array, " batch"]:
    """Each distinct combination of values as a number, counted from 0."""
    code = np.zeros(len(parts[0]), dtype=np.int64)
    for part in parts:
        value = np.unique(part, return_inverse=True)[1]
        code = np.unique(code * (int(value.max()) + 1) + value, return_inverse=True)[1]
    return code


def partners(group: Int[Array, " batch"], generator: np.random.Generator) -> Int[Array, " batch"]:
    """For each question another of the same group, at random; itself if it is the only one."""
    order = generator.permutation(len(group))
    order = order[np.argsort(group[order], kind="stable")]
    sizes = np.bincount(group)
    first = np.repeat(sizes.cumsum() - sizes, sizes)
    place = np.arange(len(group)) - first
    partner = np.empty_like(order)
    partner[order] = order[first + (place + 1) % np.repeat(sizes, sizes)]
    return partner
