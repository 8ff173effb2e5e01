"""The models of the paper and the study of the MLP, made side by side.

In: a plan. Out: runs, each with its findings and its report. Like a sweep it can be stopped or
killed anywhere, and goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from carryscope.reproduction.exam import examine
from carryscope.reproduction.mlp.study import mlp_study
from carryscope.reproduction.mlp.variants import VARIANTS
from carryscope.reproduction.plan import (
    BEGINNING,
    MLP_STUDY,
    MLP_STUDY_STEPS,
    STUDIED,
    Planned,
    handed_on,
    recipe,
    stages_left,
)
from carryscope.reproduction.pool import Outcome
from carryscope.reproduction.side_by_side import Progress, side_by_side, stop_sign
from carryscope.reproduction.stages import Sign, bring_to_end, stage, trained
from carryscope.storage import only_writer
from carryscope.training.longer import hand_on

Chain = tuple[str, ...]
"""Models that are made one after the other by the same worker: each takes something over from
the one before."""


def reproduce(
    planned: Sequence[Planned],
    runs: Path,
    *,
    quick: bool,
    workers: int,
    threads: int,
    on_progress: Callable[[Progress[str, None]], bool | None] = lambda _: None,
) -> Mapping[str, str]:
    """Do what is left of a plan, what takes longest first; which models failed, and why.

    `on_progress` hears about every second how far things are, and may stop it by returning True.
    """
    calls = {
        chain: partial(_go_through, chain, runs.absolute(), quick, threads, stop_sign(runs))
        for chain in queue(planned)
    }
    with only_writer(runs):
        outcome = side_by_side(
            calls,
            runs,
            workers=workers,
            threads=threads,
            what="models",
            progress=partial(progress, runs, list(calls)),
            on_progress=on_progress,
        )
    return progress(runs, list(calls), outcome).failed


def queue(planned: Sequence[Planned]) -> list[Chain]:
    """What is left, longest first, so that no worker is idle at the end.

    The study of the MLP comes after its base, and the base after the model it begins with.
    """
    minutes = {one.name: one.minutes for one in planned if one.left}
    begins = handed_on({one.name: one.left for one in planned})
    wanted = [BEGINNING] * begins + [STUDIED, MLP_STUDY]
    linked = [name for name in wanted if name in minutes] if STUDIED in minutes else []
    chains = [tuple(linked)] * bool(linked) + [(name,) for name in minutes if name not in linked]
    return sorted(chains, key=lambda chain: -sum(minutes[name] for name in chain))


def minutes_together(planned: Sequence[Planned], workers: int) -> float:
    """How long a plan takes: whoever is free takes the first of the queue."""
    minutes = {one.name: one.minutes for one in planned}
    busy = [0.0] * workers
    for chain in queue(planned):
        first_free = busy.index(min(busy))
        busy[first_free] += sum(minutes[name] for name in chain)
    return max(busy)


def progress(
    runs: Path, chains: Sequence[Chain], outcome: Outcome[Chain, None]
) -> Progress[str, None]:
    """How far the models are, by what stands in their directories."""
    left = {chain: [n for n in chain if stages_left(n, runs)] for chain in chains}
    done = [n for c in chains for n in c if c in outcome.done or n not in left[c]]
    # A chain can fail with nothing left to make: when what is there was started differently.
    at = {chain: (left[chain] or chain)[0] for chain in chains}
    failed = {at[chain]: reason for chain, reason in outcome.failed.items()}
    return Progress(
        sum(map(len, chains)),
        {name: None for name in done if name not in failed},
        failed,
        {at[chain]: _stage(runs, at[chain]) for chain in outcome.running.values()},
    )


def _stage(runs: Path, name: str) -> str:
    """What a model is at; of the study, the variant that is being trained."""
    if name != MLP_STUDY:
        return stage(runs / name)
    first = stages_left(MLP_STUDY, runs)[:1]
    training = [variant.name for variant in VARIANTS if variant.name in first]
    return f"({training[0]}) {stage(runs / MLP_STUDY / training[0])}" if training else "asking"


def _go_through(chain: Chain, runs: Path, quick: bool, threads: int, stop: Path) -> None:
    """All stages of each model in turn, and the study; those that are done answer at once."""
    sign = Sign(stop)
    for name in chain:
        if name == MLP_STUDY:
            _study_mlp(runs, quick, threads, sign)
            continue
        if name == BEGINNING and STUDIED in chain:
            _train_beginning(runs, quick, threads, sign)
        run = bring_to_end(recipe(name, quick=quick), runs / name, threads=threads, sign=sign)
        examine(run)
        run.report()


def _train_beginning(runs: Path, quick: bool, threads: int, sign: Sign) -> None:
    """Train the model whose steps are the first of the studied one's, and hand them on."""
    longer = partial(hand_on, runs / BEGINNING, recipe(STUDIED, quick=quick), runs / STUDIED)
    shorter = recipe(BEGINNING, quick=quick)
    trained(shorter, runs / BEGINNING, threads=threads, sign=sign, on_last_step=longer)


def _study_mlp(runs: Path, quick: bool, threads: int, sign: Sign) -> None:
    """The study of the MLP; its base is trained first, if it is not yet."""
    base = trained(recipe(STUDIED, quick=quick), runs / STUDIED, threads=threads, sign=sign)
    steps = recipe(MLP_STUDY_STEPS, quick=quick).training
    assert steps is not None
    mlp_study(base, runs / MLP_STUDY, steps=steps.steps, threads=threads, should_stop=sign)
