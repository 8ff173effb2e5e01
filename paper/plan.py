"""What of a reproduction is there already, and how long the rest will take.

In: names of models, and the directory of their runs. Out: a `Planned` for each. Minutes of
training come from a few steps made on the spot; those of other stages from the number of digits.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from carryscope.core.errors import CallError
from carryscope.core.storage import read_json
from carryscope.model.files import CONFIG_FILE, check_version
from carryscope.model.process import use_machine
from carryscope.report.page import REPORT_FILE
from carryscope.run import Run
from carryscope.stages import DISSECTION, FAITHFULNESS, RISK, TRAINING
from carryscope.training.config import RunConfig, differences
from carryscope.training.loop import is_finished, steps_made
from carryscope.training.trainer import Trainer
from paper.exam import EXAM
from paper.mlp.finding import MlpStudy
from paper.mlp.study import STUDY_FILE
from paper.mlp.variants import VARIANTS
from paper.models import MLP_STUDY, MLP_STUDY_STEPS, MODELS, STUDIED, recipe

STAGES = (TRAINING, DISSECTION, RISK, FAITHFULNESS, EXAM)
"""What each model goes through before its report."""

RECORD = "record"
"""What the study of the MLP ends with."""

WARMING_UP, TIMED = 3, 7
"""Steps made, and steps timed, to estimate how long a training will take."""

PER_DIGIT, PER_DIGIT_SQUARED = 17.0, 0.32
"""Seconds that all stages but the training take together, by the digits of the questions. Measured
with one thread: 92 s of processor time at 5 digits, 201 s at 10."""


@dataclass(frozen=True)
class Planned:
    """One model, or the study of the MLP: what is left to do."""

    name: str
    left: tuple[str, ...]
    """Stages that are not done yet; of the study, its trainings and its record."""
    minutes: float


def plan(
    names: Sequence[str], runs: Path, *, quick: bool, threads: int | None = None
) -> list[Planned]:
    """What is left of a reproduction, with the minutes that it will take."""
    check_recipes(runs, quick=quick)
    use_machine(threads)
    left = {name: left_of(name, runs) for name in names}
    return [
        Planned(name, todo, _seconds(name, todo, runs, quick=quick) / 60)
        for name, todo in left.items()
    ]


def check_recipes(runs: Path, *, quick: bool) -> None:
    """Refuse a run that was started by another recipe.

    All models are checked, because results are written of all that are there.
    """
    for name in MODELS:
        run = runs / name
        if (run / CONFIG_FILE).exists():
            check_version(run)
            found = read_json(run / CONFIG_FILE, RunConfig)
            different = differences(recipe(name, quick=quick), found)
            if different:
                raise CallError(
                    f"The run at {run} was started differently: {'; '.join(different)}. "
                    f"Choose another --runs, or delete {run}."
                )


def left_of(name: str, runs: Path) -> tuple[str, ...]:
    """What is not done yet of a model, or of the study of the MLP."""
    where = runs / name
    if name == MLP_STUDY:
        files = {v.name: where / v.name / TRAINING.file for v in VARIANTS}
        files[RECORD] = where / STUDY_FILE
    else:
        files = {stage.name: where / stage.file for stage in STAGES}
        files["report"] = where / REPORT_FILE
    left = tuple(part for part, file in files.items() if not file.exists())
    stale = name == MLP_STUDY and not left and not _is_of_its_base(where / STUDY_FILE, runs)
    return (RECORD,) if stale else left


def _is_of_its_base(record: Path, runs: Path) -> bool:
    """Whether the study is about the weights that the studied model has now."""
    known = read_json(record, MlpStudy).subjects[0].weights_sha256
    return is_finished(runs / STUDIED) and known == Run(runs / STUDIED).weights_sha256


def _seconds(name: str, left: Sequence[str], runs: Path, *, quick: bool) -> float:
    """How long the rest of a model, or of the study, will take."""
    if name == MLP_STUDY:
        trainings = [runs / name / v.name for v in VARIANTS if v.name in left]
        return _training_seconds(recipe(MLP_STUDY_STEPS, quick=quick), trainings)
    config = recipe(name, quick=quick)
    trainings = [runs / name] if TRAINING.name in left else []
    share = len(set(left) - {TRAINING.name}) / len(STAGES)
    digits = config.model.digits
    studying = share * (PER_DIGIT * digits + PER_DIGIT_SQUARED * digits**2)
    return studying + _training_seconds(config, trainings)


def _training_seconds(config: RunConfig, runs: Sequence[Path]) -> float:
    """How long it takes to finish trainings by one recipe, each from its checkpoint."""
    assert config.training is not None
    left = sum(config.training.steps - steps_made(run) for run in runs)
    return left * _step_seconds(config) if left else 0.0


def _step_seconds(config: RunConfig) -> float:
    """How long a training step takes, measured on a few of the first."""
    trainer = Trainer(config)
    for _ in range(WARMING_UP):
        trainer.advance()
    began = time.perf_counter()
    for _ in range(TIMED):
        trainer.advance()
    return (time.perf_counter() - began) / TIMED


def minutes_together(planned: Sequence[Planned], workers: int) -> float:
    """How long a plan takes: models first, the longest first, then the trainings of the study."""
    busy = [0.0] * workers
    for one in in_order(planned):
        busy[busy.index(min(busy))] += one.minutes
    study = [one.minutes for one in planned if one.name == MLP_STUDY]
    return max(busy) + sum(study) / min(workers, len(VARIANTS))


def in_order(planned: Sequence[Planned]) -> list[Planned]:
    """The models that are not done, the longest first, so that no worker is idle at the end."""
    models = [one for one in planned if one.left and one.name != MLP_STUDY]
    return sorted(models, key=lambda one: one.minutes, reverse=True)
