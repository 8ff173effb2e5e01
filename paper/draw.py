"""One draw as estimands see it: a run, what the library found about it, and sets of questions.

In: a finished run. Out: `Draw`, whose parts are computed when an estimand first needs them.
All losses are teacher-forced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

import numpy as np
import torch
from jaxtyping import Float

from carryscope.core.progress import Progress, silent
from carryscope.dissection.attention import AttentionFinding, HeadRole
from carryscope.dissection.engine import UNCHANGED, Engine
from carryscope.dissection.interventions import HEADS, Ablate
from carryscope.dissection.samples import Samples
from carryscope.model.prediction import predict
from carryscope.model.transformer import Transformer, initialise
from carryscope.run import Run
from carryscope.task.columns import Columns, QuestionClass
from carryscope.task.operation import ADD, PAIRS, Array, State
from carryscope.task.questions import Questions
from carryscope.task.sampling import uniform
from carryscope.task.tokens import Format
from carryscope.training.data import held_out_questions
from carryscope.training.losses import StepRecord

QUESTIONS = 1000
"""Questions of each set that is drawn here."""

SEED = 20240507
"""Draws these questions."""


@dataclass(frozen=True, eq=False)
class Draw:
    """A run as estimands see it; `model` may be another of the same shape."""

    run: Run
    model: Transformer
    progress: Progress = silent

    @property
    def layout(self) -> Format:
        return self.model.config.layout

    @property
    def digits(self) -> int:
        return self.model.config.digits

    def place(self, digit: str) -> int:
        """Where an answer digit stands among the answer tokens."""
        return self.layout.answer_names.index(digit)

    @cached_property
    def attention(self) -> AttentionFinding:
        found = self.run.dissection("attention", progress=self.progress).attention
        assert found is not None
        return found

    @property
    def heads(self) -> list[HeadRole]:
        """What each head reads, own column first."""
        return sorted(self.attention.heads, key=lambda head: (head.role is None, head.offset))

    @cached_property
    def metrics(self) -> list[StepRecord]:
        return self.run.metrics()

    @cached_property
    def engine(self) -> Engine:
        return Engine(self.model, Samples(self.digits, 0).varied)

    @cached_property
    def held_out(self) -> Float[Array, "batch answer"]:
        """The losses on the fixed held-out questions."""
        losses: Array = predict(
            self.model, held_out_questions(self.digits), free_running=False
        ).loss
        return losses

    def held_out_loss(self, *digits: str) -> float:
        """The mean held-out loss of some answer digits."""
        return fmean(float(self.held_out[:, self.place(digit)].mean()) for digit in digits)

    def without_heads(self, questions: Questions) -> Float[Array, "change batch answer"]:
        """The losses with every head in place, then with each mean-ablated at all rows."""
        rows = tuple(range(self.layout.context))
        heads = range(self.model.config.heads)
        changes = [Ablate(f"blocks.0.{HEADS}", rows, (head,)) for head in heads]
        return self.engine.answers(questions, [UNCHANGED, *changes], losses=True).loss

    @cached_property
    def varied_without_heads(self) -> Float[Array, "change batch answer"]:
        return self.without_heads(self.engine.reference)

    @cached_property
    def base_add_losses(self) -> Float[Array, " change"]:
        """The loss on questions without a carry: with all heads, then without each."""
        losses = self.without_heads(of_class(self.digits, QuestionClass.BA))
        return np.asarray(losses.mean(axis=(1, 2)))


def of_class(digits: int, kind: QuestionClass) -> Questions:
    """Questions of one class, drawn uniformly."""
    generator, found, count = np.random.default_rng((SEED, digits, kind)), [], 0
    while count < QUESTIONS:
        drawn = uniform(generator, 20 * QUESTIONS, digits)
        found.append(drawn[np.flatnonzero(Columns.of(drawn).question_class == kind)])
        count += len(found[-1])
    return Questions.joined(found)[:QUESTIONS]


def uniform_states(generator: np.random.Generator, count: int, digits: int) -> Array:
    """The states of the columns of uniform questions."""
    chances = [ADD.pairs_per_state[state] / PAIRS for state in State]
    return np.asarray(generator.choice(len(State), (count, digits), p=chances))


def untrained(draw: Draw) -> Draw:
    """The draw with the weights that its training began with."""
    training = draw.run.config.training
    assert training is not None
    generator = torch.Generator().manual_seed(training.seed)
    return replace(draw, model=initialise(Transformer(draw.model.config), generator))
