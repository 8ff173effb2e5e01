"""The training questions: a function of the recipe and the step, so resume needs no state.

In: a recipe and a step. Out: the `Questions` of that step's batch, never a curated one. And
the fixed held-out questions, drawn by the paper's rule from a seed no training can have.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from carryscope.task.curated import without_curated
from carryscope.task.questions import Questions
from carryscope.task.sampling import enriched, uniform, with_nines, with_patterns
from carryscope.training.config import LARGEST_SEED, TrainingConfig

START_NINES = (0.3, 1.0)
"""Bounds of each question's share of columns that propagate, at the start of our own rule."""

HELD_OUT_BATCHES, HELD_OUT_BATCH = 128, 64
"""How many batches, and how many questions in each: 8,192 questions, one batch in five enriched."""

_HELD_OUT_SEED = LARGEST_SEED + 1
"""No training can have it."""


def training_batch(recipe: TrainingConfig, digits: int, step: int) -> Questions:
    """The batch of a step, counted from 0."""
    generator = np.random.default_rng((recipe.seed, step))
    count, done = recipe.batch_at(step), step / recipe.steps
    if recipe.nines and done < 1 - recipe.paper_tail:
        questions = uniform(generator, count, digits)
        between = START_NINES if done < recipe.nines_start else (0.0, recipe.nines)
        shares = generator.uniform(*between, (count, 1))
        cells = generator.random((count, digits)) < shares
        questions = with_nines(generator, questions, cells)
    else:
        questions = enriched(
            generator,
            count,
            digits,
            batch_share=recipe.enriched_batches,
            cell_share=recipe.enriched_cells,
        )
    if recipe.patterns:
        half = count // 2
        drawn = with_patterns(generator, half, recipe.patterns)
        questions = Questions.joined([drawn, questions[half:]])
    return without_curated(generator, questions)


@lru_cache(maxsize=2)
def held_out_questions(digits: int) -> Questions:
    """The fixed questions on which every model of this size is measured.

    They are drawn independently of all training data. From four digits on hardly any of them is
    ever trained on; with fewer digits there are too few questions to avoid it.
    """
    generator = np.random.default_rng((_HELD_OUT_SEED, digits))
    batches = [enriched(generator, HELD_OUT_BATCH, digits) for _ in range(HELD_OUT_BATCHES)]
    return Questions.joined(batches).frozen()
