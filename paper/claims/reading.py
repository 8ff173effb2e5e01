"""What a measure reads: the findings of the runs by name.

In: runs. Out: `Studies`. If something is missing, `NotMeasured` says what, and which command makes
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from carryscope.dissection.attention import AttentionFinding
from carryscope.dissection.findings import Dissection
from carryscope.dissection.first_digits import FirstDigitsFinding
from carryscope.dissection.heads import HeadEffect, HeadsFinding
from carryscope.dissection.keys import MlpFinding
from carryscope.dissection.nodes import NodesFinding
from carryscope.dissection.purposes import SubtasksFinding
from carryscope.dissection.rows import RowsFinding
from carryscope.dissection.story import TrainingStory
from carryscope.report.shelf import Shelf
from carryscope.run import Run
from carryscope.sweeps.finding import Sweep
from carryscope.task.columns import QuestionClass
from carryscope.task.tokens import Format
from carryscope.training.config import differences
from carryscope.training.losses import StepRecord
from carryscope.training.presets import run_config
from carryscope.training.summary import LAST_STEPS, TrainingSummary
from carryscope.verification.faithfulness import FaithfulnessFinding
from carryscope.verification.risk import RiskFinding
from paper.claims.claims import Check, Claim
from paper.exam import EXAM, ExamFinding
from paper.mlp.finding import MlpStudy

T = TypeVar("T")


class NotMeasured(Exception):
    """A run, or a finding of it, is missing: what is missing, and what would make it."""

    def __init__(self, what: str, command: str) -> None:
        super().__init__(what)
        self.what, self.command = what, command


@dataclass(frozen=True, eq=False)
class Study:
    """One run as measures see it. A missing finding raises `NotMeasured`."""

    name: str
    shelf: Shelf
    read_metrics: Callable[[], Sequence[StepRecord]]
    known_exam: ExamFinding | None = None

    @cached_property
    def metrics(self) -> Sequence[StepRecord]:
        return self._there(self.read_metrics() or None, "training")

    @property
    def last_steps(self) -> Sequence[StepRecord]:
        """The steps whose mean is the final loss."""
        return self.metrics[-LAST_STEPS:]

    @property
    def layout(self) -> Format:
        return self.shelf.config.model.layout

    @property
    def digits(self) -> int:
        return self.layout.digits

    @property
    def training(self) -> TrainingSummary:
        return self._there(self.shelf.training, "training")

    @property
    def story(self) -> TrainingStory:
        return self._there(self.shelf.story, "training")

    @property
    def risk(self) -> RiskFinding:
        return self._there(self.shelf.risk, "risk")

    @property
    def exam(self) -> ExamFinding:
        return self._there(self.known_exam, "exam")

    @property
    def faithfulness(self) -> FaithfulnessFinding:
        return self._there(self.shelf.faithfulness, "faithfulness")

    @property
    def _dissection(self) -> Dissection:
        return self._there(self.shelf.dissection, "dissection")

    @property
    def attention(self) -> AttentionFinding:
        return self._there(self._dissection.attention, "attention")

    @property
    def rows(self) -> RowsFinding:
        return self._there(self._dissection.rows, "rows")

    @property
    def untrained_rows(self) -> RowsFinding:
        return self._there(self.rows.untrained, "untrained control of its rows")

    @property
    def heads(self) -> HeadsFinding:
        return self._there(self._dissection.heads, "heads")

    @property
    def nodes(self) -> NodesFinding:
        return self._there(self._dissection.nodes, "nodes")

    @property
    def subtasks(self) -> SubtasksFinding:
        return self._there(self._dissection.subtasks, "subtasks")

    @property
    def mlp(self) -> MlpFinding:
        return self._there(self._dissection.mlp, "mlp")

    @property
    def first_digits(self) -> FirstDigitsFinding:
        return self._there(self._dissection.first_digits, "first_digits")

    def _there(self, record: T | None, what: str) -> T:
        if record is None:
            raise NotMeasured(f"{self.name} has no finding of {what}", reproduce(self.name))
        return record

    def whole(self, kind: QuestionClass) -> HeadEffect:
        """The whole model, every head in place, on questions of one class."""
        of_kind = (
            e for e in self.heads.effects if e.head is None and e.question_class == kind.label
        )
        return self._there(next(of_kind, None), f"{kind.label} questions")

    def digit_losses(self) -> dict[str, list[float]]:
        """By answer token, the training losses of the last steps."""
        losses = zip(*(record.digit_loss for record in self.last_steps), strict=True)
        return dict(zip(self.layout.answer_names, map(list, losses), strict=True))


class Studies:
    """The runs that there are, by name, the study of the MLP, and the sweeps."""

    def __init__(
        self,
        studies: Mapping[str, Study],
        *,
        mlp: MlpStudy | None = None,
        sweeps: Sequence[Sweep] = (),
    ) -> None:
        self._studies, self.mlp, self.sweeps = studies, mlp, sweeps

    def __getitem__(self, name: str) -> Study:
        if name not in self._studies:
            raise NotMeasured(f"there is no run {name}", reproduce(name))
        return self._studies[name]

    def seeds_of(self, name: str) -> Sweep | None:
        """The sweep over seeds of this recipe, unchanged, if there is one."""
        for sweep in self.sweeps:
            training = sweep.recipe.training
            if training is None:
                continue
            different = differences(run_config(name, {"seed": training.seed}), sweep.recipe)
            if all(field.startswith("training.stream ") for field in different):
                return sweep
        return None

    def of(self, claim: Claim) -> list[Study]:
        """The runs that a claim is about. If one is missing, the claim is not measured."""
        return [self[name] for name in claim.runs]


Measure = Callable[[Claim, Studies], list[Check]]
"""How a claim is measured: from the findings of runs to checks."""


def reproduce(name: str) -> str:
    """The command that makes a run and all its findings, or those that are missing."""
    return f"python -m paper --only {name}"


def study_of(name: str, run: Run) -> Study:
    """A run as measures see it."""
    return Study(name, run.shelf(), run.metrics, run.read(EXAM).found)
