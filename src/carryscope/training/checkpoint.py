"""Checkpoints and metrics on disk: a kill at any moment loses only time.

A checkpoint is one file, replaced atomically: weights, optimizer moments, step count. It needs no
random state, because a batch is a function of seed and step. Metrics are appended. On resume,
lines beyond the checkpoint's step are cut off, and the same steps write them again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
import torch
from torch import Tensor

from carryscope.core.errors import CallError, require
from carryscope.core.storage import read_bytes, write_bytes, writing
from carryscope.model.files import read_tensors, write_tensors
from carryscope.training.losses import StepRecord
from carryscope.training.trainer import Trainer

CHECKPOINT_FILE = Path("checkpoint") / "state.safetensors"
METRICS_FILE = "metrics.jsonl"
KEPT = "kept"
"""The folder of the weights that a training leaves on its way."""

MOST_KEPT = 200
"""Steps whose weights are kept at most: a page with more takes minutes to write."""


def save_checkpoint(trainer: Trainer, seconds: float, directory: Path) -> None:
    """Write the trainer's state, the seconds it has been training, and with how many threads."""
    threads = str(torch.get_num_threads())
    notes = {"step": str(trainer.step), "seconds": repr(seconds), "threads": threads}
    write_tensors(directory / CHECKPOINT_FILE, trainer.state(), notes)


def load_checkpoint(trainer: Trainer, directory: Path) -> float:
    """Bring the trainer to the checkpoint, if there is one; return the seconds of training."""
    path = directory / CHECKPOINT_FILE
    if not path.exists():
        return 0.0
    tensors, notes = read_tensors(path)
    try:
        trainer.restore(int(notes["step"]), tensors)
        return float(notes["seconds"])
    except (KeyError, RuntimeError, ValueError) as error:
        raise CallError(
            f"{path} does not belong to this run. Delete it to train from the start."
        ) from error


def note_in_checkpoint(directory: Path, name: str) -> int:
    """A whole number that the checkpoint notes, such as `step` or `threads`; 0 if there is none."""
    path = directory / CHECKPOINT_FILE
    text = read_tensors(path)[1].get(name, "") if path.exists() else ""
    return int(text) if text.isdecimal() and len(text) < 20 else 0


def steps_to_keep(steps: int, count: int) -> set[int]:
    """So many steps from 0 to the last, most of them early, where training changes most."""
    return {round(steps * (i / max(1, count - 1)) ** 2) for i in range(count)}


def keep_weights(trainer: Trainer, directory: Path) -> None:
    """Keep the weights of this step, to look at them later: in half precision, to stay small."""
    weights = {name: weight.half() for name, weight in trainer.model.state_dict().items()}
    write_tensors(directory / KEPT / f"{trainer.step:08}.safetensors", weights, {})


def kept_weights(directory: Path) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """The steps whose weights were kept, in order, with the weights."""
    paths = [path for path in (directory / KEPT).glob("*.safetensors") if path.stem.isdecimal()]
    few = len(paths) <= MOST_KEPT
    require(few, f"{directory / KEPT} must have at most {MOST_KEPT} files", len(paths))
    for path in sorted(paths):
        tensors, _ = read_tensors(path)
        yield int(path.stem), {name: tensor.float() for name, tensor in tensors.items()}


class MetricsWriter:
    """Appends step records to `metrics.jsonl`."""

    def __init__(self, directory: Path, step: int) -> None:
        """Open the file, keeping the records up to `step` and cutting off all later ones."""
        path = directory / METRICS_FILE
        lines = read_bytes(path).splitlines(keepends=True) if path.exists() else []
        # Whole lines only: a kill can cut the last one short.
        kept = [line for line in lines[:step] if line.endswith(b"\n")]
        if len(kept) < step:
            raise CallError(
                f"{path} has {len(kept)} of the {step} steps that the checkpoint has made. "
                f"Delete {directory / CHECKPOINT_FILE} to train from the start."
            )
        write_bytes(path, b"".join(kept))
        self._path = path
        self._file: BinaryIO = path.open("ab")

    def __enter__(self) -> MetricsWriter:
        return self

    def __exit__(self, *_: object) -> None:
        # After a failed write, closing fails again. What is in the buffer is beyond the last
        # checkpoint and not worth a second error.
        with contextlib.suppress(OSError):
            self._file.close()

    def write(self, record: StepRecord) -> None:
        """Add one record; the next `flush` makes it safe."""
        with writing(self._path):
            self._file.write(msgspec.json.encode(record) + b"\n")

    def flush(self) -> None:
        """Bring all records to the disk."""
        with writing(self._path):
            self._file.flush()
            os.fsync(self._file.fileno())


def read_metrics(directory: Path) -> list[StepRecord]:
    """All records of a run."""
    path = directory / METRICS_FILE
    try:
        return msgspec.json.Decoder(StepRecord).decode_lines(read_bytes(path))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CallError(f"{path} is damaged: {error}.") from error
