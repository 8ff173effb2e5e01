"""Two seeds side by side against one after the other, at one thread each.

Measured as a user meets it, by calls of `carryscope sweep` in new directories: starting, all
stages of both seeds, and the page. The two ways take turns, so that a busy machine slows both.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from statistics import median

from benchmarks.speed import Measure
from carryscope.core.errors import WorkError

RECIPE = ("--preset", "fast-5", "--steps", "300")
"""The paper's model, trained just long enough that a seed takes a minute or two."""

TURNS = 2
"""Turns of each way."""

TARGET = 1.6
"""The throughput to reach on two cores."""


def sweep_rows(
    turns: int = TURNS,
    *,
    recipe: Sequence[str] = RECIPE,
    on_turn: Callable[[], object] = lambda: None,
) -> list[Measure]:
    """The throughput of two workers, one worker = 1, and the time of a seed."""
    alone, together = [], []
    for _ in range(turns):
        alone.append(seconds_of_a_sweep(1, recipe))
        on_turn()
        together.append(seconds_of_a_sweep(2, recipe))
        on_turn()
    return throughput(alone, together)


def throughput(alone: Sequence[float], together: Sequence[float]) -> list[Measure]:
    """The rows, from the seconds of each turn."""
    ratio = median(one / two for one, two in zip(alone, together, strict=True))
    return [
        Measure.at_least("seeds a minute, two side by side, in turn = 1", ratio, TARGET, "x"),
        Measure(name="a seed of fast-5 cut to 300 steps", value=median(alone) / 2, unit="s"),
    ]


def seconds_of_a_sweep(workers: int, recipe: Sequence[str] = RECIPE) -> float:
    """How long two seeds take so many workers of one thread."""
    command = [sys.executable, "-m", "carryscope", "sweep", *recipe, "--seeds", "0..1", "--json"]
    with tempfile.TemporaryDirectory() as directory:
        command += ["--workers", str(workers), "--threads", "1", "--out", directory]
        began = time.perf_counter()
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - began
    if ended.returncode:
        raise WorkError(f"The sweep failed: {ended.stderr.strip().rpartition(chr(10))[2]}")
    return seconds
