"""What a reproduction consists of, what of it is there, and how long the rest will take.

In: names of models, and the directory of their runs. Out: a `Planned` for each. Minutes
of training come from a few steps made on the spot; those of other stages from the number of digits.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from carryscope.dissection.findings import DISSECTION_FILE
from carryscope.errors import CallError
from carryscope.model.process import keep_freed_memory, use_threads
from carryscope.report.page.page import REPORT_FILE
from carryscope.reproduction.exam import EXAM_FILE
from carryscope.reproduction.mlp.study import STUDY_FILE
from carryscope.reproduction.mlp.variants import VARIANTS
from carryscope.training.config import RunConfig
from carryscope.training.presets import run_config
from carryscope.training.summary import FINDING_FILE
from carryscope.training.trainer import Trainer
from carryscope.verification.faithfulness import FAITHFULNESS_FILE
from carryscope.verification.risk import RISK_FILE

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

SWEEPS = ("seeds", "paper-5-seeds")
"""Where sweeps over seeds stand among the runs, of our recipe and of the paper's: those that were
made are judged with them."""

STAGES = {
    "train": FINDING_FILE,
    "dissect": DISSECTION_FILE,
    "risk": RISK_FILE,
    "faithful": FAITHFULNESS_FILE,
    "exam": EXAM_FILE,
    "report": Path(REPORT_FILE),
}
"""What each model goes through, and the file by which one sees that it has."""

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
    """Stages that are not done yet."""
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
    keep_freed_memory()
    use_threads(threads)
    left = {name: stages_left(name, runs) for name in names}
    return [
        Planned(name, stages, _seconds(name, left, quick=quick) / 60)
        for name, stages in left.items()
    ]


def stages_left(name: str, runs: Path) -> tuple[str, ...]:
    """What is not done yet of a model; of the study of the MLP, the variants to be trained."""
    if name != MLP_STUDY:
        return tuple(stage for stage, file in STAGES.items() if not (runs / name / file).exists())
    done = {v.name: (runs / MLP_STUDY / v.name / FINDING_FILE).exists() for v in VARIANTS}
    left = tuple(variant for variant, is_done in done.items() if not is_done)
    return left or (() if (runs / MLP_STUDY / STUDY_FILE).exists() else ("exam",))


def handed_on(left: Mapping[str, Sequence[str]]) -> bool:
    """Whether the studied model is to begin with the steps of another, given what is left."""
    return all("train" in left.get(name, ()) for name in (BEGINNING, STUDIED))


def _seconds(name: str, left: Mapping[str, Sequence[str]], *, quick: bool) -> float:
    """How long what is left of a model, or of the study, will take."""
    if name == MLP_STUDY:
        trainings = [variant for variant in left[name] if variant != "exam"]
        steps = recipe(MLP_STUDY_STEPS, quick=quick)
        return len(trainings) * _training_seconds(steps) if trainings else 0.0
    config, seconds = recipe(name, quick=quick), 0.0
    if "train" in left[name]:
        seconds += _training_seconds(config)
    if name == STUDIED and handed_on(left):
        seconds *= 1 - _steps(BEGINNING) / _steps(STUDIED)
    studied = len(set(left[name]) - {"train"}) / (len(STAGES) - 1)
    digits = config.model.digits
    return seconds + studied * (PER_DIGIT * digits + PER_DIGIT_SQUARED * digits**2)


def _steps(name: str) -> int:
    training = recipe(name, quick=False).training
    assert training is not None
    return training.steps


def _training_seconds(config: RunConfig) -> float:
    """How long a training takes from the start, by a few of its steps."""
    trainer = Trainer(config)
    for _ in range(WARMING_UP):
        trainer.advance()
    began = time.perf_counter()
    for _ in range(TIMED):
        trainer.advance()
    return trainer.recipe.steps * (time.perf_counter() - began) / TIMED
