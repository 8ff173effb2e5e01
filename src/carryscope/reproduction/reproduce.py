"""The models of the paper and the study of the MLP, made side by side.

In: a plan. Out: runs, each with its findings and its report. Like a sweep it can be stopped or
killed anywhere, and goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from carryscope.report.page.page import REPORT_FILE
from carryscope.reproduction.exam import examine
from carryscope.reproduction.mlp.study import mlp_study
from carryscope.reproduction.mlp.variants import VARIANTS
from carryscope.reproduction.plan import (
    MLP_STUDY,
    MLP_STUDY_STEPS,
    STUDIED,
    Planned,
    recipe,
)
from carryscope.reproduction.pool import Outcome
from carryscope.reproduction.side_by_side import Progress, side_by_side, stop_sign
from carryscope.reproduction.stages import Sign, bring_to_end, stage, trained
from carryscope.storage import only_writer
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
    calls = {
        name: partial(_go_through, tasks, runs.absolute(), quick, threads, stop_sign(runs))
        for name, tasks in queue(planned)
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


def queue(planned: Sequence[Planned]) -> list[tuple[str, list[str]]]:
    """What is left, longest first; the study of the MLP comes after its base, by the same hands."""
    minutes = {one.name: one.minutes for one in planned if one.left}
    chains = {name: [name] for name in minutes}
    if STUDIED in chains and MLP_STUDY in chains:
        chains[STUDIED] += chains.pop(MLP_STUDY)
    return sorted(chains.items(), key=lambda chain: -sum(minutes[name] for name in chain[1]))


def _go_through(names: list[str], runs: Path, quick: bool, threads: int, stop: Path) -> None:
    """All stages of a model, or the study; those that are done answer at once."""
    sign = Sign(stop)
    for name in names:
        if name == MLP_STUDY:
            _study_mlp(runs, quick, threads, sign)
        else:
            config = recipe(name, quick=quick)
            run = bring_to_end(config, runs / name, threads=threads, sign=sign)
            examine(run)
            run.report()


def _study_mlp(runs: Path, quick: bool, threads: int, sign: Sign) -> None:
    """The study of the MLP; its base is trained first, if it is not yet."""
    base = trained(recipe(STUDIED, quick=quick), runs / STUDIED, threads=threads, sign=sign)
    steps = recipe(MLP_STUDY_STEPS, quick=quick).training
    assert steps is not None
    mlp_study(base, runs / MLP_STUDY, steps=steps.steps, threads=threads, should_stop=sign)


def _stage(runs: Path, name: str) -> str:
    """What a model is at; of the study, the variant that is being trained."""
    report = runs / name / REPORT_FILE
    if name != MLP_STUDY and not (name == STUDIED and report.exists()):
        return stage(runs / name)
    for variant in VARIANTS:
        if not (runs / MLP_STUDY / variant.name / FINDING_FILE).exists():
            return f"({variant.name}) {stage(runs / MLP_STUDY / variant.name)}"
    return "asking"
