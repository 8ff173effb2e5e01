"""The models of the paper and the study of the MLP, made side by side.

In: a plan. Out: runs, each with its findings and its report. Like a sweep it can be stopped or
killed anywhere, and goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from carryscope.reproduction.exam import examine
from carryscope.reproduction.mlp.study import mlp_study
from carryscope.reproduction.mlp.variants import VARIANTS
from carryscope.reproduction.plan import MLP_STUDY, MODELS, Planned
from carryscope.reproduction.pool import Outcome
from carryscope.reproduction.side_by_side import Progress, side_by_side, stop_sign
from carryscope.reproduction.stages import Sign, bring_to_end, in_turn, stage, trained
from carryscope.reproduction.tries import is_stuck, put_aside, recipe
from carryscope.runs import Run
from carryscope.storage import LOCK_FILE, only_writer
from carryscope.training.summary import FINDING_FILE


def reproduce(
    planned: Sequence[Planned],
    runs: Path,
    *,
    quick: bool,
    workers: int,
    threads: int,
    on_progress: Callable[[Progress[str, None]], bool | None] = lambda _: None,
) -> Outcome[str, None]:
    """Do what is left of a plan, what takes longest first, so that no worker is idle at the end.

    `on_progress` hears about every second how far things are, and may stop it by returning True.
    """
    left = sorted((one for one in planned if one.left), key=lambda one: -one.minutes)
    calls = {
        one.name: partial(
            _study_mlp if one.name == MLP_STUDY else _go_through,
            one.name,
            runs.absolute(),
            quick,
            threads,
            stop_sign(runs),
        )
        for one in left
    }
    with only_writer(runs):
        return side_by_side(
            calls,
            runs,
            workers=workers,
            threads=threads,
            what="models",
            stage=lambda name: _stage(runs, name),
            on_progress=on_progress,
        )


def _go_through(name: str, runs: Path, quick: bool, threads: int, stop: Path) -> None:
    """All stages of one model; those that are done answer at once."""
    sign = Sign(stop)
    run = _trained(name, runs, quick, threads, sign)
    bring_to_end(run.config, run.directory, threads=threads, sign=sign)
    examine(run)
    run.report()


def _study_mlp(name: str, runs: Path, quick: bool, threads: int, stop: Path) -> None:
    """The study of the first model's MLP; that model is trained first, if it is not yet."""
    sign = Sign(stop)
    base = _trained(MODELS[0], runs, quick, threads, sign)
    mlp_study(base, runs / name, threads=threads, should_stop=sign)


def _trained(name: str, runs: Path, quick: bool, threads: int, sign: Sign) -> Run:
    """A model, trained; a training that got stuck is put aside for one with the next seed.

    The study of the MLP and its base both come here: one waits for the other.
    """
    with in_turn(runs / f".{name}{LOCK_FILE}", sign):
        while True:
            config = recipe(name, runs, quick=quick)
            run = trained(config, runs / name, threads=threads, sign=sign)
            if not is_stuck(name, runs, quick=quick):
                return run
            put_aside(name, runs, *([MLP_STUDY] if name == MODELS[0] else []))


def _stage(runs: Path, name: str) -> str:
    """What a model is at; of the study, the variant that is being trained."""
    if name != MLP_STUDY:
        return stage(runs / name)
    for variant in VARIANTS:
        if not (runs / name / variant.name / FINDING_FILE).exists():
            return f"{variant.name} {stage(runs / name / variant.name)}"
    return "asking"
