"""Training: its steps against TransformerLens and against bare products, time to a loss, memory.

The time to a loss counts training steps only. Computing the held-out loss is part of measuring.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, median

import msgspec
import numpy as np
import torch

from benchmarks import peer_steps
from benchmarks.measure import Measure, Turn, cost_of, in_turns, peer_process, timed
from benchmarks.products import bare_step, products_of_a_step
from carryscope.task.columns import Columns
from carryscope.training.data import training_batch
from carryscope.training.loop import held_out_loss, train
from carryscope.training.losses import step_record
from carryscope.training.presets import run_config
from carryscope.training.trainer import Trainer

TURN = 8
"""Steps in one turn."""

LOOK_EVERY = 25
"""Steps between looks at the held-out loss, in the second half of a training."""

PAPER_STEPS = 5000
"""The length of the paper's training."""

MARKS = {0.016: "where the authors' notebook ends", 0.009: "printed in the paper"}
"""Losses to reach: the mean training loss of the notebook's last 100 steps, and the paper's."""

SHARE = 0.1
"""The target for the time to each mark, as a share of TransformerLens' 5,000 steps."""

GIGABYTES = {"paper-5": 1.0, "paper-15": 2.0}
"""The targets for the peak memory of training."""


def training_speed(python: Path, *, seeds: int, rounds: int) -> Iterator[Measure]:
    """Steps in turns, then whole trainings with turns of TransformerLens in between."""
    with peer_process(python, peer_steps.__file__, torch.get_num_threads()) as ask:

        def peer() -> float:
            return float(ask(str(TURN))) / TURN

        seconds = step_seconds(peer, rounds)
        yield from step_rows(seconds, f"{rounds} turns of {TURN} steps")
        reached, peer_step = [], [seconds["TransformerLens"]]
        for seed in range(seeds):
            reached.append(seconds_to_marks(seed))
            peer_step.append(peer())
    yield from mark_rows(reached, PAPER_STEPS * fmean(peer_step))


def step_seconds(peer: Turn, rounds: int) -> dict[str, float]:
    """Seconds of a paper-5 step: on TransformerLens, ours, its bare products, its recording."""
    trainer = Trainer(run_config("paper-5", {}))
    products = products_of_a_step(trainer.model.config, trainer.recipe.batch)
    bare = bare_step(products, torch.Generator().manual_seed(0))
    questions = training_batch(trainer.recipe, trainer.model.config.digits, 0)
    losses = np.random.default_rng(0).random((len(questions), 6))
    encode = msgspec.json.Encoder().encode
    turns = {
        "TransformerLens": peer,
        "carryscope": timed(trainer.advance, repeat=TURN),
        "bare": timed(bare, repeat=TURN),
        "recording": timed(
            lambda: encode(step_record(1, losses, Columns.of(questions))), repeat=TURN
        ),
    }
    return in_turns(turns, rounds)


def step_rows(seconds: dict[str, float], how: str) -> Iterator[Measure]:
    """The ratios, and the milliseconds behind them."""
    ours, peer = seconds["carryscope"], seconds["TransformerLens"]
    name = "training steps per second, TransformerLens = 1"
    yield Measure(name=name, value=peer / ours, unit="x", at_least=4, how=how)
    name = "training step, its bare matrix products = 1"
    yield Measure(name=name, value=ours / seconds["bare"], unit="x", at_most=1.4, how=how)
    name = "recording a step, share of its time"
    yield Measure(name=name, value=seconds["recording"] / ours, at_most=0.05, how=how)
    yield Measure(name="training step of paper-5", value=1e3 * ours, unit="ms", how=how)
    name = "training step of paper-5 on TransformerLens"
    yield Measure(name=name, value=1e3 * peer, unit="ms", how=how)


def seconds_to_marks(seed: int, *, preset: str = "fast-5") -> dict[float, float]:
    """Train a preset from one seed; seconds of training until the held-out loss met each mark."""
    trainer = Trainer(run_config(preset, {"seed": seed}))
    reached, seconds = dict.fromkeys(MARKS, float("inf")), 0.0
    while trainer.step < trainer.recipe.steps:
        began = time.perf_counter()
        trainer.advance()
        seconds += time.perf_counter() - began
        late = trainer.step % LOOK_EVERY == 0 and trainer.step > 0.5 * trainer.recipe.steps
        if late or trainer.step == trainer.recipe.steps:
            loss = held_out_loss(trainer)
            reached |= {mark: min(at, seconds) for mark, at in reached.items() if loss <= mark}
    return reached


def mark_rows(reached: list[dict[float, float]], paper_seconds: float) -> Iterator[Measure]:
    """The worst seed as a share of TransformerLens' 5,000 steps, and the median in seconds."""
    seeds = f"{len(reached)} seeds"
    for mark, about in MARKS.items():
        seconds = [one[mark] for one in reached]
        yield Measure(
            name=f"fast-5 to held-out loss {mark} ({about}), 5,000 steps on TransformerLens = 1",
            value=max(seconds) / paper_seconds,
            at_most=SHARE,
            how=f"worst of {seeds}",
        )
        name, middle = f"fast-5 to held-out loss {mark}", median(seconds)
        yield Measure(name=name, value=middle, unit="s", how=f"median of {seeds}")


def train_briefly(preset: str, steps: str = "30") -> None:
    """Train a preset for a few steps, in a directory that is then removed."""
    with tempfile.TemporaryDirectory() as directory:
        train(run_config(preset, {"steps": int(steps)}), Path(directory) / "run")


def training_memory() -> Iterator[Measure]:
    """The most memory that training takes."""
    for preset, limit in GIGABYTES.items():
        cost = cost_of(__name__, train_briefly.__name__, preset)
        name, how = f"peak memory of training {preset}", "30 steps in a fresh process"
        yield Measure(name=name, value=cost.gigabytes, unit="GB", at_most=limit, how=how)
