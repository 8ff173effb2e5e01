"""The models of the paper and the study of the MLP, made side by side.

In: a plan. Out: runs, each with its findings and its report. Like a sweep it can be stopped or
killed anywhere, and goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from carryscope.core.errors import CallError, WorkError
from carryscope.core.storage import only_writer
from carryscope.core.workers import Outcome
from carryscope.sweep.side_by_side import Progress, side_by_side, stop_sign
from carryscope.sweep.stages import Sign, bring_to_end, stage, trained
from carryscope.training.longer import hand_on
from paper.exam import examine
from paper.mlp.study import mlp_study
from paper.plan import (
    ASKING,
    BEGINNING,
    MLP_STUDY,
    MLP_STUDY_STEPS,
    STUDIED,
    Planned,
    handed_on,
    recipe,
    stages_left,
)

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
) -> Progress[str, None]:
    """Do what is left of a plan, what takes longest first; what came of each model.

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
    return progress(runs, list(calls), outcome)


def queue(planned: Sequence[Planned]) -> list[Chain]:
    """What is left, longest first, so that no worker is idle at the end.

    The study of the MLP comes after its base, and the base after the model it begins with.
    """
    minutes = {one.name: one.minutes for one in planned if one.left}
    linked = _linked({one.name: one.left for one in planned if one.left})
    chains = [linked] if linked else []
    chains += [(name,) for name in minutes if name not in linked]
    return sorted(chains, key=lambda chain: sum(minutes[name] for name in chain), reverse=True)


def _linked(left: Mapping[str, Sequence[str]]) -> Chain:
    """The studied model, what it begins with and what needs it; nothing if it is done."""
    if STUDIED not in left:
        return ()
    before = (BEGINNING,) if handed_on(left) else ()
    after = (MLP_STUDY,) if MLP_STUDY in left else ()
    return (*before, STUDIED, *after)


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
    done: list[str] = []
    failed: dict[str, str] = {}
    not_begun: dict[str, str] = {}
    running: dict[str, str] = {}
    for chain in chains:
        left = [] if chain in outcome.done else _left(chain, runs)
        done += [name for name in chain if name not in left]
        if chain in outcome.failed:
            failed[left[0]] = outcome.failed[chain]
            not_begun |= dict.fromkeys(left[1:], f"it needs {left[0]}")
        elif chain in outcome.running.values():
            running[left[0]] = _stage(runs, left[0])
    of = sum(len(chain) for chain in chains)
    return Progress(of, dict.fromkeys(done), failed, running, not_begun)


def _left(chain: Chain, runs: Path) -> list[str]:
    """The models of a chain that are still to be made, first the one that it is at."""
    # Of a chain that is not over, the last model is, even if all its files are there.
    return [name for name in chain if stages_left(name, runs)] or [chain[-1]]


def _stage(runs: Path, name: str) -> str:
    """What a model is at; of the study, the model that is being trained."""
    if name != MLP_STUDY:
        return stage(runs / name)
    trained = next(iter(stages_left(MLP_STUDY, runs)), ASKING)
    if trained == ASKING:
        return "asking"
    run = runs / STUDIED if trained == STUDIED else runs / MLP_STUDY / trained
    return f"({trained}) {stage(run)}"


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

    def hand_over() -> None:
        # What is wrong with the studied run is told when its turn comes: it costs no other model.
        with suppress(CallError, WorkError):
            hand_on(runs / BEGINNING, recipe(STUDIED, quick=quick), runs / STUDIED)

    shorter = recipe(BEGINNING, quick=quick)
    trained(shorter, runs / BEGINNING, threads=threads, sign=sign, on_last_step=hand_over)


def _study_mlp(runs: Path, quick: bool, threads: int, sign: Sign) -> None:
    """The study of the MLP; its base is trained first, if it is not yet."""
    base = trained(recipe(STUDIED, quick=quick), runs / STUDIED, threads=threads, sign=sign)
    steps = recipe(MLP_STUDY_STEPS, quick=quick).training
    assert steps is not None
    mlp_study(base, runs / MLP_STUDY, steps=steps.steps, threads=threads, should_stop=sign)
