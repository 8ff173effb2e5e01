"""How loops are compiled, and where the machine code is kept.

In: a function of plain loops over arrays. Out: the same function, compiled by numba at its first
call and read from a file in later processes.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

FAST = {"contract", "reassoc"}
"""What the compiler may do: fuse operations, and add up in another order. Nothing else."""

SOURCES = ("boxes.py", "compiled_*.py", "compiling.py", "proof.py", "rounding.py", "row_tables.py")
"""Modules that loops are made of, or whose constants they read."""

Loop = TypeVar("Loop", bound=Callable[..., Any])


def _machine_code() -> Path:
    """Where compiled loops are kept. The name is made from the sources: numba does not notice
    when something that a loop reads has changed in another file."""
    here = Path(__file__).parent
    sources = sorted(source for names in SOURCES for source in here.glob(names))
    digest = sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    beside = Path(__file__).parent / "__pycache__"
    writable = os.access(beside if beside.exists() else beside.parent, os.W_OK)
    return (beside if writable else Path.home() / ".cache" / "carryscope") / f"loops-{digest}"


MACHINE_CODE = _machine_code()


def compiled(loop: Loop) -> Loop:
    """Compile a loop. Its annotations are for readers: numba goes by what it is called with."""
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(MACHINE_CODE)
    try:
        # A wrapper that checks shapes in tests cannot be compiled: what it wraps can.
        plain = inspect.unwrap(loop)
        made = numba.njit(fastmath=FAST, cache=True, nogil=True, error_model="numpy")(plain)
    finally:
        numba.config.CACHE_DIR = before
    return cast(Loop, made)
