"""The files of a run that can be read without torch: its config, and its weights as arrays.

In: a directory. Out: a `ModelConfig`, or arrays by name. What is damaged, truncated, foreign or
newer than this version of carryscope is refused in one line.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import safetensors
import safetensors.numpy

from carryscope.core.errors import CallError, command
from carryscope.core.storage import read_bytes, read_json
from carryscope.model.config import FORMAT_VERSION, ModelConfig
from carryscope.task.operation import Array

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
            f"No run at {directory}: it has no {CONFIG_FILE}. Make one: {command('train')}."
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


def weights_file(directory: Path) -> Path:
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


def read_arrays(path: Path) -> dict[str, Array]:
    """The tensors of a safetensors file as numpy arrays."""
    return read_checked(path, safetensors.numpy.load)[0]


def read_checked(
    path: Path, load: Callable[[bytes], dict[str, T]]
) -> tuple[dict[str, T], dict[str, str]]:
    """What is in a safetensors file, and its notes; a damaged file is refused."""
    content = read_bytes(path)
    try:
        tensors = load(content)
    except safetensors.SafetensorError as error:
        raise CallError(f"{path} is damaged or not a safetensors file: {error}.") from error
    header, data = split(content)
    notes: dict[str, str] = header.get("__metadata__", {})
    if notes.get("sha256") not in (None, hashlib.sha256(data).hexdigest()):
        raise CallError(f"{path} is damaged: its data does not have the checksum in its header.")
    return tensors, notes


def split(content: bytes) -> tuple[dict[str, Any], bytes]:
    """A safetensors file is the length of a JSON header, the header, and the data."""
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]
