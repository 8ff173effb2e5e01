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
    from carryscope.dissection.interventions import Ablate, Cut, Node, Patch
    from carryscope.model.config import ModelConfig
    from carryscope.model.transformer import Transformer
    from carryscope.repairing import repair
    from carryscope.run import Run
    from carryscope.stages import Stage
    from carryscope.sweeps.running import sweep
    from carryscope.task.columns import Columns
    from carryscope.task.operation import ADD, Operation, State
    from carryscope.task.questions import Questions, parse_question
    from carryscope.training.config import RunConfig, TrainingConfig
    from carryscope.training.presets import PRESETS

__all__ = [
    "ADD",
    "PRESETS",
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

_MODULE_OF = {
    "import_model": "api",
    "load": "api",
    "study": "api",
    "train": "api",
    "CallError": "core.errors",
    "WorkError": "core.errors",
    "Progress": "core.progress",
    "Stopped": "core.progress",
    "Answer": "dissection.asking",
    "Ablate": "dissection.interventions",
    "Cut": "dissection.interventions",
    "Node": "dissection.interventions",
    "Patch": "dissection.interventions",
    "ModelConfig": "model.config",
    "Transformer": "model.transformer",
    "repair": "repairing",
    "Run": "run",
    "Stage": "stages",
    "sweep": "sweeps.running",
    "Columns": "task.columns",
    "ADD": "task.operation",
    "Operation": "task.operation",
    "State": "task.operation",
    "Questions": "task.questions",
    "parse_question": "task.questions",
    "PRESETS": "training.presets",
    "RunConfig": "training.config",
    "TrainingConfig": "training.config",
}
"""Where each name is defined."""


def __getattr__(name: str) -> Any:
    """A name of the public API, loaded when it is first used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"carryscope has no '{name}'. It has: {', '.join(__all__)}.")
    return getattr(import_module(f"carryscope.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
