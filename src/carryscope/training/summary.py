"""The summary of a finished training: its losses and its answers, with intervals, and a card.

In: a trained model and its metrics. Out: a `TrainingSummary`, and the model's card in Markdown.
Every number says whether it is teacher-forced or free-running.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import numpy as np
import torch
from jaxtyping import Float

from carryscope.core.evidence import Finding, Mean, Share
from carryscope.core.words import loss, with_interval
from carryscope.model.prediction import answer, predict
from carryscope.model.transformer import Transformer
from carryscope.task.columns import Columns, QuestionClass
from carryscope.task.curated import curated_questions
from carryscope.task.operation import Array
from carryscope.task.sampling import uniform
from carryscope.training.config import RunConfig
from carryscope.training.data import HELD_OUT_BATCH, held_out_questions
from carryscope.training.losses import StepRecord
from carryscope.training.presets import changes
from carryscope.version import __version__

FINDING_FILE = Path("findings") / "training.json"
CARD_FILE = "README.md"

LAST_STEPS = 100
"""Single steps swing by a factor of fifty; the mean of this many is what we report."""

UNIFORM_QUESTIONS = 10_000
"""Fresh uniform questions for the share of right answers, drawn from `_UNIFORM_SEED`."""

_UNIFORM_SEED = 20240507


class TrainingSummary(Finding, frozen=True, kw_only=True):
    """The finding of the training stage."""

    package_version: str
    seed: int
    steps: int
    questions_seen: int
    seconds: float
    """Time spent in training steps, on one machine."""
    threads: int = 0
    """Processor threads at the end: with another number sums are rounded differently."""
    last_steps_loss: float
    """Mean training loss of the last 100 steps, teacher-forced."""
    last_steps_digit_loss: list[float]
    held_out_loss: Mean
    """Mean loss over the fixed held-out questions, enriched by the paper's rule; teacher-forced."""
    held_out_digit_loss: list[float]
    answer_names: list[str]
    uniform_correct: Share
    """Whole answers right, free-running, on fresh uniform questions."""
    curated_correct: dict[str, Share]
    """Whole answers right, free-running, on the curated questions by question class."""

    def __post_init__(self) -> None:
        losses = (self.last_steps_digit_loss, self.held_out_digit_loss)
        if any(len(each) != len(self.answer_names) for each in losses):
            raise ValueError("there must be a loss for each answer token")


def summarise(
    model: Transformer, config: RunConfig, metrics: list[StepRecord], seconds: float
) -> TrainingSummary:
    """Measure a trained model."""
    assert config.training is not None
    layout, last = config.model.layout, metrics[-LAST_STEPS:]
    held_out = predict(
        model, held_out_questions(layout.digits, layout.operation), free_running=False
    )
    generator = np.random.default_rng(_UNIFORM_SEED)
    drawn = uniform(generator, UNIFORM_QUESTIONS, layout.digits, layout.operation)
    fresh = answer(model, drawn, free_running=True)
    return TrainingSummary(
        package_version=__version__,
        seed=config.training.seed,
        steps=len(metrics),
        questions_seen=config.training.questions_in(len(metrics)),
        seconds=seconds,
        threads=torch.get_num_threads(),
        last_steps_loss=fmean(record.loss for record in last),
        last_steps_digit_loss=np.mean([r.digit_loss for r in last], axis=0).tolist(),
        held_out_loss=held_out_mean(held_out.loss),
        held_out_digit_loss=held_out.loss.mean(axis=0).tolist(),
        answer_names=config.model.layout.answer_names,
        uniform_correct=Share.of_hits(fresh.correct),
        curated_correct=curated_exam(model),
    )


def held_out_mean(losses: Float[Array, "question answer"]) -> Mean:
    """The mean loss on the held-out questions, with an interval over their batches.

    A batch is enriched as a whole, or not at all.
    """
    return Mean.of_batches(losses.mean(axis=1).tolist(), HELD_OUT_BATCH)


def curated_exam(model: Transformer) -> dict[str, Share]:
    """The share of curated questions answered right, free-running, by question class."""
    questions = curated_questions(model.config.digits, model.config.layout.operation)
    correct = answer(model, questions, free_running=True).correct
    classes = Columns.of(questions).question_class
    return {
        kind.label: Share.of_hits(correct[classes == kind])
        for kind in QuestionClass
        if (classes == kind).any()
    }


def card(summary: TrainingSummary, config: RunConfig) -> str:
    """The model card, in Markdown."""
    model, fresh, held_out = config.model, summary.uniform_correct, summary.held_out_loss
    curated = summary.curated_correct.items()
    exam = ", ".join(f"{kind} {share.count} of {share.of}" for kind, share in curated)
    verb = model.layout.operation.words.verb
    return f"""# A transformer that {verb} two {model.digits}-digit numbers

{model.layers} layer{"s" * (model.layers > 1)}, {model.heads} head{"s" * (model.heads > 1)}, \
d_model {model.d_model}, d_head {model.d_head}, d_mlp {model.d_mlp}, {model.format} format. \
Trained by carryscope {summary.package_version} with {_recipe(config)}, seed {summary.seed}: \
{summary.steps:,} steps, {summary.questions_seen:,} questions. `config.json` has all settings, \
`metrics.jsonl` all steps, `findings/training.json` all numbers.

- Held-out loss {loss(held_out)}, teacher-forced, on {held_out.of:,} questions enriched by the \
paper's rule
- Mean training loss of the last {LAST_STEPS} steps {summary.last_steps_loss:.4f}, teacher-forced
- Whole answers right, free-running, on {fresh.of:,} fresh uniform questions: {with_interval(fresh)}
- Whole answers right, free-running, on the curated questions, which are hard cases: {exam}

Intervals are 95 %.
"""


def _recipe(config: RunConfig) -> str:
    """The recipe in words: a preset, and what was changed in it."""
    if config.preset is None:
        return "a recipe of its own"
    start = f", from the weights of `{config.source}`" if config.source else ""
    start += f" (new: {', '.join(config.new_parts)})" if config.new_parts else ""
    listed = f" ({'; '.join(changed)})" if (changed := changes(config)) else ""
    return f"the recipe `{config.preset}`{listed}{start}"
