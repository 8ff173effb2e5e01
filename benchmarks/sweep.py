"""Two seeds side by side against one after the other, one thread each.

Measured as a user meets it: calls of `carryscope sweep` in new directories, with starting, all
stages of both seeds, and the page.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence

from benchmarks.measure import Measure, in_turns, timed
from carryscope.core.errors import WorkError

RECIPE = ("--preset", "fast-5", "--steps", "300")
"""The paper's model, trained just long enough that a seed takes a minute or two."""

ROUNDS = 2

AT_LEAST = 1.6
"""The target on two cores."""


def sweep_speed(rounds: int = ROUNDS, *, recipe: Sequence[str] = RECIPE) -> Iterator[Measure]:
    """The throughput of two workers, and the time of a seed."""
    turns = {
        "one": timed(lambda: run_sweep(1, recipe), items=2),
        "two": timed(lambda: run_sweep(2, recipe), items=2),
    }
    seconds, how = in_turns(turns, rounds, warm_up=False), f"{rounds} turns of two seeds"
    yield Measure(
        name="sweep with two workers, one worker = 1",
        value=seconds["one"] / seconds["two"],
        unit="x",
        at_least=AT_LEAST,
        how=how,
    )
    name = "a seed of fast-5, cut to 300 steps"
    yield Measure(name=name, value=seconds["one"], unit="s", how=how)


def run_sweep(workers: int, recipe: Sequence[str]) -> None:
    """Sweep over two seeds with so many workers of one thread."""
    command = [sys.executable, "-m", "carryscope", "sweep", *recipe, "--seeds", "0..1", "--json"]
    with tempfile.TemporaryDirectory() as directory:
        command += ["--workers", str(workers), "--threads", "1", "--out", directory]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise WorkError(f"The sweep failed: {ended.stderr.strip().rpartition(chr(10))[2]}")
