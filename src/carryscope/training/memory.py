"""How this process treats memory between training steps."""

from __future__ import annotations

import contextlib
import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""glibc's names for when freed memory goes back to the operating system."""


def keep_freed_memory() -> None:
    """Ask the C library to keep what is freed for the next step.

    Each step allocates gradients of several megabytes and frees them. By default glibc hands
    such blocks back, and the next step pays for thousands of page faults: a tenth of its
    time. Where the C library has no such setting this does nothing.
    """
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, 1 << 25)
        libc.mallopt(_M_TRIM_THRESHOLD, 1 << 29)
