"""What a reproduction consists of, what of it is there, and how long the rest will take.

In: names of models, and the directory of their runs. Out: a `Planned` for each; runs that were
trained by another recipe are refused. Minutes of training come from a few steps made on the spot;
those of other stages from the number of digits.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from carryscope.core.errors import CallError
from carryscope.core.storage import read_json
from carryscope.dissection.findings import DISSECTION_FILE
from carryscope.model.files import CONFIG_FILE, check_version, load_model, weights_hash
from carryscope.model.process import keep_freed_memory, use_threads
from carryscope.report.page import REPORT_FILE
from carryscope.stages import Run
from carryscope.training.config import RunConfig, differences
from carryscope.training.loop import is_finished, steps_made
from carryscope.training.presets import changed, run_config
from carryscope.training.summary import FINDING_FILE
from carryscope.training.trainer import Trainer
from carryscope.verification.faithfulness import FAITHFULNESS_FILE
from carryscope.verification.risk import RISK_FILE
from paper.exam import EXAM_FILE
from paper.mlp.finding import MlpStudy
from paper.mlp.study import STUDY_FILE
from paper.mlp.variants import VARIANTS, check_variants

MODELS = (
    "paper-5",
    "paper-5-heads-2",
    "paper-5-heads-4",
    "paper-10",
    "paper-15",
    "reuse-5",
    "paper-5-long",
)
"""The models of the paper, each a preset and a run of the same name."""

STUDIED = "paper-5-long"
"""The model whose algorithm the paper is about: "our model was trained on 1.8 million"
questions. Its tables of final losses are of 5,000 steps."""

BEGINNING = "paper-5"
"""The model whose steps are the first of the studied one's: where both are to be trained, they are
made once."""

MLP_STUDY = "mlp-study"
"""The study of that model's MLP; it stands beside the models."""

MLP_RECORD = f"{MLP_STUDY}.json"
"""Its record among results that are kept."""

MLP_STUDY_STEPS = "paper-5"
"""The model whose steps the study's trainings have: as many as the paper's tables speak of."""

SWEEPS = ("seeds", "paper-5-seeds", "paper-5-long-seeds")
"""Where sweeps over seeds stand among the runs, of our recipe and of the paper's, after its 5,000
steps and gone on with: those that were made are judged with them."""

STAGES = {
    "train": FINDING_FILE,
    "dissect": DISSECTION_FILE,
    "risk": RISK_FILE,
    "faithful": FAITHFULNESS_FILE,
    "exam": EXAM_FILE,
    "report": Path(REPORT_FILE),
}
"""What each model goes through, and the file by which one sees that it has."""

ASKING = "exam"
"""What the study of the MLP ends with: its models are asked questions of every kind."""

QUICK = 10
"""A quick reproduction makes one step in so many: to see that all of it works."""

WARMING_UP, TIMED = 3, 7
"""Steps made, and steps timed, to tell how long a training will take."""

PER_DIGIT, PER_DIGIT_SQUARED = 17.0, 0.32
"""Seconds that all stages but the training take together, by the digits of the questions: 92 s and
201 s of processor time were measured at 5 and 10 digits, with one thread."""


@dataclass(frozen=True)
class Planned:
    """One model, or the study of the MLP: what is left to do."""

    name: str
    left: tuple[str, ...]
    """Stages that are not done yet; of the study of the MLP, trainings and the exam."""
    minutes: float


def chosen(only: str | None) -> list[str]:
    """The names in a list with commas, in the order of the plan; all of them without one."""
    known = [*MODELS, MLP_STUDY]
    if only is None:
        return known
    wanted = [name.strip() for name in only.split(",")]
    for name in wanted:
        if name not in known:
            raise CallError(f"only must name some of {', '.join(known)}. Got '{name}'.")
    return [name for name in known if name in wanted]


