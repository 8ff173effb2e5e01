"""A model on disk: `model.safetensors` next to `config.json`.

In: a directory. Out: a `Transformer`. What is damaged, truncated, foreign or newer than this
version of carryscope is refused with one line that says which.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
from torch import Tensor

from carryscope.core.errors import CallError
from carryscope.core.storage import write_bytes
from carryscope.model.config import ModelConfig
from carryscope.model.run_files import (
    WEIGHTS_FILE,
    read_checked,
    read_model_config,
    split,
    weights_file,
)
from carryscope.model.transformer import Transformer


def save_weights(model: Transformer, directory: Path) -> None:
    """Write the weights, atomically."""
    write_tensors(directory / WEIGHTS_FILE, model.state_dict(), {})


def load_model(directory: Path) -> Transformer:
    """The model of a run directory."""
    config, path = read_model_config(directory), weights_file(directory)
    return with_weights(config, read_tensors(path)[0], path)


def write_tensors(path: Path, tensors: Mapping[str, Tensor], notes: Mapping[str, str]) -> None:
    """Write a safetensors file with notes and a checksum of its data in the header."""
    content = safetensors.torch.save({name: t.contiguous() for name, t in tensors.items()})
    header, data = split(content)
    checked = {**notes, "sha256": hashlib.sha256(data).hexdigest()}
    described = json.dumps({"__metadata__": checked, **header}).encode()
    described += b" " * (-len(described) % 8)  # tensors start at a multiple of eight bytes
    write_bytes(path, struct.pack("<Q", len(described)) + described + data)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the notes of a safetensors file; one that was damaged is refused."""
    return read_checked(path, safetensors.torch.load)


def with_weights(config: ModelConfig, weights: dict[str, Tensor], source: Path) -> Transformer:
    """A model with the given weights, which must fit the config exactly."""
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
