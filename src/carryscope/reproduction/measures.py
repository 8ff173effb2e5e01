"""All measures by name, and the judging of all claims.

In: runs by name; those that were not made are simply not there. Out: `Judged` claims.
"""

from __future__ import annotations

from collections.abc import Mapping

from carryscope.reproduction import (
    measures_algorithm,
    measures_attention,
    measures_carries,
    measures_heads,
    measures_learning,
    measures_rows,
    measures_studies,
    measures_training,
)
from carryscope.reproduction.claims import (
    Claim,
    Judged,
    RunBehind,
    Verdict,
    judged,
    load_claims,
)
from carryscope.reproduction.measures_reading import Measure, NotMeasured, Studies, Study
from carryscope.reproduction.mlp_study_finding import MlpStudy
from carryscope.reproduction.sweep_finding import Sweep
from carryscope.runs import Run
from carryscope.training.checkpoint import METRICS_FILE
from carryscope.training.config import differences
from carryscope.training.presets import PRESETS, run_config

MEASURES: Mapping[str, Measure] = {
    measure.__name__: measure
    for measure in (
        measures_training.final_loss,
        measures_training.loss_per_digit,
        measures_training.hardest_digit,
        measures_training.units_are_cleanest,
        measures_training.loss_per_task,
        measures_training.task_mix,
        measures_training.trains_well,
        measures_training.no_memorisation,
        measures_training.longer_takes_longer,
        measures_learning.semi_independent,
        measures_learning.highest_first,
        measures_learning.first_digits_learn_better,
        measures_learning.uc1_lags,
        measures_learning.three_phases,
        measures_learning.top_column_is_lower,
        measures_learning.us9_is_noisy,
        measures_learning.task_order,
        measures_rows.rows_unused,
        measures_rows.row_losses,
        measures_rows.one_row_before,
        measures_rows.one_digit_per_row,
        measures_rows.no_early_carry,
        measures_rows.useful_positions,
        measures_attention.staircase,
        measures_attention.clearest_with_three,
        measures_attention.two_heads_pack,
        measures_attention.four_heads_split,
        measures_attention.all_heads_useful,
        measures_heads.base_add_head,
        measures_heads.head_ranking,
        measures_heads.head_tasks,
        measures_heads.last_digits,
        measures_carries.simple_us9_works,
        measures_carries.cascades_fail,
        measures_carries.nines_plus_one,
        measures_carries.first_digits_differ,
        measures_carries.more_compute_for_a4,
        measures_algorithm.sixty_keys,
        measures_algorithm.explains_everything,
        measures_algorithm.same_algorithm,
        measures_studies.same_across_seeds,
        measures_studies.mlp_study,
        measures_algorithm.printed_algorithm_adds,
        measures_algorithm.no_cascade_at_digit_4,
        measures_algorithm.predictable_shares,
    )
}
"""How each claim is measured, by the name in the claims file."""


def judge_claims(
    runs: Mapping[str, Run], *, mlp: MlpStudy | None = None, sweep: Sweep | None = None
) -> list[Judged]:
    """Every claim of the paper, judged by what stands in the runs and studies."""
    studies = {name: study_of(name, run) for name, run in runs.items()}
    return judge(studies, mlp=mlp, sweep=sweep)


def study_of(name: str, run: Run) -> Study:
    """A run as measures see it."""
    trained = (run.directory / METRICS_FILE).exists()
    return Study(name, run.shelf(), run.metrics if trained else tuple)


def judge(
    studies: Mapping[str, Study], *, mlp: MlpStudy | None = None, sweep: Sweep | None = None
) -> list[Judged]:
    """Every claim, judged by these studies."""
    return [judge_one(claim, studies, mlp=mlp, sweep=sweep) for claim in load_claims()]


def judge_one(
    claim: Claim,
    studies: Mapping[str, Study],
    *,
    mlp: MlpStudy | None = None,
    sweep: Sweep | None = None,
) -> Judged:
    """One claim, judged by these studies, or why it cannot be."""
    behind = [_behind(studies[name]) for name in _names(claim, studies)]
    try:
        checks = MEASURES[claim.measure](claim, Studies(studies, mlp=mlp, sweep=sweep))
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
    changes = (
        differences(run_config(config.preset, {"seed": seed or 0}), config)
        if config.preset is not None and config.preset in PRESETS
        else []
    )
    return RunBehind(
        name=study.name,
        preset=config.preset,
        changes=changes,
        seed=seed,
        steps=summary.steps if summary else None,
        weights_sha256=study.shelf.weights_sha256,
    )
