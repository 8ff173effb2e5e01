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
    layout = model.config.layout
    parts = []
    for start in range(0, len(questions), CHUNK):
        tokens = torch.from_numpy(layout.encode(questions[start : start + CHUNK]))
        parts.append(_predict_chunk(model, tokens, free_running))
        on_progress(len(tokens))
    if not parts:
        return Answers(
            *(np.empty((0, layout.answer_length), kind) for kind in (int, int, "f", "f"))
        )
    return Answers(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def log_probabilities(
    model: Transformer, tokens: Int[Tensor, "batch position"]
) -> Float[Tensor, "batch answer token"]:
    """Log-probabilities of every answer token, in float64 as the paper computes its loss."""
    return answer_logits(model, tokens).double().log_softmax(-1)


@torch.inference_mode()
def _predict_chunk(
    model: Transformer, tokens: Int[Tensor, "batch position"], free_running: bool
) -> tuple[Array, Array, Array, Array]:
    first = model.config.layout.first_row + 1
    truth = tokens[:, first:].clone()
    chances = log_probabilities(model, tokens)
    if free_running:
        _run_free(model, tokens, chances)
    best, predicted = chances.max(-1)
    loss = -chances.gather(-1, truth[..., None])[..., 0]
    return truth.numpy(), predicted.numpy(), best.exp().numpy(), loss.numpy()


def _run_free(
    model: Transformer,
    tokens: Int[Tensor, "batch position"],
    chances: Float[Tensor, "batch answer token"],
) -> None:
    """Replace, digit by digit, what was read by what was written; look again where they differ."""
    first = model.config.layout.first_row + 1
    for k in range(model.config.layout.answer_length - 1):
        written = chances[:, k].argmax(-1)
        changed = (written != tokens[:, first + k]).nonzero()[:, 0]
        if len(changed):
            tokens[changed, first + k] = written[changed]
            again = log_probabilities(model, tokens[changed])
            chances[changed, k + 1 :] = again[:, k + 1 :]
