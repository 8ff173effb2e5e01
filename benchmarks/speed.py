"""The speed table: each row a quantity, its value, and the target it should meet.

Ratios come from things done in turns, a few steps each, so that a busy machine slows all of
them alike. The time to a loss counts training steps only; looking at the held-out loss is
the measuring instrument, not the thing measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

import msgspec
import numpy as np
import torch

from benchmarks import peer
from benchmarks.products import bare_step, products_of_a_step
from carryscope.core.errors import WorkError
from carryscope.core.evidence import Mean
from carryscope.task.columns import Columns
from carryscope.training.data import training_batch
from carryscope.training.loop import held_out_loss
from carryscope.training.losses import step_record
from carryscope.training.presets import run_config
from carryscope.training.trainer import Trainer

TURN = 8
"""Steps in one turn."""

LOOK_EVERY = 25
"""Steps between looks at the held-out loss, once it can be near its target."""

PAPER_STEPS = 5000
"""The length of the paper's training, by which its time is reckoned."""

NOTEBOOK_LOSS = 0.016
"""Where the authors' notebook ends: mean training loss of its last 100 steps."""

PRINTED_LOSS = 0.009
"""The figure the paper prints."""

Step = Callable[[], object]


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table."""

    name: str
    value: float
    unit: str
    target: str | None = None
    met: bool | None = None
    low: float | None = None
    high: float | None = None
    """The 95 % interval of what is estimated."""

    @classmethod
    def at_most(cls, name: str, value: float, limit: float, unit: str) -> Measure:
        """A quantity that should not exceed a limit."""
        return cls(
            name=name, value=value, unit=unit, target=f"at most {limit:g}", met=value <= limit
        )

    @classmethod
    def at_least(cls, name: str, value: float, limit: float, unit: str) -> Measure:
        """A quantity that should reach a limit."""
        return cls(
            name=name, value=value, unit=unit, target=f"at least {limit:g}", met=value >= limit
        )

    @classmethod
    def estimated(cls, name: str, mean: Mean, unit: str = "") -> Measure:
        """A quantity with its interval, and no target."""
        return cls(name=name, value=mean.estimate, unit=unit, low=mean.low, high=mean.high)


@contextmanager
def peer_process(python: Path, script: str, *arguments: object) -> Iterator[Callable[[str], str]]:
    """A function that says a line to a script run with TransformerLens and hears its answer."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"}
    process = subprocess.Popen(
        [python, script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )

    def ask(line: str) -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
        if not (answer := process.stdout.readline()):
            raise WorkError(
                f"{python} cannot run TransformerLens 2.x; {python} -c 'import transformer_lens' "
                "says why. `make bench` makes one that can."
            )
        return answer

    try:
        yield ask
    finally:
        process.kill()
        process.communicate()  # waits, and closes the pipes


@contextmanager
def peer_steps(python: Path, threads: int) -> Iterator[Callable[[int], float]]:
    """A function that makes so many TransformerLens steps and returns the seconds they took."""
    with peer_process(python, peer.__file__, threads) as ask:
        yield lambda count: float(ask(str(count)))


def in_turns(
    contestants: dict[str, Callable[[int], float]], rounds: int, *, turn: int = TURN
) -> dict[str, float]:
    """Median seconds per step of each contestant, `turn` steps each at a time."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for take_turn in contestants.values():
        take_turn(turn)  # once unmeasured: caches and clocks warm up
    for _ in range(rounds):
        for name, take_turn in contestants.items():
            seconds[name].append(take_turn(turn) / turn)
    return {name: median(times) for name, times in seconds.items()}


def timed(step: Step) -> Callable[[int], float]:
    """A function that makes so many steps and returns the seconds they took."""

    def take_turn(count: int) -> float:
        began = time.perf_counter()
        for _ in range(count):
            step()
        return time.perf_counter() - began

    return take_turn


def step_speed(tl: Callable[[int], float], rounds: int) -> tuple[list[Measure], float]:
    """Paper-5 steps against TransformerLens and against bare products; TransformerLens' step."""
    config = run_config("paper-5", {})
    trainer = Trainer(config)
    products = products_of_a_step(config.model, trainer.recipe.batch)
    bare = bare_step(products, torch.Generator().manual_seed(0))
    contestants = {"TransformerLens": tl, "carryscope": timed(trainer.advance), "bare": timed(bare)}
    times = in_turns(contestants, rounds)
    ours = times["carryscope"]
    ratio = times["TransformerLens"] / ours
    rows = [
        Measure.at_least("training steps per second, TransformerLens = 1", ratio, 4, "x"),
        Measure.at_most(
            "training step, its bare matrix products = 1", ours / times["bare"], 1.4, "x"
        ),
        Measure.at_most("recording a step, share of its time", recording(trainer) / ours, 0.05, ""),
        Measure(name="training step of paper-5", value=1e3 * ours, unit="ms"),
        Measure(
            name="the same on TransformerLens", value=1e3 * times["TransformerLens"], unit="ms"
        ),
    ]
    return rows, times["TransformerLens"]


def recording(trainer: Trainer) -> float:
    """Seconds to make and encode the record of one step."""
    questions = training_batch(trainer.recipe, trainer.model.config.digits, 0)
    losses = np.random.default_rng(0).random((len(questions), 6))
    encode = msgspec.json.Encoder().encode
    return timed(lambda: encode(step_record(1, losses, Columns.of(questions))))(200) / 200


class TimeToLoss(msgspec.Struct, frozen=True):
    """How long one seed of fast-5 trained until the held-out loss was first at most so much."""

    seed: int
    to_notebook_loss: float
    to_printed_loss: float
    whole: float
    final_loss: float


def time_to_loss(seed: int, on_step: Step) -> TimeToLoss:
    """Train fast-5 from one seed and look when the held-out loss reaches its two marks."""
    trainer = Trainer(run_config("fast-5", {"seed": seed}))
    reached = {NOTEBOOK_LOSS: float("inf"), PRINTED_LOSS: float("inf")}
    seconds, loss = 0.0, float("inf")
    while trainer.step < trainer.recipe.steps:
        began = time.perf_counter()
        trainer.advance()
        seconds += time.perf_counter() - began
        on_step()
        done = trainer.step == trainer.recipe.steps
        near = trainer.step % LOOK_EVERY == 0 and trainer.step > 0.5 * trainer.recipe.steps
        if done or near:
            loss = held_out_loss(trainer)
            reached |= {m: min(at, seconds) for m, at in reached.items() if loss <= m}
    return TimeToLoss(seed, reached[NOTEBOOK_LOSS], reached[PRINTED_LOSS], seconds, loss)


def loss_rows(runs: list[TimeToLoss], paper_seconds: float) -> list[Measure]:
    """The worst and the median of the seeds, as shares of TransformerLens' 5000 steps."""
    notebook = [run.to_notebook_loss / paper_seconds for run in runs]
    printed = [run.to_printed_loss / paper_seconds for run in runs]
    share = "share of the time TransformerLens takes for the paper's 5000 steps"
    seeds = f"{len(runs)} seeds"
    return [
        Measure.at_most(
            f"fast-5 to held-out loss 0.016, worst of {seeds}, {share}", max(notebook), 0.1, ""
        ),
        Measure.at_most(
            f"fast-5 to held-out loss 0.009, worst of {seeds}, {share}", max(printed), 0.1, ""
        ),
        Measure(
            name=f"fast-5 to 0.016, median of {seeds}",
            value=median(r.to_notebook_loss for r in runs),
            unit="s",
        ),
        Measure(
            name=f"fast-5 to 0.009, median of {seeds}",
            value=median(r.to_printed_loss for r in runs),
            unit="s",
        ),
        Measure(
            name=f"fast-5 held-out loss at the end, worst of {seeds}",
            value=max(r.final_loss for r in runs),
            unit="",
        ),
    ]


_TRAIN_AND_TELL = """
import sys
from benchmarks.speed import high_water_mark
from carryscope.cli.main import run
ended = run(sys.argv[1:])
print(high_water_mark(), file=sys.stderr)
sys.exit(ended)
"""


def high_water_mark() -> float:
    """The most memory this process has had, in gigabytes.

    A child reads its own mark: what the system keeps for its parent includes the parent's.
    """
    status = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1e9


def peak_memory(preset: str, limit: float) -> Measure:
    """The most memory that training a preset takes, in gigabytes."""
    with tempfile.TemporaryDirectory() as directory:
        arguments = ["train", "--preset", preset, "--steps", "30", "--out", f"{directory}/run"]
        command = [sys.executable, "-c", _TRAIN_AND_TELL, *arguments, "--json"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise WorkError(f"Training {preset} to measure its memory failed: {ended.stderr}")
    gigabytes = float(ended.stderr.split()[-1])
    return Measure.at_most(f"peak memory of training {preset}", gigabytes, limit, "GB")


def threads() -> int:
    """The threads that every contestant uses."""
    return torch.get_num_threads()
