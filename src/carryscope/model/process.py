"""How this process uses the machine: its threads, and its freed memory."""

from __future__ import annotations

import contextlib
import ctypes

import torch

from carryscope.core.errors import CallError
from carryscope.core.workers import cores

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""glibc's names for when freed memory goes back to the operating system."""


def use_machine(threads: int | None) -> None:
    """Use so many threads in this process, at most one for each core, and keep freed memory."""
    if threads is not None and threads < 1:
        raise CallError(f"threads must be at least 1. Got {threads}.")
    if threads is not None:
        torch.set_num_threads(min(threads, cores()))
    keep_freed_memory()


def keep_freed_memory() -> None:
    """Ask the C library to keep freed memory for the next step.

    A training step allocates gradients of several megabytes and frees them. By default glibc
    returns such blocks to the system, and the next step pays for thousands of page faults: a
    tenth of its time. Other C libraries, and Windows, have no such setting: nothing happens.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, 1 << 25)
        libc.mallopt(_M_TRIM_THRESHOLD, 1 << 29)
