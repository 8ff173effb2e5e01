"""The files of a run: `config.json` and `model.safetensors`, with torch or without it.

In: a directory. Out: a `ModelConfig`, a `Transformer`, or arrays by name. What is damaged,
truncated, foreign or newer than this version of carryscope is refused with one line that says
which. Torch is loaded only by what needs it: `ask` answers without.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import safetensors
import safetensors.numpy

from carryscope.core.errors import CallError, command
from carryscope.core.machine import check_memory
from carryscope.core.storage import read_bytes, read_json, write_bytes
from carryscope.model.config import FORMAT_VERSION, ModelConfig
from carryscope.task.operation import Array

if TYPE_CHECKING:
    from torch import Tensor

    from carryscope.model.transformer import Transformer

T = TypeVar("T")

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"

COPIES = 3
"""How often the weights are in memory while a model is loaded: as a file, as tensors, in it."""


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


def check_free(directory: Path, *, but: str = "") -> None:
    """Refuse to make a run in a directory that holds something else `but` this file."""
    found = [path.name for path in directory.iterdir() if not path.name.startswith(".")]
    if set(found) - {but}:
        raise CallError(
            f"{directory} holds no run, but it is not empty ({min(found)}). Choose another --out."
        )


def read_model_config(directory: Path) -> ModelConfig:
    """The shape of the model of a run."""
    check_version(directory)
    return read_json(directory / CONFIG_FILE, _ModelPart).model


def read_arrays(directory: Path, config: ModelConfig) -> dict[str, Array]:
    """The weights of a run as numpy arrays."""
    path = _weights_file(directory)
    arrays = _read_checked(path, safetensors.numpy.load)[0]
    check_weights(config, arrays, path)
    return arrays


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

    whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
    _, data = _split(safetensors.torch.save(whole))
    checked = {**notes, "sha256": hashlib.sha256(data).hexdigest()}
    write_bytes(path, safetensors.torch.save(whole, checked))


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
    start = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:start]), content[start:]


def with_weights(config: ModelConfig, weights: Mapping[str, Tensor], source: Path) -> Transformer:
    """A model with the given weights, which must fit the config exactly and be finite."""
    from carryscope.model.transformer import Transformer

    check_weights(config, weights, source)
    model = Transformer(config)
    model.load_state_dict(weights)
    for name, weight in model.named_parameters():
        if not weight.isfinite().all():
            raise CallError(f"{source} has a number in {name} that is infinite or none at all.")
    return model.eval()


def check_weights(
    config: ModelConfig, weights: Mapping[str, Tensor] | Mapping[str, Array], source: Path
) -> None:
    """Refuse tensors that are not those of a model of this shape, before any is made."""
    check_memory(COPIES * config.size, f"The model of {source}")
    expected = {name: f"{shape} float32" for name, shape in config.shapes.items()}
    found = {
        name: f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"
        for name, tensor in weights.items()
    }
    for name in sorted(expected | found):
        if expected.get(name) != found.get(name):
            raise CallError(
                f"{source} does not fit its config: {name} must be "
                f"{expected.get(name, 'absent')}. Got {found.get(name, 'nothing')}."
            )


def weights_hash(model: Transformer) -> str:
    """The hash of a model: of its config, and of its weights with their names.

    The same bytes can be read as two heads or as four, which are different models. A config's
    usual values are left out, so that a new field does not change the hash of older models.
    """
    weights = hashlib.sha256()
    for name, weight in sorted(model.state_dict().items()):
        weights.update(name.encode())
        weights.update(weight.detach().contiguous().numpy().tobytes())
    usual = {field.name: field.default for field in msgspec.structs.fields(ModelConfig)}
    given = msgspec.structs.asdict(model.config)
    unusual = {name: given[name] for name in sorted(given) if given[name] != usual[name]}
    return hashlib.sha256(msgspec.json.encode([unusual, weights.hexdigest()])).hexdigest()
