"""The machine: in words, next to every time that was measured; its cores and its memory."""

from __future__ import annotations

import ctypes
import os
import platform
from contextlib import suppress
from pathlib import Path

from carryscope.core.errors import CallError, require

CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""Where Linux says how much memory a container may use."""

SLEEP_SOON = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "0"}
"""How long a thread spins before it sleeps: for GNU's OpenMP some microseconds, for Intel's not at
all. Without other work a step takes as long as with spinning, measured to a millisecond."""

ADDRESSES = 1 << 30
"""Bytes of addresses that Python with torch takes. With less, libraries fail in ways of their own,
or end the process."""

USUAL_MEMORY = 16 << 30
"""Taken for the machine's memory where the system does not say."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""glibc's names for when freed memory goes back to the operating system."""


def machine() -> str:
    """Cores, processor and versions."""
    import torch

    return (
        f"{os.cpu_count()} cores ({_processor()}), Python {platform.python_version()}, "
        f"torch {torch.__version__}"
    )


def share_cores() -> None:
    """Let threads that wait for each other sleep at once, instead of spinning.

    A thread that spins keeps the core that the other one needs. Beside two busy processes a
    training step of 58 ms took 1,230 ms. What the user has set stays.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        for name, value in SLEEP_SOON.items():
            os.environ.setdefault(name, value)


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def use_machine(threads: int | None) -> None:
    """Use so many threads in this process, at most one for each core, and keep freed memory."""
    require(threads is None or threads >= 1, "threads must be at least 1", threads)
    if threads is not None:
        import torch

        torch.set_num_threads(min(threads, cores()))
    keep_freed_memory()


def keep_freed_memory() -> None:
    """Ask the C library to keep freed memory for the next step.

    A training step allocates gradients of several megabytes and frees them. By default glibc
    returns such blocks to the system, and the next step pays for thousands of page faults: a
    tenth of its time. Other C libraries, and Windows, have no such setting: nothing happens.
    """
    with suppress(OSError, AttributeError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, 1 << 25)
        libc.mallopt(_M_TRIM_THRESHOLD, 1 << 29)


def memory() -> int:
    """The memory that this process may use, in bytes."""
    limits = [USUAL_MEMORY]
    with suppress(AttributeError, ValueError, OSError):
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with suppress(OSError, ValueError):
        limits.append(int(CONTAINER_LIMIT.read_text()))
    return min(limit for limit in (*limits, _addresses()) if limit > 0)


def _addresses() -> int:
    """The bytes of addresses that the system allows this process, or -1 if it sets no limit."""
    with suppress(ImportError):
        import resource

        return resource.getrlimit(resource.RLIMIT_AS)[0]
    return -1


def check_addresses() -> None:
    """Refuse to start where torch could not even be loaded."""
    if 0 < (limit := _addresses()) < ADDRESSES:
        raise CallError(
            f"carryscope needs {ADDRESSES / 1e9:.1f} GB of addresses (ulimit -v). "
            f"There are {limit / 1e9:.1f} GB."
        )


def check_memory(needed: int | float, what: str) -> None:
    """Refuse work that cannot fit into memory, before anything is allocated for it."""
    if needed > memory():
        raise CallError(
            f"{what} needs about {needed / 1e9:,.1f} GB of memory. "
            f"There are {memory() / 1e9:,.1f} GB."
        )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
