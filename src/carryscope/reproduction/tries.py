"""Which training of a recipe counts: one that got stuck is put aside, and the next seed tried.

In: the runs of a reproduction. Out: the recipe to train, and the trainings that were given up.

The paper shows one model of each recipe and calls each successfully trained. Whether a training
gets over its last plateau within its steps is a matter of the seed; what the paper says of its
models is asked of one that did. Those that did not are kept, and told with every final loss; how
often it happens, a sweep over seeds tells, which leaves none out.
"""

from __future__ import annotations

from pathlib import Path

from carryscope.storage import read_json
from carryscope.training.config import RunConfig
from carryscope.training.presets import run_config
from carryscope.training.summary import FINDING_FILE, TrainingSummary

SUCCESS = 0.0315
"""The largest final loss of a model that the paper calls successfully trained, 0.031 for 15
digits, to the last digit that it prints. A held-out loss surely above it means stuck."""

SEEDS_TRIED = 3
"""Seeds that are tried; the last one counts, whatever it comes to."""

QUICK = 10
"""A quick reproduction makes one step in so many, and takes whatever comes of it."""

STUCK = "stuck"
"""Where trainings are put aside, among the runs."""


def recipe(name: str, runs: Path, *, quick: bool) -> RunConfig:
    """How a model is to be trained: with the preset's seed, or the next that was not tried."""
    config = run_config(name, {})
    assert config.training is not None
    steps, seed = config.training.steps, config.training.seed
    if quick:
        return run_config(name, {"steps": -(-steps // QUICK)})
    return run_config(name, {"seed": seed + len(_aside(name, runs))})


def is_stuck(name: str, runs: Path, *, quick: bool) -> bool:
    """Whether the training that is there is to be given up."""
    path = runs / name / FINDING_FILE
    if quick or not path.exists() or len(_aside(name, runs)) >= SEEDS_TRIED - 1:
        return False
    return read_json(path, TrainingSummary).held_out_loss.low > SUCCESS


def put_aside(name: str, runs: Path, *studies: str) -> None:
    """Make room for the next seed; studies of the model go with it."""
    seed = read_json(runs / name / FINDING_FILE, TrainingSummary).seed
    (runs / STUCK).mkdir(exist_ok=True)
    for moved in (*studies, name):
        if (runs / moved).exists():
            (runs / moved).replace(runs / STUCK / f"{moved}-seed-{seed}")


def given_up(name: str, runs: Path) -> list[TrainingSummary]:
    """What the trainings came to that were put aside, in the order in which they were tried."""
    return [read_json(path / FINDING_FILE, TrainingSummary) for path in _aside(name, runs)]


def _aside(name: str, runs: Path) -> list[Path]:
    return sorted((runs / STUCK).glob(f"{name}-seed-*"))
