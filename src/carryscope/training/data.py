"""The training questions: a function of the recipe and the step, so resume needs no state.

In: a recipe and a step. Out: the `Questions` of that step's batch, never a curated one unless the
authors' stream draws it. And the fixed held-out questions, drawn by the paper's rule from a seed
no training can have.

`Climbers` are questions that climb towards what the model gets wrong. Each question of a pool is
changed in some columns, and the change is kept if the loss grows by it. Training on them makes
their losses small again, so they move on. The last errors of a model are too rare to be met by
chance: seven digits had 9 in 200,000 questions, all of the states *PPKGGG.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Bool, Float

from carryscope.task.curated import without_curated
from carryscope.task.operation import ADD, BASE, Array, Operation, State
from carryscope.task.questions import Questions
from carryscope.task.sampling import (
    enriched,
    near_nines,
    uniform,
    with_nines,
    with_patterns,
    with_states,
)
from carryscope.task.tokens import Format
from carryscope.training.config import LARGEST_SEED, TrainingConfig

START_NINES = (0.3, 1.0)
"""Bounds of each question's share of columns that propagate, at the start of our own rule."""

HELD_OUT_BATCHES, HELD_OUT_BATCH = 128, 64
"""How many batches, and how many questions in each: 8,192 questions, one batch in five enriched."""

_HELD_OUT_SEED = LARGEST_SEED + 1
"""No training can have it."""


def training_batch(
    recipe: TrainingConfig, digits: int, step: int, operation: Operation = ADD
) -> Questions:
    """The batch of a step, counted from 0."""
    if recipe.stream == "authors":
        return _authors_stream(recipe, digits).batch(step)
    generator = np.random.default_rng((recipe.seed, step))
    count, done = recipe.batch_at(step), step / recipe.steps
    if recipe.nines and done < 1 - recipe.paper_tail:
        questions = uniform(generator, count, digits, operation, differences=recipe.differences)
        if recipe.near_nines:
            shares = generator.uniform(0.0, recipe.near_nines, (count, 1))
            questions = near_nines(generator, questions, generator.random((count, digits)) < shares)
        between = START_NINES if done < recipe.nines_start else (0.0, recipe.nines)
        shares = generator.uniform(*between, (count, 1))
        cells = generator.random((count, digits)) < shares
        questions = with_nines(generator, questions, cells)
    else:
        questions = enriched(
            generator,
            count,
            digits,
            operation,
            batch_share=recipe.enriched_batches,
            cell_share=recipe.enriched_cells,
            differences=recipe.differences,
        )
    if recipe.patterns:
        half = count // 2
        drawn = with_patterns(generator, half, recipe.patterns, operation)
        questions = Questions.joined([drawn, questions[half:]])
    return without_curated(generator, questions)


class AuthorsStream:
    """The batches of the paper's notebook: its generators, seeded alike, in its order of draws.

    Batches follow one another, so an earlier one takes a new start.
    """

    def __init__(self, recipe: TrainingConfig, digits: int) -> None:
        self._recipe, self._shape = recipe, (recipe.batch, digits)
        self._start()

    def batch(self, step: int) -> Questions:
        """The batch of a step, counted from 0."""
        if step < self._drawn:
            self._start()
        while self._drawn < step:
            self._draw()
        return self._draw()

    def _start(self) -> None:
        self._tensors = torch.Generator().manual_seed(self._recipe.seed)
        self._coins = random.Random(self._recipe.seed)
        self._drawn = 0

    def _draw(self) -> Questions:
        """Two numbers; in one batch of five some columns are made to sum to 9, all on one side."""
        pair = [torch.randint(0, BASE, self._shape, generator=self._tensors) for _ in range(2)]
        if self._coins.randint(1, round(1 / self._recipe.enriched_batches)) == 1:
            cells = torch.randperm(pair[0].numel(), generator=self._tensors)
            cells = cells[: int(self._recipe.enriched_cells * len(cells))]
            changed = self._coins.randint(1, 2) - 1
            kept = pair[1 - changed].view(-1)[cells]
            pair[changed].view(-1)[cells] = BASE - 1 - kept
        self._drawn += 1
        first, second = (digits.numpy()[:, ::-1].astype(np.int8) for digits in pair)
        return Questions(first, second)


_authors_stream = lru_cache(maxsize=2)(AuthorsStream)


@lru_cache(maxsize=2)
def held_out_questions(digits: int, operation: Operation = ADD) -> Questions:
    """The fixed questions on which every model of this size is measured.

    They are drawn independently of all training data. From four digits on hardly any of them is
    ever trained on; with fewer digits there are too few questions to avoid it.
    """
    generator = np.random.default_rng((_HELD_OUT_SEED, digits))
    batches = [
        enriched(generator, HELD_OUT_BATCH, digits, operation) for _ in range(HELD_OUT_BATCHES)
    ]
    return Questions.joined(batches).frozen()


POOL = 1024
"""Questions that climb. A step moves as many as its batch takes, in turn."""

LossOf = Callable[[Questions], Float[Array, " batch"]]


class Climbers:
    """The pool of questions. In a mixture each operation has as many."""

    def __init__(self, seed: int, layout: Format) -> None:
        self._seed = seed
        generator = np.random.default_rng((seed, 0, 2))
        blank = np.zeros((POOL, layout.digits), dtype=np.int8)
        parts = len(layout.operation.parts)
        kind = np.arange(POOL, dtype=np.int8) % parts if parts else None
        drawn = _with_any_states(generator, Questions(blank, blank, layout.operation, kind))
        self.pool = without_curated(generator, drawn)

    def climbed(self, step: int, count: int, loss_of: LossOf) -> Questions:
        """The questions whose turn it is, each changed in some columns if that is harder.

        How many columns are changed is left to chance, from one or none to nearly all.
        """
        generator = np.random.default_rng((self._seed, step, 1))
        turn = np.arange(step * count, (step + 1) * count) % POOL
        now = self.pool[turn]
        other = _with_any_states(generator, now)
        cells = generator.random(now.first.shape) < generator.random((count, 1)) ** 2
        changed = without_curated(generator, _exchanged(now, other, cells))
        before, after = loss_of(Questions.joined([now, changed])).reshape(2, count)
        kept = _exchanged(now, changed, (after > before)[:, None])
        self.pool.first[turn], self.pool.second[turn] = kept.first, kept.second
        return kept


def _with_any_states(generator: np.random.Generator, like: Questions) -> Questions:
    """Questions of the same operations; each column kills, propagates or generates, as often."""
    states = generator.integers(0, len(State), like.first.shape)
    drawn = [with_states(generator, states, one) for one in like.operation.each_part]
    if like.kind is None:
        return drawn[0]
    pairs = np.stack([(one.first, one.second) for one in drawn], axis=2)
    first, second = pairs[:, np.arange(len(like)), like.kind]
    return Questions(first, second, like.operation, like.kind)


def _exchanged(questions: Questions, other: Questions, cells: Bool[Array, "*shape"]) -> Questions:
    """The questions with the digits of the marked cells from the other ones."""
    return replace(
        questions,
        first=np.where(cells, other.first, questions.first),
        second=np.where(cells, other.second, questions.second),
    )
