"""The results of a reproduction read back, where there are no runs and no weights.

In: the directory that `carryscope reproduce` wrote. Out: the judged claims, and of every model
its findings and any figure drawn from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from carryscope.core.errors import CallError
from carryscope.core.storage import read_json
from carryscope.dissection.findings import DISSECTION_FILE, Dissection
from carryscope.model.files import CONFIG_FILE
from carryscope.report.figures.catalogue import figure
from carryscope.report.figures.figure import Figure
from carryscope.report.shelf import Shelf
from carryscope.sweep.finding import SWEEP_FILE, Sweep
from carryscope.training.config import RunConfig
from carryscope.training.summary import FINDING_FILE, TrainingSummary
from carryscope.verification.faithfulness import FAITHFULNESS_FILE, FaithfulnessFinding
from carryscope.verification.risk import RISK_FILE
from carryscope.verification.risk_finding import RiskFinding
from paper.claims.claims import Judged, Verdict
from paper.claims.judging import judge
from paper.claims.page import CLAIMS_RESULT, ClaimsResult, read_claims
from paper.claims.reading import Study
from paper.exam import EXAM_FILE, ExamFinding
from paper.mlp.finding import MlpStudy
from paper.plan import MLP_RECORD, MODELS, SWEEPS

T = TypeVar("T")


class Results:
    """What a reproduction found, as it is kept."""

    def __init__(self, directory: Path | str = "paper/results") -> None:
        self.directory = Path(directory)
        if not (self.directory / CLAIMS_RESULT).exists():
            raise CallError(
                f"There are no results of a reproduction at {directory}. Run: carryscope reproduce"
            )

    @property
    def claims(self) -> ClaimsResult:
        """Every claim of the paper, judged."""
        return read_claims(self.directory)

    @property
    def models(self) -> list[str]:
        """The models that are there."""
        return [name for name in MODELS if (self.directory / name / CONFIG_FILE).exists()]

    @property
    def sweeps(self) -> dict[str, Sweep]:
        """The sweeps over seeds, by the directories in which they stand."""
        kept = {name: self.directory / name / SWEEP_FILE for name in SWEEPS}
        return {name: read_json(path, Sweep) for name, path in kept.items() if path.exists()}

    @property
    def mlp_study(self) -> MlpStudy:
        """The study of the MLP."""
        return read_json(self.directory / MLP_RECORD, MlpStudy)

    def shelf(self, model: str) -> Shelf:
        """The findings about one model."""
        if model not in self.models:
            raise CallError(f"The models are {', '.join(self.models)}. Got '{model}'.")
        kept = self.directory / model
        dissection = _read(kept / DISSECTION_FILE, Dissection)
        return Shelf(
            name=model,
            where=str(kept),
            config=read_json(kept / CONFIG_FILE, RunConfig),
            weights_sha256=dissection.weights_sha256 if dissection else "",
            training=_read(kept / FINDING_FILE, TrainingSummary),
            story=dissection.story if dissection else None,
            dissection=dissection,
            risk=_read(kept / RISK_FILE, RiskFinding),
            faithfulness=_read(kept / FAITHFULNESS_FILE, FaithfulnessFinding),
        )

    def figure(self, model: str, name: str) -> Figure:
        """A figure of one model, by the name it has in its report."""
        return figure(name, self.shelf(model))

    def judged_again(self, sweeps: Sequence[Sweep] | None = None) -> list[Judged]:
        """Every claim, judged anew by what is kept here and by the rules as they are now.

        Losses step by step are not kept, so claims that rest on them are told as not measured.
        Other sweeps over seeds can be given than those that are kept here.
        """
        studies = {name: self._study(name) for name in self.models}
        mlp = _read(self.directory / MLP_RECORD, MlpStudy)
        return judge(studies, mlp=mlp, sweeps=[*self.sweeps.values()] if sweeps is None else sweeps)

    def verdicts(self, sweeps: Sequence[Sweep] | None = None) -> dict[str, Verdict]:
        """The verdicts by the rules as they are now, or as they were, where a rule is the same."""
        then = {one.claim.id: one for one in self.claims.claims}
        found = {one.claim.id: one for one in self.judged_again(sweeps)}
        for name, one in found.items():
            same_rule = name in then and then[name].claim == one.claim
            if one.verdict is Verdict.UNMEASURED and same_rule:
                found[name] = then[name]
        return {name: one.verdict for name, one in found.items()}

    def _study(self, model: str) -> Study:
        taken = _read(self.directory / model / EXAM_FILE, ExamFinding)
        return Study(model, self.shelf(model), read_metrics=tuple, known_exam=taken)


def _read(path: Path, kind: type[T]) -> T | None:
    """A record, if it was made."""
    return read_json(path, kind) if path.exists() else None
