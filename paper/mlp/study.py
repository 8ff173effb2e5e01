"""The study of the MLP that the paper asks for in its limitations: remove it, or train it again.

In: a trained run with an MLP, the base, and the runs of its variants (see `variants.py`). Out: an
`MlpStudy`: what each model can and cannot do, on the same questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from carryscope.core.evidence import Share
from carryscope.core.progress import Progress
from carryscope.model.prediction import answer, predict
from carryscope.run import Run
from carryscope.task.sampling import uniform
from carryscope.training.config import part_of
from carryscope.training.data import held_out_questions
from carryscope.training.summary import held_out_mean
from carryscope.version import __version__
from paper.exam import EXAM_SEED, exam, sit
from paper.mlp.finding import BASE, CurvePoint, Milestone, MlpStudy, Subject, retold
from paper.mlp.variants import Variant, check_base, train_variant

STUDY_FILE = "mlp_study.json"

CURVE_POINTS = 40
"""Points of a variant's curve, each a mean over the steps since the one before. The points of the
base's curve are as far apart."""

QUESTIONS = 1000
"""Exam questions for each digit and look-ahead: an interval reaches at most 3.1 %."""

UNIFORM_QUESTIONS = 10_000
"""Fresh uniform questions for whole answers."""


def base_subject(base: Run, steps: int) -> Subject:
    """The base, measured. `steps` is how long its variants are trained."""
    check_base(base)
    return _measured(Variant(BASE, "The base"), base, [], steps)


def variant_subject(
    variant: Variant,
    base: Path,
    loss: float,
    steps: int,
    directory: Path,
    threads: int,
    progress: Progress,
) -> Subject:
    """A variant, trained from wherever it stands, then measured. `loss` is the base's, held out."""
    milestones = train_variant(
        variant, Run(base), directory, loss=loss, steps=steps, threads=threads, progress=progress
    )
    return _measured(variant, Run(directory), milestones, steps)


def mlp_study(base: Run, subjects: Sequence[Subject]) -> MlpStudy:
    """The base and its variants together, and what they say."""
    config = base.config
    study = MlpStudy(
        package_version=__version__,
        base=base.name,
        preset=config.preset,
        model=config.model,
        questions=len(exam(config.model.digits, QUESTIONS).questions),
        exam_seed=EXAM_SEED,
        subjects=list(subjects),
        statements=[],
        statement="",
    )
    return retold(study)


def _measured(variant: Variant, run: Run, milestones: list[Milestone], steps: int) -> Subject:
    """A model in the exam, on the held-out questions and on uniform ones."""
    model, recipe, metrics = run.model(), run.config.training, run.metrics()
    assert recipe is not None
    digits, names = model.config.digits, model.config.layout.answer_names
    held_out = predict(model, held_out_questions(digits), free_running=False).loss
    drawn = uniform(np.random.default_rng((EXAM_SEED, 0)), UNIFORM_QUESTIONS, digits)
    learning = [p for n, p in model.named_parameters() if part_of(n) not in recipe.freeze]
    return Subject(
        name=variant.name,
        about=variant.about,
        control=variant.control,
        weights_sha256=run.weights_sha256,
        seed=recipe.seed,
        steps=len(metrics),
        trained=sum(parameter.numel() for parameter in learning),
        held_out_loss=held_out_mean(held_out),
        held_out_digit_loss=dict(zip(names, held_out.mean(axis=0).tolist(), strict=True)),
        uniform_right=Share.of_hits(answer(model, drawn, free_running=False).correct),
        right=sit(model, each=QUESTIONS).right,
        milestones=milestones,
        curve=_curve([record.loss for record in metrics], max(1, steps // CURVE_POINTS)),
    )


def _curve(losses: list[float], apart: int) -> list[CurvePoint]:
    """Means over so many steps each, the last over the rest; no points without a training."""
    ends = [min(begin + apart, len(losses)) for begin in range(0, len(losses), apart)]
    return [
        CurvePoint(step=end, loss=float(np.mean(losses[begin:end])))
        for begin, end in zip(range(0, len(losses), apart), ends, strict=True)
    ]
