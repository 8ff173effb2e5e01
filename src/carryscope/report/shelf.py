"""What stands on the shelf of a run: everything a report can be made from, and nothing else.

In: records that the stages left. Out: `Shelf`. The report room reads it and runs no model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from carryscope.certificate.features import check_supported
from carryscope.certificate.finding import Certificate
from carryscope.core.errors import CallError
from carryscope.dissection.dissect import Dissection
from carryscope.dissection.story import TrainingStory
from carryscope.report.parts import Absent
from carryscope.training.config import RunConfig
from carryscope.training.summary import TrainingSummary
from carryscope.verification.faithfulness import FaithfulnessFinding
from carryscope.verification.risk import RiskFinding


@dataclass(frozen=True, kw_only=True, eq=False)
class Shelf:
    """The records of one run. Each stage left a record, or stands in `absent`."""

    name: str
    """What the run is called. It comes from a user, so it is text and never markup."""
    where: str
    """The run directory, as one types it."""
    config: RunConfig
    weights_sha256: str
    training: TrainingSummary | None = None
    """The result of the training; none for an imported model."""
    story: TrainingStory | None = None
    """How the training went, from its metrics, dissected or not."""
    dissection: Dissection | None = None
    risk: RiskFinding | None = None
    faithfulness: FaithfulnessFinding | None = None
    certificate: Certificate | None = None
    absent: Mapping[str, Absent] = field(default_factory=dict)
    """Stages without a usable record, by name: what is missing, how to make it, what is wrong."""

    @property
    def beyond_proof(self) -> str:
        """Why no model of this kind can be certified; empty if it can."""
        try:
            check_supported(self.config.model)
        except CallError as error:
            return str(error)
        return ""
