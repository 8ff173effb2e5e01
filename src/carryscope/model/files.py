"""A model on disk: `model.safetensors` beside `config.json`.

In: a directory. Out: a `Transformer`. What is damaged, truncated, foreign or newer than this
version of carryscope is refused with one line that says which.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import safetensors
import safetensors.torch
from torch import Tensor

from carryscope.errors import CallError
from carryscope.model.config import FORMAT_VERSION, ModelConfig
from carryscope.model.transformer import Transformer
from carryscope.storage import read_bytes, read_json, write_bytes

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"


class _Header(msgspec.Struct):
    """What `config.json` must hold for any reader."""

    format_version: int


class _ModelPart(msgspec.Struct):
    """What `config.json` must hold for a model to be loaded."""

    model: ModelConfig


def check_version(directory: Path) -> None:
    """Refuse a directory that holds no run, or one of another format version."""
    path = directory / CONFIG_FILE
    if not path.exists():
        raise CallError(
            f"No run at {directory}: it has no {CONFIG_FILE}. Make one: carryscope train."
        )
    version = read_json(path, _Header).format_version
    if version > FORMAT_VERSION:
        raise CallError(
            f"{path} was written by a newer carryscope (format {version}, this one reads "
            f"{FORMAT_VERSION}). Upgrade carryscope to read it."
        )


def save_weights(model: Transformer, directory: Path) -> None:
    """Write the weights, atomically."""
    weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    write_bytes(directory / WEIGHTS_FILE, safetensors.torch.save(weights))


def load_model(directory: Path) -> Transformer:
    """The model of a run directory."""
    check_version(directory)
    config = read_json(directory / CONFIG_FILE, _ModelPart).model
    path = directory / WEIGHTS_FILE
    if not path.exists():
        raise CallError(
            f"The run at {directory} has no {WEIGHTS_FILE} yet. Finish its training: "
            f"carryscope train --out {directory}."
        )
    return with_weights(config, read_tensors(path), path)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    try:
        return safetensors.torch.load(read_bytes(path))
    except safetensors.SafetensorError as error:
        raise CallError(f"{path} is damaged or not a safetensors file: {error}.") from error


def with_weights(config: ModelConfig, weights: dict[str, Tensor], source: Path) -> Transformer:
    """A model with the given weights, which must fit the config exactly."""
    model = Transformer(config)
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for name in sorted(expected | found):
        if expected.get(name) != found.get(name):
            raise CallError(
                f"{source} does not fit its config: {name} must be "
                f"{expected.get(name, 'absent')}. Got {found.get(name, 'nothing')}."
            )
    model.load_state_dict(weights)
    return model.eval()
