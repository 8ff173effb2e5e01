"""What is reproduced: the paper's models, the study of the MLP, and the sweeps beside them."""

from __future__ import annotations

from carryscope.core.errors import CallError
from carryscope.training.config import RunConfig
from carryscope.training.presets import run_config

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

MLP_STUDY = "mlp-study"
"""The study of that model's MLP."""

MLP_STUDY_STEPS = "paper-5"
"""The model whose number of steps the trainings of the study have."""

MLP_RECORD = f"{MLP_STUDY}.json"

SWEEPS = {
    "seeds": "fast-5",
    "paper-5-seeds": "paper-5",
    "paper-5-long-seeds": "paper-5-long",
}
"""Sweeps over seeds, by directory, and the recipe of each. Those that were made are judged."""

QUICK = 10
"""A quick reproduction makes one training step in so many."""


def chosen(only: str | None) -> list[str]:
    """The names in a list with commas, in the order of the plan; all of them by default.

    The study of the MLP brings the model that it studies.
    """
    known = [*MODELS, MLP_STUDY]
    wanted = known if only is None else [name.strip() for name in only.split(",")]
    for name in wanted:
        if name not in known:
            raise CallError(f"only must name some of {', '.join(known)}. Got '{name}'.")
    needed = {STUDIED} if MLP_STUDY in wanted else set()
    return [name for name in known if name in {*wanted, *needed}]


def recipe(name: str, *, quick: bool) -> RunConfig:
    """How a model is trained."""
    config = run_config(name, {})
    assert config.training is not None
    steps = -(-config.training.steps // QUICK)
    return run_config(name, {"steps": steps}) if quick else config


def steps_of(name: str, *, quick: bool) -> int:
    """How many training steps a model makes."""
    training = recipe(name, quick=quick).training
    assert training is not None
    return training.steps
