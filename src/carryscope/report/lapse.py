"""How a model looked on its way: mean attention, accuracy and answers at the steps that were kept.

In: the directory of a run that was trained with `--keep-checkpoints`. Out: a `Moment` for each
step, small enough for a page.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import torch

from carryscope.dissection.samples import Samples
from carryscope.model.config import ModelConfig
from carryscope.model.files import with_weights
from carryscope.model.prediction import answer
from carryscope.model.transformer import Transformer
from carryscope.task.questions import Questions
from carryscope.training.checkpoint import kept_weights

QUESTIONS = 256
"""Questions that the means are taken over."""

LEVELS = 255
"""Attention is rounded to so many levels: a byte each."""


class Moment(msgspec.Struct, frozen=True):
    """A model at one step of its training."""

    step: int
    right: list[float]
    """The share of questions with each answer token right, teacher-forced."""
    answers: list[str]
    """What it answers to each of the sums."""
    attention: str
    """Mean attention (layer, head, row, position), a byte each, in base64."""


def moments(directory: Path, config: ModelConfig, sums: Sequence[str]) -> list[Moment]:
    """The moments of a training, for these sums; none if no weights were kept."""
    varied = Samples.of(config.layout, 0).varied
    asked = varied[np.linspace(0, len(varied) - 1, QUESTIONS).astype(int)]
    given = Questions.joined([config.layout.parse(text) for text in sums])
    return [
        _moment(step, with_weights(config, weights, directory), asked, given)
        for step, weights in kept_weights(directory)
    ]


def _moment(step: int, model: Transformer, asked: Questions, given: Questions) -> Moment:
    layout, rows = model.config.layout, model.config.layout.answer_rows.stop
    sites = [f"blocks.{layer}.attn.hook_pattern" for layer in range(model.config.layers)]
    with torch.inference_mode():
        _, cache = model.run_with_cache(torch.from_numpy(layout.encode(asked)), sites)
        means = torch.stack([cache[site].mean(0)[:, :rows, :rows] for site in sites])
        said = answer(model, given, free_running=True).predicted
        right = answer(model, asked, free_running=False).right.mean(axis=0)
    levels = (means * LEVELS).round().byte().numpy().tobytes()
    return Moment(
        step,
        [round(float(share), 4) for share in right],
        [layout.text(tokens) for tokens in said],
        base64.b64encode(levels).decode("ascii"),
    )
