"""Questions that climb towards what the model gets wrong.

In: the model, as a function from questions to losses. Out: hard questions for its next batch.
Each question of a pool is changed in some columns, and the change is kept if the loss grows by it.
Training on them makes their losses small again, so they move on. The last errors of a model are too
rare to be met by chance: seven digits had 9 in 200,000 questions, all of the states *PPKGGG.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from carryscope.task.curated import without_curated
from carryscope.task.operation import Array, State
from carryscope.task.questions import Questions
from carryscope.task.sampling import with_states
from carryscope.task.tokens import Format

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
