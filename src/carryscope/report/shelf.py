"""What stands on the shelf of a run: everything a report can be made from, and nothing else.

In: records that the stages left. Out: `Shelf`. The report room reads it and runs no model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from carryscope.certificate.features import check_supported
from carryscope.certificate.finding import Certificate
from carryscope.core.errors import CallError
from carryscope.dissection.findings import Dissection
from carryscope.dissection.story import TrainingStory
from carryscope.training.config import RunConfig
from carryscope.training.summary import TrainingSummary
from carryscope.verification.faithfulness import FaithfulnessFinding
from carryscope.verification.risk_finding import RiskFinding


@dataclass(frozen=True, kw_only=True, eq=False)
class Shelf:
    """The records of one run; a stage that was not run left none."""

    name: str
    """What the run is called. It comes from a user, so it is text and never markup."""
    where: str
    """The run directory, as one types it."""
    config: RunConfig
    weights_sha256: str
    training: TrainingSummary | None = None
    """What the training came to; none for an imported model."""
    story: TrainingStory | None = None
    """How the training went, told from its metrics, dissected or not."""
    dissection: Dissection | None = None
    risk: RiskFinding | None = None
    faithfulness: FaithfulnessFinding | None = None
    certificate: Certificate | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    """Stages whose findings are there but could not be used, and why."""

    @property
    def beyond_proof(self) -> str:
        """Why there can be no certificate of a model of this kind; nothing if there can."""
        try:
            check_supported(self.config.model)
        except CallError as error:
            return str(error)
        return ""

    def needed(self, stage: str) -> Any:
        """The record of a stage, or the command that makes it."""
        record = getattr(self, stage)
        if record is not None:
            return record
        if stage in self.refused:
            raise CallError(self.refused[stage])
        if stage == "certificate":
            check_supported(self.config.model)
        raise CallError(
            f"This figure needs {_NEEDS[stage][0]}, which is missing. "
            f"{_NEEDS[stage][1].format(where=self.where)}"
        )


_NEEDS = {
    "story": ("the metrics of a training", "It is drawn for a run that was trained here."),
    "dissection": ("a dissection", "Run: carryscope dissect {where}"),
    "risk": ("the measured risk", "Run: carryscope risk {where}"),
    "faithfulness": ("the comparison with algorithms", "Run: carryscope faithful {where}"),
    "certificate": ("a certificate", "Run: carryscope certify {where}"),
}
"""What each stage leaves, in words, and how to get it."""
