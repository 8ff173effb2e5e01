"""All measures by name, and the judging of all claims.

In: runs by name; those that were not made are simply not there. Out: `Judged` claims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from carryscope.core.storage import read_json
from carryscope.stages import Run
from carryscope.sweep.finding import Sweep
from carryscope.training.checkpoint import METRICS_FILE
from carryscope.training.presets import changes
from paper.claims import (
    algorithm,
    attention,
    carries,
    framework,
    heads,
    learning,
    rows,
    studies,
    training,
)
from paper.claims.claims import (
    Claim,
    Judged,
    RunBehind,
    Verdict,
    judged,
    load_claims,
)
from paper.claims.reading import Measure, NotMeasured, Studies, Study
from paper.exam import EXAM_FILE, ExamFinding
from paper.mlp.finding import MlpStudy
from paper.plan import BEGINNING, STUDIED

MEASURES: Mapping[str, Measure] = {
    measure.__name__: measure
    for measure in (
        training.final_loss,
        training.loss_per_digit,
        training.hardest_digit,
        training.units_are_cleanest,
        training.loss_per_task,
        training.task_mix,
        training.trains_well,
        training.no_memorisation,
        training.us9_struggles,
        training.longer_takes_longer,
        learning.semi_independent,
        learning.highest_first,
        learning.first_digits_learn_better,
        learning.uc1_lags,
        learning.three_phases,
        learning.top_column_is_lower,
        learning.us9_is_noisy,
        framework.task_order,
        framework.predictable_shares,
        rows.rows_unused,
        rows.row_losses,
        rows.one_row_before,
        rows.one_digit_per_row,
        rows.no_early_carry,
        rows.useful_positions,
        attention.staircase,
        attention.clearest_with_three,
        attention.two_heads_pack,
        attention.four_heads_split,
        attention.all_heads_useful,
        heads.base_add_head,
        heads.head_ranking,
        heads.head_tasks,
        heads.last_digits,
        carries.simple_us9_works,
        carries.cascades_fail,
        carries.nines_plus_one,
        carries.first_digits_differ,
        carries.more_compute_for_a4,
        algorithm.sixty_keys,
        algorithm.explains_everything,
        algorithm.same_algorithm,
        studies.same_across_seeds,
        studies.mlp_study,
        algorithm.printed_algorithm_adds,
        algorithm.no_cascade_at_digit_4,
    )
}
"""How each claim is measured, by the name in the claims file."""


def study_of(name: str, run: Run) -> Study:
    """A run as measures see it."""
    trained = (run.directory / METRICS_FILE).exists()
    metrics, sat = run.metrics if trained else tuple, run.directory / EXAM_FILE
    shelf, taken = run.shelf(), read_json(sat, ExamFinding) if sat.exists() else None
    of_it = taken is not None and taken.weights_sha256 == shelf.weights_sha256
    return Study(name, shelf, metrics, taken if of_it else None)


def judge(
    studies: Mapping[str, Study], *, mlp: MlpStudy | None = None, sweeps: Sequence[Sweep] = ()
) -> list[Judged]:
    """Every claim, judged by these studies."""
    return [judge_one(claim, studies, mlp=mlp, sweeps=sweeps) for claim in load_claims()]


def judge_one(
    claim: Claim,
    studies: Mapping[str, Study],
    *,
    mlp: MlpStudy | None = None,
    sweeps: Sequence[Sweep] = (),
) -> Judged:
    """One claim, judged by these studies, or why it cannot be."""
    found = _judged(claim, studies, mlp, sweeps)
    if not moved(claim) or BEGINNING not in studies:
        return found
    at_first = _judged(claim, {**studies, STUDIED: studies[BEGINNING]}, mlp, sweeps).verdict
    measured = at_first is not Verdict.UNMEASURED
    return msgspec.structs.replace(found, at_first=at_first if measured else None)


def moved(claim: Claim) -> bool:
    """Whether it was first to be asked of the beginning of the training it is asked of now."""
    return STUDIED in claim.runs and BEGINNING not in claim.runs and not claim.leaves_open


def _judged(
    claim: Claim, studies: Mapping[str, Study], mlp: MlpStudy | None, sweeps: Sequence[Sweep]
) -> Judged:
    behind = [_behind(studies[name]) for name in _names(claim, studies)]
    try:
        checks = MEASURES[claim.measure](claim, Studies(studies, mlp=mlp, sweeps=sweeps))
    except NotMeasured as missing:
        return Judged(
            claim=claim,
            verdict=Verdict.UNMEASURED,
            reason=f"Not measured: {missing.what}.",
            checks=[],
            runs=behind,
            command=missing.command,
        )
    return judged(claim, checks, behind)


def _names(claim: Claim, studies: Mapping[str, Study]) -> list[str]:
    """The runs of a claim that there are."""
    return [name for name in studies if name in claim.runs]


def _behind(study: Study) -> RunBehind:
    config, summary = study.shelf.config, study.shelf.training
    seed = config.training.seed if config.training else None
    return RunBehind(
        name=study.name,
        preset=config.preset,
        changes=changes(config),
        seed=seed,
        steps=summary.steps if summary else None,
        weights_sha256=study.shelf.weights_sha256,
    )
