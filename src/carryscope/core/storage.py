"""Files on disk: written whole or not at all, read back by type, one writer at a time."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from carryscope.core.errors import CallError, WorkError
from carryscope.core.machine import check_memory

T = TypeVar("T")

LOCK_FILE = ".lock"

RUN_FILES = ("config.json", "model.safetensors", "metrics.jsonl", "readme.md", LOCK_FILE)
RUN_FOLDERS = ("findings", "checkpoint", "rounds", "kept")
"""What a run is made of. Every run has the first of these files, and one of the others."""


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never half.

    The new content goes to a fresh file beside the target, which then takes its name and mode.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = _mode_to_keep(path)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(mode)
            Path(temporary).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the system says about a file that cannot be written into one line."""
    try:
        yield
    except OSError as error:
        raise WorkError(
            f"Cannot write {path}: {error.strerror}. What was there before is intact."
        ) from error


def write_output(path: Path, content: bytes) -> None:
    """Write a file at a place that a person named, which must not be part of a run."""
    check_place(path)
    write_bytes(path, content)


def check_place(path: Path) -> None:
    """Refuse a place that cannot be written to, or must not be, before work is done for it."""
    with writing(path):
        _check_is_no_part_of_a_run(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        check_ordinary(path)
        tempfile.TemporaryFile(dir=path.parent).close()


def _check_is_no_part_of_a_run(path: Path) -> None:
    """Weights, settings and findings are not overwritten by pages about them."""
    place = path.parent.resolve() / path.name
    for run in place.parents:
        first, *below = place.relative_to(run).parts
        if first.lower() in (RUN_FOLDERS if below else RUN_FILES):
            config, *others = (run / name for name in (*RUN_FILES, *RUN_FOLDERS))
            if config.exists() and any(one.exists() for one in others):
                raise CallError(f"{path} is part of the run at {run}. Choose another --out.")


def check_ordinary(path: Path) -> None:
    """Refuse to replace a device, a pipe or a link: that would destroy something else.

    So is a file refused in a folder of a run that is a link: it may lead anywhere.
    """
    astray = path.parent.name in RUN_FOLDERS and path.parent.is_symlink()
    if astray or path.is_symlink() or (path.exists() and not path.is_file()):
        kind = "a directory" if path.is_dir() else "not an ordinary file"
        raise CallError(f"Cannot write {path}: it is {kind}. Choose another --out.")


def _mode_to_keep(path: Path) -> int:
    """The permissions of the file that is there, or those of a new one."""
    check_ordinary(path)
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def write_json(path: Path, record: Any) -> None:
    """Write a record as indented JSON."""
    write_bytes(path, msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")


def read_json(path: Path, kind: type[T]) -> T:
    """Read a record back by type. A missing or damaged file is a one-line error."""
    try:
        return msgspec.json.decode(read_bytes(path).decode(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CallError(f"{path} is damaged or not a carryscope file: {error}.") from error


def read_bytes(path: Path, *, pipes: bool = False) -> bytes:
    """Read a whole file. One that cannot be read, or that never ends, is a one-line error.

    With `pipes` it may also be a pipe, which the shell makes of `<(command)`.
    """
    try:
        found = path.stat()
        if not (stat.S_ISREG(found.st_mode) or (pipes and stat.S_ISFIFO(found.st_mode))):
            raise CallError(f"Cannot read {path}: it is not an ordinary file.")
        check_memory(found.st_size, f"Reading {path}")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, CallError):
            raise
        raise CallError(f"Cannot read {path}: {getattr(error, 'strerror', error)}.") from error


@contextlib.contextmanager
def only_writer(directory: Path, *, wait: float = 0) -> Iterator[None]:
    """Hold a run directory for this process; a second process is refused after `wait` seconds.

    The lock belongs to the process and goes with it, so a killed run leaves none behind.
    """
    import filelock

    if directory.exists() and not directory.is_dir():
        raise CallError(f"{directory} is a file. A run needs a directory: choose another --out.")
    path = directory / LOCK_FILE
    lock = filelock.FileLock(path, is_singleton=False)
    with writing(path):
        directory.mkdir(parents=True, exist_ok=True)
        check_ordinary(path)
        try:
            lock.acquire(timeout=wait)
        except filelock.Timeout as error:
            raise WorkError(
                f"Another process is working on {directory}. Wait for it, or choose another --out."
            ) from error
    try:
        yield
    finally:
        lock.release()