def recipe(name: str, *, quick: bool) -> RunConfig:
    """How a model is trained."""
    config = run_config(name, {})
    assert config.training is not None
    steps = -(-config.training.steps // QUICK)
    return run_config(name, {"steps": steps}) if quick else config


def plan(
    names: Sequence[str], runs: Path, *, quick: bool, threads: int | None = None
) -> list[Planned]:
    """What is left of a reproduction, with the minutes that it will take."""
    check_recipes(runs, quick=quick)
    if MLP_STUDY in names and is_finished(runs / STUDIED):
        check_variants(Run(runs / STUDIED), runs / MLP_STUDY)
    keep_freed_memory()
    use_threads(threads)
    left = {name: stages_left(name, runs) for name in names}
    if STUDIED in left and MLP_STUDY in left:
        # The training of the base is counted where the base is.
        left[MLP_STUDY] = tuple(part for part in left[MLP_STUDY] if part != STUDIED)
    return [
        Planned(name, stages, _seconds(name, left, runs, quick=quick) / 60)
        for name, stages in left.items()
    ]


def check_recipes(runs: Path, *, quick: bool) -> None:
    """Refuse runs that were begun by another recipe: they would pass for what they are not.

    All are looked at, since results are written of all that are there, asked for or not.
    """
    for name in MODELS:
        _check_run(runs / name, recipe(name, quick=quick))
    for variant in VARIANTS:
        _check_steps(runs / MLP_STUDY / variant.name, _steps(MLP_STUDY_STEPS, quick=quick))


def _check_run(run: Path, wanted: RunConfig) -> None:
    """Refuse a run that was begun by another recipe."""
    if (run / CONFIG_FILE).exists():
        check_version(run)
        _check_same(run, wanted, read_json(run / CONFIG_FILE, RunConfig), delete=run)


def _check_steps(run: Path, steps: int) -> None:
    """Refuse a variant of another length; all else about it follows from its base."""
    if (run / CONFIG_FILE).exists():
        check_version(run)
        found = read_json(run / CONFIG_FILE, RunConfig)
        _check_same(run, changed(found, {"steps": steps}), found, delete=run.parent)


def _check_same(run: Path, wanted: RunConfig, found: RunConfig, *, delete: Path) -> None:
    different = differences(wanted, found)
    if different:
        raise CallError(
            f"The run at {run} was started differently: {'; '.join(different)}. "
            f"Choose another --runs, or delete {delete}."
        )


def stages_left(name: str, runs: Path) -> tuple[str, ...]:
    """What is not done yet of a model, or of the study of the MLP."""
    if name == MLP_STUDY:
        return _study_left(runs)
    return tuple(stage for stage, file in STAGES.items() if not (runs / name / file).exists())


def _study_left(runs: Path) -> tuple[str, ...]:
    """The base, if it is to be trained first, the variants to be trained, and the exam."""
    study = runs / MLP_STUDY
    base = () if is_finished(runs / STUDIED) else (STUDIED,)
    variants = [v.name for v in VARIANTS if not (study / v.name / FINDING_FILE).exists()]
    is_done = not base and not variants and _is_of_its_base(study / STUDY_FILE, runs / STUDIED)
    return () if is_done else (*base, *variants, ASKING)


def _is_of_its_base(record: Path, base: Path) -> bool:
    """Whether there is a record of the study, about the weights that the base has now."""
    if not record.exists():
        return False
    return read_json(record, MlpStudy).subjects[0].weights_sha256 == weights_hash(load_model(base))


def handed_on(left: Mapping[str, Sequence[str]]) -> bool:
    """Whether the studied model is to begin with the steps of another, given what is left."""
    return all("train" in left.get(name, ()) for name in (BEGINNING, STUDIED))


def _seconds(name: str, left: Mapping[str, Sequence[str]], runs: Path, *, quick: bool) -> float:
    """How long what is left of a model, or of the study, will take."""
    if name == MLP_STUDY:
        return _study_seconds(left[name], runs, quick=quick)
    config, seconds = recipe(name, quick=quick), 0.0
    if "train" in left[name]:
        handed = _steps(BEGINNING, quick=quick) if name == STUDIED and handed_on(left) else 0
        seconds += _training_seconds(config, [runs / name], handed)
    studied = len(set(left[name]) - {"train"}) / (len(STAGES) - 1)
    digits = config.model.digits
    return seconds + studied * (PER_DIGIT * digits + PER_DIGIT_SQUARED * digits**2)


def _study_seconds(left: Sequence[str], runs: Path, *, quick: bool) -> float:
    """How long the trainings take that are left of the study of the MLP."""
    base = [runs / STUDIED] if STUDIED in left else []
    variants = [runs / MLP_STUDY / v.name for v in VARIANTS if v.name in left]
    seconds = _training_seconds(recipe(STUDIED, quick=quick), base)
    return seconds + _training_seconds(recipe(MLP_STUDY_STEPS, quick=quick), variants)


def _steps(name: str, *, quick: bool) -> int:
    training = recipe(name, quick=quick).training
    assert training is not None
    return training.steps


def _training_seconds(config: RunConfig, runs: Sequence[Path], handed: int = 0) -> float:
    """How long it takes to bring trainings by one recipe to their ends.

    Each goes on from its checkpoint; without one, from the steps that it is handed.
    """
    assert config.training is not None
    left = sum(config.training.steps - (steps_made(run) or handed) for run in runs)
    return left * _step_seconds(config) if left else 0.0


def _step_seconds(config: RunConfig) -> float:
    """How long a step of a training takes, by a few of the first."""
    trainer = Trainer(config)
    for _ in range(WARMING_UP):
        trainer.advance()
    began = time.perf_counter()
    for _ in range(TIMED):
        trainer.advance()
    return (time.perf_counter() - began) / TIMED
