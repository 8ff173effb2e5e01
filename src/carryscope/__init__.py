"""carryscope: train small transformers to add, see how they do it, prove where they fail.

import carryscope as cs

run = cs.load("fast-5")            # a model that comes with the package
run = cs.load("runs/study")        # or a run of your own
run.ask("445+555", without="H1")
run.risk()

Names are loaded when they are first used, so that importing carryscope does not load torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from carryscope.core.machine import share_cores
from carryscope.version import __version__

share_cores()  # before torch is loaded: its threads read this when they start

if TYPE_CHECKING:
    from carryscope.api import import_model, load, study, train
    from carryscope.core.errors import CallError, WorkError
    from carryscope.core.progress import Progress, Stopped
    from carryscope.dissection.asking import Answer
    from carryscope.dissection.interventions import Ablate, Cut, Node, Patch, Route
    from carryscope.model.config import ModelConfig
    from carryscope.model.transformer import Transformer
    from carryscope.repairing import repair
    from carryscope.run import Run
    from carryscope.stages import Stage
    from carryscope.sweeps.running import sweep
    from carryscope.task.columns import Columns
    from carryscope.task.operation import ADD, MIXED, SUBTRACT, Operation, State
    from carryscope.task.questions import Questions, parse_question
    from carryscope.training.config import RunConfig, TrainingConfig
    from carryscope.training.presets import PRESETS

__all__ = [
    "ADD",
    "MIXED",
    "PRESETS",
    "SUBTRACT",
    "Ablate",
    "Answer",
    "CallError",
    "Columns",
    "Cut",
    "ModelConfig",
    "Node",
    "Operation",
    "Patch",
    "Progress",
    "Questions",
    "Route",
    "Run",
    "RunConfig",
    "Stage",
    "State",
    "Stopped",
    "TrainingConfig",
    "Transformer",
    "WorkError",
    "__version__",
    "import_model",
    "load",
    "parse_question",
    "repair",
    "study",
    "sweep",
    "train",
]

_NAMES_IN = {
    "api": ("check", "import_model", "load", "study", "train"),
    "core.errors": ("CallError", "WorkError"),
    "core.progress": ("Progress", "Stopped"),
    "dissection.asking": ("Answer",),
    "dissection.interventions": ("Ablate", "Cut", "Node", "Patch", "Route"),
    "model.config": ("ModelConfig",),
    "model.transformer": ("Transformer",),
    "repairing": ("repair",),
    "run": ("Run",),
    "stages": ("Stage",),
    "sweeps.running": ("sweep",),
    "task.columns": ("Columns",),
    "task.operation": ("ADD", "MIXED", "SUBTRACT", "Operation", "State"),
    "task.questions": ("Questions", "parse_question"),
    "training.config": ("RunConfig", "TrainingConfig"),
    "training.presets": ("PRESETS",),
}
"""The modules that define these names."""


def __getattr__(name: str) -> Any:
    """A name of the public API, loaded when it is first used."""
    for module, names in _NAMES_IN.items():
        if name in names:
            return getattr(import_module(f"carryscope.{module}"), name)
    raise AttributeError(f"carryscope has no '{name}'. It has: {', '.join(__all__)}.")


def __dir__() -> list[str]:
    return sorted(__all__)
