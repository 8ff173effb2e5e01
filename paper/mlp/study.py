"""The MLP study that the paper asks for in its limitations: remove it, or train it again.

In: a trained run with an MLP, the base. Out: the runs of its variants (see
`variants.py`), and an `MlpStudy`: what each model can and cannot do, asked the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from carryscope.core.evidence import Share
from carryscope.core.storage import write_json
from carryscope.model.files import weights_hash
from carryscope.model.prediction import answer, predict
from carryscope.stages import Run
from carryscope.task.sampling import uniform
from carryscope.training.checkpoint import METRICS_FILE
from carryscope.training.data import held_out_questions
from carryscope.training.losses import StepRecord
from carryscope.training.parts import part_of
from carryscope.training.summary import held_out_mean
from carryscope.version import __version__
from paper.exam import EXAM_SEED, exam, sit
from paper.mlp.finding import (
    BASE,
    CurvePoint,
    Milestone,
    MlpStudy,
    Subject,
    overall,
)
from paper.mlp.variants import (
    VARIANTS,
    Variant,
    check_base,
    check_variants,
    train_variant,
)

STUDY_FILE = "mlp_study.json"

CURVE_POINTS = 40
"""Points of a variant's curve, each a mean over the steps since the one before; the base's curve
has points as far apart."""

QUESTIONS = 1000
"""Asked in the exam for each digit and look-ahead: an interval reaches at most 3.1 %."""

UNIFORM_QUESTIONS = 10_000
"""Fresh uniform questions for whole answers."""


def mlp_study(
    base: Run,
    directory: Path,
    *,
    steps: int | None = None,
    threads: int | None = None,
    on_progress: Callable[[str, StepRecord], object] = lambda *_: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> MlpStudy:
    """Train the variants in a directory, ask all models the same, and leave `mlp_study.json`.

    `steps` replaces the recipe's. A variant that is trained already is not trained again, one
    that was stopped is gone on with. `on_progress` hears every step, with the variant's name.
    """
    check_base(base)
    check_variants(base, directory)
    recipe = base.config.training
    assert recipe is not None
    apart = max(1, (steps or recipe.steps) // CURVE_POINTS)
    subjects = [_measured(Variant(BASE, "The base"), base, [], apart)]
    for variant in VARIANTS:
        milestones = train_variant(
            variant,
            base,
            directory / variant.name,
            loss=subjects[0].held_out_loss.estimate,
            steps=steps,
            threads=threads,
            on_step=partial(on_progress, variant.name),
            should_stop=should_stop,
        )
        subjects.append(_measured(variant, Run(directory / variant.name), milestones, apart))
    config = base.config
    study = MlpStudy(
        package_version=__version__,
        base=base.directory.resolve().name,
        preset=config.preset,
        model=config.model,
        questions=len(exam(config.model.digits, QUESTIONS).questions),
        exam_seed=EXAM_SEED,
        subjects=subjects,
        statements=[subject.statement() for subject in subjects],
        statement=overall({subject.name: subject for subject in subjects}),
    )
    write_json(directory / STUDY_FILE, study)
    return study


def _measured(variant: Variant, run: Run, milestones: list[Milestone], apart: int) -> Subject:
    """A model in the exam, on the held-out questions and on uniform ones."""
    model, recipe = run.model(), run.config.training
    assert recipe is not None
    digits, names = model.config.digits, model.config.layout.answer_names
    metrics = run.metrics() if (run.directory / METRICS_FILE).exists() else []
    held_out = predict(model, held_out_questions(digits), free_running=False).loss
    drawn = uniform(np.random.default_rng((EXAM_SEED, 0)), UNIFORM_QUESTIONS, digits)
    learning = [p for n, p in model.named_parameters() if part_of(n) not in recipe.freeze]
    return Subject(
        name=variant.name,
        about=variant.about,
        control=variant.control,
        weights_sha256=weights_hash(model),
        seed=recipe.seed,
        steps=len(metrics),
        trained=sum(parameter.numel() for parameter in learning),
        held_out_loss=held_out_mean(held_out),
        held_out_digit_loss=dict(zip(names, held_out.mean(axis=0).tolist(), strict=True)),
        uniform_right=Share.of_hits(answer(model, drawn, free_running=False).correct),
        right=sit(model, each=QUESTIONS).right,
        milestones=milestones,
        curve=_curve([record.loss for record in metrics], apart),
    )


def _curve(losses: list[float], apart: int) -> list[CurvePoint]:
    """Means over so many steps each, the last over what is left; no points without a training."""
    parts = [losses[begin : begin + apart] for begin in range(0, len(losses), apart)]
    ends = np.cumsum([len(part) for part in parts])
    return [
        CurvePoint(step=int(end), loss=float(np.mean(part)))
        for part, end in zip(parts, ends, strict=True)
    ]
