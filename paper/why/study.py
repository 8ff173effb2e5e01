"""Heads times data times seeds: which of the two removes which failures?

In: a directory for the runs. Out: `WhyStudy`: for every cell what the heads read and which digits
are wrong. The prediction, fixed before any of these models was trained: a digit fails at a
look-ahead exactly where no head reads the column that decides its carry.

    heads   1 to 6
    data    uniform; the paper's rule; cascades (each question draws its share of nines)
    seeds   3 of each
"""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path

import msgspec
from msgspec.structs import replace

from carryscope.core.machine import machine
from carryscope.core.progress import Progress, silent
from carryscope.model.config import ModelConfig
from carryscope.run import Run
from carryscope.sweeps.running import side_by_side
from carryscope.training.config import RunConfig, TrainingConfig
from carryscope.training.loop import train
from carryscope.verification.estimate import Rate
from carryscope.verification.sight import SightFinding, study_sight

HEADS, SEEDS = range(1, 7), range(3)

DATA = {
    "uniform": {"enriched_batches": 0.0, "nines": 0.0},
    "the paper's": {"nines": 0.0},
    "cascades": {"nines": 1.0},
}
"""What the models are trained on, and the fields of the recipe that say so."""

RECIPE = TrainingConfig(
    steps=4000,
    batch=192,
    learning_rate=2.5e-3,
    weight_decay=0.01,
    warmup=100,
    schedule="linear",
    clip=1.0,
    init_std=0.05,
    embedding_std=0.2,
    attention_std=0.01,
    head_delay=150,
    paper_tail=0.0,
)
"""Short, so that 54 models take about an hour of one core. Five heads trained on cascades like this
can be right on every question."""


TESTED = 200_000
"""Questions that each model is tested on, at most."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One trained model."""

    heads: int
    data: str
    seed: int
    weights_sha256: str
    wrong: Rate
    """Wrong answers over all questions."""
    tested: int
    sight: SightFinding


class WhyStudy(msgspec.Struct, frozen=True, kw_only=True):
    """All cells of the study."""

    machine: str
    cells: list[Cell]


def cell_config(heads: int, data: str, seed: int) -> RunConfig:
    """The recipe of one cell."""
    model = ModelConfig(heads=heads, d_model=96, d_head=32, d_mlp=384)
    return RunConfig(model=model, training=replace(RECIPE, seed=seed, **DATA[data]))


def study_cell(
    config: RunConfig, data: str, directory: Path, threads: int, progress: Progress
) -> Cell:
    """Train one model and measure it, or read what was measured."""
    assert config.training is not None
    train(config, directory, threads=threads, progress=progress)
    run = Run(directory)
    risk = run.risk(budget=TESTED, progress=progress)
    return Cell(
        heads=config.model.heads,
        data=data,
        seed=config.training.seed,
        weights_sha256=run.weights_sha256,
        wrong=risk.teacher_forced,
        tested=risk.evaluated,
        sight=study_sight(run.model()),
    )


def study_why(
    directory: Path, *, workers: int | None = None, progress: Progress = silent
) -> WhyStudy:
    """Train and measure all models, side by side. A call that was stopped continues."""
    jobs = {
        f"heads-{heads}-{data.split()[-1]}-{seed}": partial(
            study_cell, cell_config(heads, data, seed), data
        )
        for seed, data, heads in product(SEEDS, DATA, HEADS)
    }
    outcome = side_by_side(jobs, directory, workers=workers, threads=1, progress=progress)
    cells = [outcome.done[name] for name in jobs if name in outcome.done]
    return WhyStudy(machine=machine(), cells=cells)
