"""A training that starts from the weights of another run.

In: a trained run. Out: the config of the new run, with the hash of those weights, and the weights
themselves. They are needed once: the new run keeps them in its first checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from torch import Tensor

from carryscope.core.errors import CallError
from carryscope.core.storage import read_json
from carryscope.model.config import FORMAT_VERSION
from carryscope.model.files import load_model, weights_hash
from carryscope.model.run_files import CONFIG_FILE
from carryscope.training.config import RunConfig
from carryscope.training.presets import changed, preset
from carryscope.version import __version__


def started_config(run: Path, overrides: Mapping[str, Any], recipe: str | None = None) -> RunConfig:
    """The run's own model and recipe, or another preset's recipe, with some fields replaced."""
    weights = weights_hash(load_model(run))
    found = read_json(run / CONFIG_FILE, RunConfig)
    training = found.training if recipe is None else preset(recipe).training
    if training is None:
        raise CallError(f"The model at {run} was imported and has no recipe. Name one: --preset P.")
    config = RunConfig(
        format_version=FORMAT_VERSION,
        package_version=__version__,
        preset=recipe or found.preset,
        source=run.resolve().name,
        model=found.model,
        training=msgspec.structs.replace(training, start_weights=weights, renew=(), freeze=()),
    )
    config = changed(config, overrides)
    if config.model != found.model:
        raise CallError(
            f"A training that starts from {run} keeps its model. Change only the recipe."
        )
    return config


def starting_weights(config: RunConfig, run: Path | None) -> dict[str, Tensor]:
    """The weights that the config starts from, which must have its hash."""
    assert config.training is not None
    if run is None:
        raise CallError(
            f"This training starts from the weights of '{config.source}'. Name that run: "
            "--start-from RUN."
        )
    model = load_model(run)
    if weights_hash(model) != config.training.start_weights:
        raise CallError(
            f"The run at {run} has other weights than this training starts from. Name the run it "
            "started from, or choose another --out."
        )
    return dict(model.state_dict())
