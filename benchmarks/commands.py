"""What whole commands cost, how fast questions are answered, and two seeds side by side."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import carryscope
from benchmarks.measure import Measure, in_turns, timed
from carryscope.core.errors import WorkError
from carryscope.model.prediction import answer
from carryscope.task.sampling import uniform

FRESH = """
import sys
from pathlib import Path
from carryscope.cli.main import run
code = run(sys.argv[1:])
peak = next(l for l in Path("/proc/self/status").read_text().splitlines() if l[:5] == "VmHWM")
print(peak.split()[1], file=sys.stderr)
sys.exit(code)
"""
"""A command, and the most memory it had. A process reads its own peak: what the system reports to
its parent includes the parent's."""


class Command(NamedTuple):
    """A command with its targets. RUN is a copy of the shipped model, NEW a new directory."""

    words: str
    seconds: float | None = None
    gigabytes: float | None = None


COMMANDS = (
    Command("--help", seconds=0.5),
    Command("ask 445+555", seconds=1.5),
    Command("dissect RUN --again", seconds=60, gigabytes=2),
    Command("risk RUN --again", seconds=60, gigabytes=2),
    Command("train --preset paper-5 --steps 30 --out NEW", gigabytes=1),
    Command("train --preset paper-15 --steps 30 --out NEW", gigabytes=2),
)

TURN, ROUNDS = 2048, 10
"""Questions of one turn, and turns."""

PER_SECOND = 5600
"""The target for questions answered in a second: a million of them in at most three minutes."""

SWEEP = "sweep --preset fast-5 --steps 300 --seeds 0..1 --threads 1 --out NEW --workers"
"""The paper's model, trained just long enough that a seed takes a minute or two."""

SWEEP_ROUNDS, AT_LEAST = 2, 1.6
"""The target is for two cores."""


def command_costs(commands: Sequence[Command] = COMMANDS) -> Iterator[Measure]:
    """Seconds and peak memory of whole commands in fresh processes, imports included."""
    for one in commands:
        seconds, gigabytes = cost_of(one.words)
        name, how = f"carryscope {one.words}", "a fresh process"
        if one.seconds is not None:
            yield Measure(name=name, value=seconds, unit="s", at_most=one.seconds, how=how)
        if one.gigabytes is not None:
            name += ", peak memory"
            yield Measure(name=name, value=gigabytes, unit="GB", at_most=one.gigabytes, how=how)


def cost_of(words: str) -> tuple[float, float]:
    """Seconds and gigabytes of a command."""
    with tempfile.TemporaryDirectory() as directory:
        copy, new = Path(directory) / "run", Path(directory) / "new"
        if "RUN" in words:
            copy.mkdir()
            for file in carryscope.load().directory.iterdir():
                if file.is_file():
                    (copy / file.name).write_bytes(file.read_bytes())
        places = {"RUN": str(copy), "NEW": str(new)}
        arguments = [places.get(word, word) for word in words.split()]
        began = time.perf_counter()
        command = [sys.executable, "-c", FRESH, *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - began
    if ended.returncode:
        raise WorkError(f"carryscope {words} failed: {ended.stderr}")
    return seconds, 1024 * int(ended.stderr.split()[-1]) / 1e9


def answer_speed(*, rounds: int = ROUNDS, turn: int = TURN) -> Iterator[Measure]:
    """Questions that the shipped model answers in a second."""
    model = carryscope.load().model()
    questions = uniform(np.random.default_rng(0), turn, model.config.digits)
    seconds = in_turns(
        {
            "teacher-forced": timed(
                lambda: answer(model, questions, free_running=False), items=turn
            ),
            "free-running": timed(lambda: answer(model, questions, free_running=True), items=turn),
        },
        rounds,
    )
    for how, taken in seconds.items():
        yield Measure(
            name=f"{model.config.digits}-digit questions answered, {how}",
            value=1 / taken,
            unit="/s",
            at_least=PER_SECOND,
            how=f"median of {rounds} turns of {turn:,} questions",
        )


def sweep_speed(rounds: int = SWEEP_ROUNDS) -> Iterator[Measure]:
    """Two seeds side by side against one after the other, one thread each."""
    turns = {count: timed(partial(cost_of, f"{SWEEP} {count}"), items=2) for count in "12"}
    seconds, how = in_turns(turns, rounds, warm_up=False), f"{rounds} turns of two seeds"
    yield Measure(name="a seed of fast-5, cut to 300 steps", value=seconds["1"], unit="s", how=how)
    yield Measure(
        name="sweep with two workers, one worker = 1",
        value=seconds["1"] / seconds["2"],
        unit="x",
        at_least=AT_LEAST,
        how=how,
    )
