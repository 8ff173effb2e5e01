"""Why cascades fail. Heads times data times seeds: which of the two removes which failures?

In: a directory for the runs. Out: a `WhyRecord` for every model: what its heads read and which
digits are wrong. The prediction, fixed before any of these models was trained: a digit fails at a
look-ahead exactly where no head reads the column that decides its carry.

    heads   1 to 6
    data    uniform; the paper's rule; cascades (each question draws its share of nines)
    seeds   3 of each

The same is measured for the shipped models and for two draws of the paper's recipe: the authors'
own, whose heads read three columns, and one whose heads read two.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path

import msgspec
from msgspec.structs import replace

from carryscope.api import load
from carryscope.core.machine import machine
from carryscope.core.progress import Progress
from carryscope.model.config import ModelConfig
from carryscope.run import Run
from carryscope.stages import RISK
from carryscope.sweeps.running import Job, trained
from carryscope.training.config import RunConfig, TrainingConfig
from carryscope.training.presets import run_config
from carryscope.verification.estimate import Rate
from carryscope.verification.risk import RiskFinding
from carryscope.verification.sight import SightFinding, study_sight
from paper.study import Jobs

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

SHIPPED = ("fast-5", "exact-5")

PAPER_SEEDS = (129000, 201)
"""Draws of paper-5: the authors' own, and the first fresh one."""

TESTED = 200_000
"""Questions that each model is tested on, at most."""


class WhyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One trained model."""

    heads: int
    data: str
    """A key of `DATA`; for another recipe, its name."""
    seed: int
    weights_sha256: str
    machine: str
    wrong: Rate
    """Wrong answers over all questions."""
    tested: int
    sight: SightFinding


def cell_config(heads: int, data: str, seed: int) -> RunConfig:
    """The recipe of one cell."""
    model = ModelConfig(heads=heads, d_model=96, d_head=32, d_mlp=384)
    return RunConfig(model=model, training=replace(RECIPE, seed=seed, **DATA[data]))


def jobs(runs: Path) -> list[Jobs]:
    """All models, side by side."""
    every: dict[str, Job[WhyRecord]] = {
        f"heads-{heads}-{data.split()[-1]}-{seed}": partial(
            study_model, data, cell_config(heads, data, seed)
        )
        for seed, data, heads in product(SEEDS, DATA, HEADS)
    }
    every |= {name: partial(study_shipped, name) for name in SHIPPED}
    for seed in PAPER_SEEDS:
        config = run_config("paper-5", {"seed": seed})
        every[f"paper-5-{seed}"] = partial(study_model, "paper-5", config)
    return [every]


def study_model(
    data: str, config: RunConfig, directory: Path, threads: int, progress: Progress
) -> WhyRecord:
    """Train one model and measure it."""
    run = trained(config, directory, threads=threads, progress=progress)
    return _measured(run, data, run.risk(budget=TESTED, progress=progress))


def study_shipped(name: str, directory: Path, threads: int, progress: Progress) -> WhyRecord:
    """Measure a shipped model, whose risk is known."""
    run = load(name)
    return _measured(run, name, run.there(RISK))


def _measured(run: Run, data: str, risk: RiskFinding) -> WhyRecord:
    training = run.config.training
    assert training is not None
    return WhyRecord(
        heads=run.config.model.heads,
        data=data,
        seed=training.seed,
        weights_sha256=run.weights_sha256,
        machine=machine(),
        wrong=risk.teacher_forced,
        tested=risk.evaluated,
        sight=study_sight(run.model()),
    )
