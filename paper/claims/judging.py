"""The judging of claims.

In: studies by name; models that were not made are not among them. Out: `Judged` claims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module

from carryscope.sweeps.finding import Sweep
from carryscope.training.presets import changes
from paper.claims.claims import Claim, Judged, RunBehind, Verdict, judged, load_claims
from paper.claims.reading import Measure, NotMeasured, Studies, Study
from paper.mlp.finding import MlpStudy


def measure_of(claim: Claim) -> Measure:
    """How a claim is measured: `rows.rows_unused` is a function of `paper/claims/rows.py`."""
    module, name = claim.measure.split(".")
    measure: Measure = getattr(import_module(f"paper.claims.{module}"), name)
    return measure


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
    """One claim, judged by these studies, or the reason why it was not measured."""
    runs = [_behind(study) for name, study in studies.items() if name in claim.runs]
    try:
        checks = measure_of(claim)(claim, Studies(studies, mlp=mlp, sweeps=sweeps))
    except NotMeasured as missing:
        return Judged(
            claim=claim,
            verdict=Verdict.UNMEASURED,
            reason=f"Not measured: {missing.what}.",
            checks=[],
            runs=runs,
            command=missing.command,
        )
    return judged(claim, checks, runs)


def _behind(study: Study) -> RunBehind:
    config, summary = study.shelf.config, study.shelf.training
    return RunBehind(
        name=study.name,
        preset=config.preset,
        changes=changes(config),
        seed=config.training.seed if config.training else None,
        steps=summary.steps if summary else None,
        weights_sha256=study.shelf.weights_sha256,
    )
