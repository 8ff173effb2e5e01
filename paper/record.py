"""The results of a reproduction, read back. No runs and no weights are needed.

In: the directory that `make reproduce` wrote. Out: the judged claims, and for every model its
findings and any figure of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from carryscope.core.errors import CallError
from carryscope.core.storage import read_json
from carryscope.model.files import CONFIG_FILE
from carryscope.report.figures.catalogue import figure
from carryscope.report.figures.figure import Figure
from carryscope.report.shelf import Shelf
from carryscope.stages import DISSECTION, FAITHFULNESS, RISK, TRAINING, Stage
from carryscope.sweeps.finding import SWEEP_FILE, Sweep
from carryscope.training.config import RunConfig
from paper.claims.claims import Judged, Verdict, judged
from paper.claims.judging import judge
from paper.claims.page import CLAIMS_RESULT, ClaimsResult
from paper.claims.reading import Study
from paper.exam import EXAM
from paper.mlp.finding import MlpStudy
from paper.models import MLP_RECORD, MODELS, SWEEPS

T = TypeVar("T")


class Results:
    """What a reproduction found."""

    def __init__(self, directory: Path | str = "paper/results") -> None:
        self.directory = Path(directory)
        if not (self.directory / CLAIMS_RESULT).exists():
            raise CallError(f"{directory} has no results of a reproduction. Run: make reproduce")

    @property
    def claims(self) -> ClaimsResult:
        """Every claim of the paper, judged."""
        return read_json(self.directory / CLAIMS_RESULT, ClaimsResult)

    @property
    def models(self) -> list[str]:
        """The models that are there."""
        return [name for name in MODELS if (self.directory / name / CONFIG_FILE).exists()]

    @property
    def sweeps(self) -> dict[str, Sweep]:
        """The sweeps over seeds, by directory."""
        found = {name: _read(self.directory / name / SWEEP_FILE, Sweep) for name in SWEEPS}
        return {name: sweep for name, sweep in found.items() if sweep is not None}

    @property
    def mlp_study(self) -> MlpStudy | None:
        """The study of the MLP."""
        return _read(self.directory / MLP_RECORD, MlpStudy)

    def shelf(self, model: str) -> Shelf:
        """The findings about one model."""
        if model not in self.models:
            raise CallError(f"The models are {', '.join(self.models)}. Got '{model}'.")
        dissection = self._finding(model, DISSECTION)
        return Shelf(
            name=model,
            where=str(self.directory / model),
            config=read_json(self.directory / model / CONFIG_FILE, RunConfig),
            weights_sha256=dissection.weights_sha256 if dissection else "",
            training=self._finding(model, TRAINING),
            story=dissection.story if dissection else None,
            dissection=dissection,
            risk=self._finding(model, RISK),
            faithfulness=self._finding(model, FAITHFULNESS),
        )

    def shelves(self) -> dict[str, Shelf]:
        """The findings about all models."""
        return {name: self.shelf(name) for name in self.models}

    def figure(self, model: str, name: str) -> Figure:
        """A figure of one model, by the name it has in its report."""
        return figure(name, self.shelf(model))

    def judged_again(self) -> list[Judged]:
        """Every claim, judged from the findings that are here.

        Losses step by step are not kept. Claims that need them are judged by their kept checks.
        """
        studies = {
            name: Study(name, shelf, tuple, self._finding(name, EXAM))
            for name, shelf in self.shelves().items()
        }
        kept = {one.claim.id: one for one in self.claims.claims}
        found = judge(studies, mlp=self.mlp_study, sweeps=list(self.sweeps.values()))
        return [_by_checks(one, kept.get(one.claim.id)) for one in found]

    def _finding(self, model: str, stage: Stage[T]) -> T | None:
        return _read(self.directory / model / stage.file, stage.record)


def _by_checks(found: Judged, kept: Judged | None) -> Judged:
    """The verdict as found, or by the kept checks where nothing was measured."""
    if found.verdict is not Verdict.UNMEASURED or kept is None or not kept.checks:
        return found
    return judged(found.claim, kept.checks, kept.runs)


def _read(path: Path, kind: type[T]) -> T | None:
    """A record, if it is there."""
    return read_json(path, kind) if path.exists() else None
