"""What a model answers, in batches, teacher-forced or free-running.

In: a model and questions. Out: `Answers`, or with probabilities and losses `Predictions`, which
take more than twice as long.

*Teacher-forced*: every answer row reads the true digits before it; this is what the loss
sees. *Free-running*: it reads what the model itself wrote; this is what a user gets. The two
agree up to the first wrong digit, so only questions with a wrong digit are run again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from carryscope.model.answer_path import answer_logits
from carryscope.model.choice import answer_tokens
from carryscope.model.transformer import Transformer
from carryscope.task.operation import Array
from carryscope.task.questions import Questions

CHUNK = 512
"""Questions per forward pass: their activations stay near the processor's cache."""


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers to a batch of questions, token by token, highest digit first."""

    truth: Int[Array, "batch answer"]
    predicted: Int[Array, "batch answer"]

    @property
    def right(self) -> Bool[Array, "batch answer"]:
        """Which tokens are right."""
        return np.equal(self.truth, self.predicted)

    @property
    def correct(self) -> Bool[Array, " batch"]:
        """Which questions are answered without a mistake."""
        return np.asarray(self.right.all(axis=1))


@dataclass(frozen=True, eq=False)
class Predictions(Answers):
    """Answers, with the probabilities that the model gave them."""

    probability: Float[Array, "batch answer"]
    """The probability the model gave to the token it chose."""
    loss: Float[Array, "batch answer"]
    """Negative log-probability of the true token, given the tokens the model had read."""


Said = TypeVar("Said", bound=Answers)
Read = Callable[[Transformer, Array, Array], Said]
"""How a chunk of tokens is answered; the true answers are passed along."""


def answer(model: Transformer, questions: Questions, *, free_running: bool) -> Answers:
    """The model's answers alone."""
    return _said(_choose, model, questions, free_running)


def predict(model: Transformer, questions: Questions, *, free_running: bool) -> Predictions:
    """The model's answers, with their probabilities and losses."""
    return _said(_weigh, model, questions, free_running)


def log_probabilities(
    model: Transformer, tokens: Int[Tensor, "batch position"]
) -> Float[Tensor, "batch answer token"]:
    """Log-probabilities of every answer token, in float64 as the paper computes its loss."""
    return answer_logits(model, tokens).double().log_softmax(-1)


def _choose(
    model: Transformer, tokens: Int[Array, "batch position"], truth: Int[Array, "batch answer"]
) -> Answers:
    chosen = answer_tokens(model, torch.from_numpy(tokens)).numpy()
    return Answers(truth=truth, predicted=chosen.astype(truth.dtype))


def _weigh(
    model: Transformer, tokens: Int[Array, "batch position"], truth: Int[Array, "batch answer"]
) -> Predictions:
    with torch.inference_mode():
        chances = log_probabilities(model, torch.from_numpy(tokens)).numpy()
    return Predictions(
        truth=truth,
        predicted=chances.argmax(-1).astype(truth.dtype),
        probability=np.exp(chances.max(-1)),
        loss=-np.take_along_axis(chances, truth[..., None], -1)[..., 0],
    )


def _said(read: Read[Said], model: Transformer, questions: Questions, free_running: bool) -> Said:
    tokens = model.config.layout.encode(questions)
    truth = model.config.layout.answer_part(tokens)
    answers = _in_chunks(read, model, tokens, truth)
    if free_running:
        _run_free(read, model, tokens.copy(), answers)
    return answers


def _in_chunks(
    read: Read[Said],
    model: Transformer,
    tokens: Int[Array, "batch position"],
    truth: Int[Array, "batch answer"],
) -> Said:
    """What the model says when it reads these tokens; no tokens are one empty chunk."""
    chunks = [slice(start, start + CHUNK) for start in range(0, max(len(tokens), 1), CHUNK)]
    parts = [read(model, tokens[chunk], truth[chunk]) for chunk in chunks]
    names = [field.name for field in fields(parts[0])]
    return replace(parts[0], **{n: np.concatenate([getattr(p, n) for p in parts]) for n in names})


def _run_free(
    read: Read[Said], model: Transformer, tokens: Int[Array, "batch position"], answers: Said
) -> None:
    """Replace, digit by digit, what was read by what was written; run again where they differ."""
    first = model.config.layout.first_row + 1
    names = [field.name for field in fields(answers) if field.name != "truth"]
    for k in range(model.config.layout.answer_length - 1):
        changed = np.flatnonzero(answers.predicted[:, k] != tokens[:, first + k])
        if len(changed):
            tokens[changed, first + k] = answers.predicted[changed, k]
            again = _in_chunks(read, model, tokens[changed], answers.truth[changed])
            for name in names:
                getattr(answers, name)[changed, k + 1 :] = getattr(again, name)[:, k + 1 :]
