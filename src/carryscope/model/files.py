"""The files of a run: `config.json` and `model.safetensors`, with torch or without it.

In: a directory. Out: a `ModelConfig`, a `Transformer`, or arrays by name. What is damaged,
truncated, foreign or newer than this version of carryscope is refused with one line that says
which. Torch is loaded only by what needs it: `ask` answers without.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import safetensors
import safetensors.numpy

from carryscope.core.errors import CallError, command
from carryscope.core.storage import read_bytes, read_json, write_bytes
from carryscope.model.config import FORMAT_VERSION, ModelConfig
from carryscope.task.operation import Array

if TYPE_CHECKING:
    from torch import Tensor

    from carryscope.model.transformer import Transformer

T = TypeVar("T")

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
            f"No run at {directory}: it has no {CONFIG_FILE}. Make one: "
            f"{command('train', '--out', directory)}."
        )
    version = read_json(path, _Header).format_version
    if version > FORMAT_VERSION:
        raise CallError(
            f"{path} was written by a newer carryscope (format {version}, this one reads "
            f"{FORMAT_VERSION}). Upgrade carryscope to read it."
        )


def check_free(directory: Path) -> None:
    """Refuse to make a run in a directory that holds something else."""
    found = [path.name for path in directory.iterdir() if not path.name.startswith(".")]
    if found:
        raise CallError(
            f"{directory} holds no run, but it is not empty ({min(found)}). Choose another --out."
        )


def read_model_config(directory: Path) -> ModelConfig:
    """The shape of the model of a run."""
    check_version(directory)
    return read_json(directory / CONFIG_FILE, _ModelPart).model


def read_arrays(directory: Path) -> dict[str, Array]:
    """The weights of a run as numpy arrays."""
    return _read_checked(_weights_file(directory), safetensors.numpy.load)[0]


def load_model(directory: Path) -> Transformer:
    """The model of a run directory."""
    config, path = read_model_config(directory), _weights_file(directory)
    return with_weights(config, read_tensors(path)[0], path)


def _weights_file(directory: Path) -> Path:
    """Where the weights of a run are; a run without them is refused."""
    path = directory / WEIGHTS_FILE
    if path.exists():
        return path
    if (directory / "findings").is_dir():
        raise CallError(
            f"{directory} has findings but no {WEIGHTS_FILE}: its weights were not kept. Train "
            f"them again into another directory: {CONFIG_FILE} there has the recipe."
        )
    raise CallError(
        f"The run at {directory} has no {WEIGHTS_FILE} yet. Finish its training: "
        f"{command('train', '--out', directory)}."
    )


def save_weights(model: Transformer, directory: Path) -> None:
    """Write the weights, atomically."""
    write_tensors(directory / WEIGHTS_FILE, model.state_dict(), {})


def write_tensors(path: Path, tensors: Mapping[str, Tensor], notes: Mapping[str, str]) -> None:
    """Write a safetensors file with notes and a checksum of its data in the header."""
    import safetensors.torch

    content = safetensors.torch.save({name: t.contiguous() for name, t in tensors.items()})
    header, data = _split(content)
    checked = {**notes, "sha256": hashlib.sha256(data).hexdigest()}
    described = json.dumps({"__metadata__": checked, **header}).encode()
    described += b" " * (-len(described) % 8)  # tensors start at a multiple of eight bytes
    write_bytes(path, struct.pack("<Q", len(described)) + described + data)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the notes of a safetensors file; one that was damaged is refused."""
    import safetensors.torch

    return _read_checked(path, safetensors.torch.load)


def _read_checked(
    path: Path, load: Callable[[bytes], dict[str, T]]
) -> tuple[dict[str, T], dict[str, str]]:
    content = read_bytes(path)
    try:
        tensors = load(content)
    except safetensors.SafetensorError as error:
        raise CallError(f"{path} is damaged or not a safetensors file: {error}.") from error
    header, data = _split(content)
    notes: dict[str, str] = header.get("__metadata__", {})
    if notes.get("sha256") not in (None, hashlib.sha256(data).hexdigest()):
        raise CallError(f"{path} is damaged: its data does not have the checksum in its header.")
    return tensors, notes


def _split(content: bytes) -> tuple[dict[str, Any], bytes]:
    """A safetensors file is the length of a JSON header, the header, and the data."""
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def with_weights(config: ModelConfig, weights: dict[str, Tensor], source: Path) -> Transformer:
    """A model with the given weights, which must fit the config exactly."""
    from carryscope.model.transformer import Transformer

    model = Transformer(config)
    expected, found = _described(model.state_dict()), _described(weights)
    for name in sorted(expected | found):
        if expected.get(name) != found.get(name):
            raise CallError(
                f"{source} does not fit its config: {name} must be "
                f"{expected.get(name, 'absent')}. Got {found.get(name, 'nothing')}."
            )
    model.load_state_dict(weights)
    return model.eval()


def _described(weights: Mapping[str, Tensor]) -> dict[str, str]:
    return {name: f"{tuple(t.shape)} {t.dtype}" for name, t in weights.items()}


def weights_hash(model: Transformer) -> str:
    """One hash over all weights and their names."""
    digest = hashlib.sha256()
    for name, weight in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(weight.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()
