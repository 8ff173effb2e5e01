"""Training steps against TransformerLens, against bare products and on a busy machine.

All times are medians of turns, taken in one run. What follows from them is computed from them: the
time to a loss is the number of steps it takes, which the seed decides, times the time of a step.
A step cannot be faster than its bare matrix products. How near it comes is a measure of its
overhead.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import carryscope
from benchmarks.measure import Measure, Turn, in_turns, timed
from benchmarks.other_side import peer_process
from carryscope.model.prediction import predict
from carryscope.task.questions import Questions
from carryscope.training.data import held_out_questions
from carryscope.training.presets import run_config
from carryscope.training.trainer import Trainer

TURN = 8
"""Steps in one turn."""

ROUNDS = 20

LOOK_EVERY = 25
"""Steps between looks at the held-out loss, in the second half of a training."""

PAPER_STEPS = 5000
"""The length of the paper's training."""

MARKS = {0.016: "where the authors' notebook ends", 0.009: "printed in the paper"}
"""Losses to reach: the mean training loss of the notebook's last 100 steps, and the paper's."""

SHARE = 0.1
"""The target for the time to each mark, as a share of TransformerLens' 5,000 steps."""

BUSY = 2
"""Other processes that are busy in a turn on a busy machine."""


def training_speed(python: Path, seeds: int) -> Iterator[Measure]:
    """All contestants in turns, then the steps that each seed takes to each mark."""
    model, one = carryscope.load().model(), Questions.from_integers([(0, 0)], 5)
    with peer_process(python, model, one) as ask, busy_processes(BUSY) as others:
        turns = contestants(lambda: ask(f"step {TURN}").seconds / TURN, others)
        seconds = in_turns(turns, ROUNDS)
    yield from step_rows(seconds)
    yield from mark_rows([steps_to_marks(seed) for seed in range(seeds)], seconds)


def contestants(peer: Turn, others: Callable[[signal.Signals], None]) -> dict[str, Turn]:
    """Turns of a step: on TransformerLens, ours, its bare products, ours beside busy processes."""
    paper, fast = Trainer(run_config("paper-5", {})), Trainer(run_config("fast-5", {}))
    step = timed(paper.advance, repeat=TURN)

    def on_a_busy_machine() -> float:
        others(signal.SIGCONT)
        try:
            return step()
        finally:
            others(signal.SIGSTOP)

    def over_all_batches() -> None:
        """Steps spread over a training whose batches grow."""
        for k in range(TURN):
            fast.step = (2 * k + 1) * fast.recipe.steps // (2 * TURN)
            fast.advance()

    return {
        "TransformerLens": peer,
        "paper-5": step,
        "bare": timed(bare_step(paper), repeat=TURN),
        "busy": on_a_busy_machine,
        "fast-5": timed(over_all_batches, items=TURN),
    }


@contextmanager
def busy_processes(count: int) -> Iterator[Callable[[signal.Signals], None]]:
    """A function that lets so many busy processes go on, or stops them."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(count)]

    def all_of_them(sign: signal.Signals) -> None:
        for process in processes:
            process.send_signal(sign)

    try:
        all_of_them(signal.SIGSTOP)
        yield all_of_them
    finally:
        all_of_them(signal.SIGKILL)
        for process in processes:
            process.wait()


def step_rows(seconds: dict[str, float]) -> Iterator[Measure]:
    """The milliseconds of a step, and their ratios."""
    how, ours = f"median of {ROUNDS} turns of {TURN} steps", seconds["paper-5"]
    names = {
        "training step of paper-5": "paper-5",
        "training step of paper-5 on TransformerLens": "TransformerLens",
        "training step of fast-5, averaged over its batches": "fast-5",
    }
    for name, key in names.items():
        yield Measure(name=name, value=1e3 * seconds[key], unit="ms", how=how)
    ratio = seconds["TransformerLens"] / ours
    name = "training steps per second, TransformerLens = 1"
    yield Measure(name=name, value=ratio, unit="x", at_least=4, how=how)
    name = "training step, its bare matrix products = 1"
    yield Measure(name=name, value=ours / seconds["bare"], unit="x", at_most=1.4, how=how)
    name = f"training step beside {BUSY} busy processes, alone = 1"
    yield Measure(name=name, value=seconds["busy"] / ours, unit="x", at_most=3, how=how)


def steps_to_marks(seed: int, *, preset: str = "fast-5") -> dict[float, float]:
    """Train a preset from one seed; the steps until the held-out loss met each mark."""
    trainer = Trainer(run_config(preset, {"seed": seed}))
    reached = dict.fromkeys(MARKS, float("inf"))
    while trainer.step < trainer.recipe.steps:
        trainer.advance()
        late = trainer.step % LOOK_EVERY == 0 and trainer.step > 0.5 * trainer.recipe.steps
        if late or trainer.step == trainer.recipe.steps:
            questions = held_out_questions(trainer.model.config.digits)
            loss = predict(trainer.model, questions, free_running=False).loss.mean()
            reached |= {m: min(at, trainer.step) for m, at in reached.items() if loss <= m}
    return reached


def mark_rows(reached: list[dict[float, float]], seconds: dict[str, float]) -> Iterator[Measure]:
    """Steps to each mark, and what they take: in seconds, and next to TransformerLens."""
    for mark, about in MARKS.items():
        steps = [one[mark] for one in reached]
        name, how = f"fast-5 to held-out loss {mark}", f"worst of {len(reached)} seeds"
        yield Measure(name=f"{name} ({about}), steps", value=max(steps), how=how)
        took = f"those steps of {1e3 * seconds['fast-5']:.3g} ms"
        yield Measure(name=name, value=max(steps) * seconds["fast-5"], unit="s", how=took)
        share = max(steps) * seconds["fast-5"] / (PAPER_STEPS * seconds["TransformerLens"])
        name = f"{name}, {PAPER_STEPS:,} steps on TransformerLens = 1"
        yield Measure(name=name, value=share, at_most=SHARE, how=took)


aten = torch.ops.aten
FACTORS = {aten.mm.default: 0, aten.bmm.default: 0, aten.addmm.default: 1, aten.baddbmm.default: 1}
"""Every operation that multiplies matrices, and which of its arguments is the left factor."""


class _Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Writes down the factors of every matrix product."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[tuple[Tensor, Tensor, Tensor]] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        out = function(*args, **(kwargs or {}))
        if function in FACTORS:
            left, right = args[FACTORS[function] :][:2]
            self.found.append((left.clone(), right.clone(), torch.empty_like(out)))
        return out


def bare_step(trainer: Trainer) -> Callable[[], None]:
    """Make one step, and return a function that does its matrix products again."""
    with _Products() as products:
        trainer.advance()

    def step() -> None:
        for left, right, out in products.found:
            torch.matmul(left, right, out=out)

    return step
