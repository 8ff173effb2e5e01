"""A run that was trained for a moment, for every command to be tried on."""

import shutil
from pathlib import Path

import pytest

from carryscope.training.loop import train
from carryscope.training.presets import run_config


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("trained") / "tiny"
    train(run_config("tiny", {"steps": 30, "d_model": 24}), directory)
    return directory


@pytest.fixture(scope="module")
def tiny_run(trained, tmp_path_factory) -> Path:
    """A copy of it: what a file's tests find out about it stays with them."""
    return Path(shutil.copytree(trained, tmp_path_factory.mktemp("runs") / "tiny"))
