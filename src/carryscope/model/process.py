"""How this process uses the machine: threads, and what becomes of freed memory."""

from __future__ import annotations

import contextlib
import ctypes

import torch

from carryscope.core.errors import CallError

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""glibc's names for when freed memory goes back to the operating system."""


def use_threads(threads: int | None) -> None:
    """Use so many threads; None leaves it as it is, which is all cores unless told otherwise."""
    if threads is None:
        return
    if threads < 1:
        raise CallError(f"threads must be at least 1. Got {threads}.")
    torch.set_num_threads(threads)


def keep_freed_memory() -> None:
    """Ask the C library to keep what is freed for the next step.

    A training step allocates gradients of several megabytes and frees them. By default glibc
    hands such blocks back, and the next step pays for thousands of page faults: a tenth of
    its time. Where the C library has no such setting this does nothing.
    """
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, 1 << 25)
        libc.mallopt(_M_TRIM_THRESHOLD, 1 << 29)
