"""The models of the paper and the study of the MLP, made side by side.

In: a plan. Out: runs, each with its findings and its report, and the record of the study. It can be
stopped or killed anywhere; the same call continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from carryscope.core.progress import Progress, silent
from carryscope.core.storage import write_json
from carryscope.run import Run
from carryscope.sweeps.running import brought_to_end, side_by_side
from carryscope.training.config import RunConfig
from carryscope.training.loop import is_finished
from paper.exam import examined
from paper.mlp.study import STUDY_FILE, base_subject, mlp_study, variant_subject
from paper.mlp.variants import VARIANTS
from paper.models import MLP_STUDY, MLP_STUDY_STEPS, STUDIED, recipe, steps_of
from paper.plan import Planned, in_order


def reproduce(
    planned: Sequence[Planned],
    runs: Path,
    *,
    quick: bool,
    workers: int,
    threads: int,
    progress: Progress = silent,
) -> dict[str, str]:
    """Do what is left of a plan. Returns what failed, with the reason."""
    crew = partial(side_by_side, workers=workers, threads=threads, progress=progress)
    jobs = {
        one.name: partial(study_model, recipe(one.name, quick=quick)) for one in in_order(planned)
    }
    failed = crew(jobs, runs, unit="models").failed
    if not any(one.name == MLP_STUDY and one.left for one in planned):
        return failed
    if not is_finished(runs / STUDIED):
        return failed | {MLP_STUDY: f"It needs {STUDIED}."}
    steps = steps_of(MLP_STUDY_STEPS, quick=quick)
    base, where = Run(runs / STUDIED), runs / MLP_STUDY
    first = base_subject(base, steps)
    loss = first.held_out_loss.estimate
    variants = {
        v.name: partial(variant_subject, v, base.directory.absolute(), loss, steps)
        for v in VARIANTS
    }
    outcome = crew(variants, where, unit="variants")
    if not outcome.failed:
        subjects = [first, *(outcome.done[variant.name] for variant in VARIANTS)]
        write_json(where / STUDY_FILE, mlp_study(base, subjects))
    return failed | {f"{MLP_STUDY}/{name}": why for name, why in outcome.failed.items()}


def study_model(config: RunConfig, directory: Path, threads: int, progress: Progress) -> None:
    """All stages of one model, its exam and its report. Finished stages are not repeated."""
    run = brought_to_end(config, directory, threads=threads, progress=progress)
    examined(run)
    run.report(progress=progress)
