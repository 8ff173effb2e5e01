"""A training whose first steps a shorter one makes: they are handed on, not made twice.

In: a run at its last step, and the config and directory of a longer one with the same recipe.
Out: the longer run, standing where the shorter one ended, and from there on its own.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from carryscope.core.errors import CallError
from carryscope.core.storage import only_writer, read_bytes, read_json, write_bytes
from carryscope.model.files import CONFIG_FILE
from carryscope.training.checkpoint import CHECKPOINT_FILE, METRICS_FILE
from carryscope.training.config import RunConfig, differences
from carryscope.training.loop import claim, is_finished


def begins_with(longer: RunConfig, shorter: RunConfig) -> bool:
    """Whether all steps of the shorter training are the first of the longer one, bit for bit."""
    if longer.training is None or shorter.training is None:
        return False
    steps = longer.training.steps
    lengthened = msgspec.structs.replace(shorter.training, steps=steps)
    same = not differences(longer, msgspec.structs.replace(shorter, training=lengthened))
    return same and shorter.training.steps <= steps and not longer.training.knows_its_end


def hand_on(run: Path, config: RunConfig, directory: Path) -> None:
    """Bring a longer run to where this one stands, unless it has steps of its own.

    To be called while the run's checkpoint is that of its last step: see `train`. A kill in the
    middle leaves a longer run that starts from nothing.
    """
    shorter = read_json(run / CONFIG_FILE, RunConfig)
    if not begins_with(config, shorter):
        raise CallError(f"A training by the recipe asked for does not begin as {run} did.")
    with only_writer(directory):
        claim(config, directory)
        if (directory / CHECKPOINT_FILE).exists() or is_finished(directory):
            return
        for file in (METRICS_FILE, CHECKPOINT_FILE):
            write_bytes(directory / file, read_bytes(run / file))
