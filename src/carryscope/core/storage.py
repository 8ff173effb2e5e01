"""Files on disk: written whole or not at all, read back by type, one writer at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from carryscope.core.errors import CallError, WorkError

T = TypeVar("T")

LOCK_FILE = ".lock"


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never half."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> WorkError:
    return WorkError(f"Cannot write {path}: {error.strerror}. What was there before is intact.")


def write_json(path: Path, record: Any) -> None:
    """Write a record as indented JSON."""
    write_bytes(path, msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")


def read_json(path: Path, kind: type[T]) -> T:
    """Read a record back by type; a missing or damaged file is told in one line."""
    try:
        return msgspec.json.decode(read_bytes(path), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CallError(f"{path} is damaged or not a carryscope file: {error}.") from error


def read_bytes(path: Path) -> bytes:
    """Read a whole file; one that cannot be read is told in one line."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CallError(f"Cannot read {path}: {error.strerror}.") from error


@contextlib.contextmanager
def only_writer(directory: Path) -> Iterator[None]:
    """Hold a run directory for this process; a second process is refused.

    The lock belongs to the process and goes with it, so a killed run leaves none behind.
    """
    path = directory / LOCK_FILE
    if directory.exists() and not directory.is_dir():
        raise CallError(f"{directory} is a file. A run needs a directory: choose another --out.")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = path.open("a")
    except OSError as error:
        raise _cannot_write(path, error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise WorkError(
                f"Another process is working on {directory}. Wait for it, or choose another --out."
            ) from error
        yield
