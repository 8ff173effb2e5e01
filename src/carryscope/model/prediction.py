"""What a model answers, in batches, teacher-forced or free-running.

In: a model and questions. Out: `Answers`.

*Teacher-forced*: every answer row reads the true digits before it; this is what the loss
sees. *Free-running*: it reads what the model itself wrote; this is what a user gets. The
two agree up to the first wrong digit, so free running costs a second look only at
questions in which some digit is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from carryscope.model.answer_path import answer_logits
from carryscope.model.transformer import Transformer
from carryscope.task.questions import Array, Questions

CHUNK = 512
"""Questions per forward pass: their activations stay near the processor's cache."""


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers to a batch of questions, token by token, highest digit first."""

    truth: Int[Array, "batch answer"]
    predicted: Int[Array, "batch answer"]
    probability: Float[Array, "batch answer"]
    """The probability the model gave to the token it chose."""
    loss: Float[Array, "batch answer"]
    """Negative log-probability of the true token, given the tokens the model had read."""

    @property
    def right(self) -> Bool[Array, "batch answer"]:
        """Which tokens are right."""
        return np.equal(self.truth, self.predicted)

    @property
    def correct(self) -> Bool[Array, " batch"]:
        """Which questions are answered without a mistake."""
        return np.asarray(self.right.all(axis=1))


def predict(
    model: Transformer,
    questions: Questions,
    *,
    free_running: bool,
    on_progress: Callable[[int], object] = lambda _: None,
) -> Answers:
    """The model's answers; `on_progress` hears how many questions each chunk answered."""
    tokens = model.config.layout.encode(questions)
    answers = _read(model, tokens, model.config.layout.answer_part(tokens), on_progress)
    if free_running:
        _run_free(model, tokens.copy(), answers)
    return answers


def predict_both(model: Transformer, questions: Questions) -> tuple[Answers, Answers]:
    """The answers teacher-forced, and free-running, which differ only where a digit is wrong."""
    forced = predict(model, questions, free_running=False)
    free = Answers(
        forced.truth, forced.predicted.copy(), forced.probability.copy(), forced.loss.copy()
    )
    _run_free(model, model.config.layout.encode(questions), free)
    return forced, free


def log_probabilities(
    model: Transformer, tokens: Int[Tensor, "batch position"]
) -> Float[Tensor, "batch answer token"]:
    """Log-probabilities of every answer token, in float64 as the paper computes its loss."""
    return answer_logits(model, tokens).double().log_softmax(-1)


def _read(
    model: Transformer,
    tokens: Int[Array, "batch position"],
    truth: Int[Array, "batch answer"],
    on_progress: Callable[[int], object] = lambda _: None,
) -> Answers:
    """What the model says at each answer row when it reads these tokens, chunk by chunk."""
    answers = Answers(
        truth=truth,
        predicted=np.empty_like(truth),
        probability=np.empty(truth.shape),
        loss=np.empty(truth.shape),
    )
    for start in range(0, len(tokens), CHUNK):
        part = slice(start, start + CHUNK)
        with torch.inference_mode():
            chances = log_probabilities(model, torch.from_numpy(tokens[part])).numpy()
        answers.predicted[part] = chances.argmax(-1)
        answers.probability[part] = np.exp(chances.max(-1))
        answers.loss[part] = -np.take_along_axis(chances, truth[part, :, None], -1)[..., 0]
        on_progress(len(chances))
    return answers


def _run_free(model: Transformer, tokens: Int[Array, "batch position"], answers: Answers) -> None:
    """Replace, digit by digit, what was read by what was written; look again where they differ."""
    first = model.config.layout.first_row + 1
    for k in range(model.config.layout.answer_length - 1):
        changed = np.flatnonzero(answers.predicted[:, k] != tokens[:, first + k])
        if len(changed):
            tokens[changed, first + k] = answers.predicted[changed, k]
            again = _read(model, tokens[changed], answers.truth[changed])
            answers.predicted[changed, k + 1 :] = again.predicted[:, k + 1 :]
            answers.probability[changed, k + 1 :] = again.probability[:, k + 1 :]
            answers.loss[changed, k + 1 :] = again.loss[:, k + 1 :]
