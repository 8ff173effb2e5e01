"""Take from a run what its stages left. In: a run. Out: its `Shelf`.

A stage that was not run leaves nothing, and that is no error here: the report says so. Findings
that are there but of other weights, or damaged, are left out, and the report says why.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from carryscope.certificate.finding import CERTIFICATE_FILE, Certificate
from carryscope.core.errors import CallError
from carryscope.dissection.findings import DISSECTION_FILE, Dissection
from carryscope.dissection.story import TrainingStory, training_story
from carryscope.model.files import weights_hash
from carryscope.model.transformer import Transformer
from carryscope.report.shelf import Shelf
from carryscope.training.checkpoint import METRICS_FILE
from carryscope.training.config import RunConfig
from carryscope.training.losses import StepRecord
from carryscope.training.summary import FINDING_FILE, TrainingSummary
from carryscope.verification.faithfulness import FAITHFULNESS_FILE
from carryscope.verification.risk import RISK_FILE


@runtime_checkable
class Readable(Protocol):
    """What the report asks of a run: `carryscope.stages.Run`, which stands in a later room."""

    directory: Path

    @property
    def config(self) -> RunConfig: ...
    def model(self) -> Transformer: ...
    def metrics(self) -> list[StepRecord]: ...
    def training(self) -> TrainingSummary: ...
    def dissection(self) -> Dissection: ...
    def risk(self) -> Any: ...
    def faithfulness(self) -> Any: ...
    def certificate(self) -> Certificate: ...


STAGES = {
    "training": Path(FINDING_FILE),
    "dissection": DISSECTION_FILE,
    "risk": RISK_FILE,
    "faithfulness": FAITHFULNESS_FILE,
    "certificate": CERTIFICATE_FILE,
}
"""The stages by the method of a run that reads what each left, and the file it left."""


def gather(run: Readable) -> Shelf:
    """Everything that the stages of a run left."""
    found: dict[str, Any] = {}
    refused: dict[str, str] = {}
    for stage, file in STAGES.items():
        if (run.directory / file).exists():
            found[stage] = _read(getattr(run, stage), stage, refused)
    return Shelf(
        name=run.directory.resolve().name,
        where=str(run.directory),
        config=run.config,
        weights_sha256=weights_hash(run.model()),
        story=_story(run, found.get("dissection")),
        refused=refused,
        **found,
    )


def _read(read: Callable[[], Any], stage: str, refused: dict[str, str]) -> Any:
    try:
        return read()
    except CallError as error:
        refused[stage] = str(error)
        return None


def _story(run: Readable, dissection: Dissection | None) -> TrainingStory | None:
    """The story in the dissection, or told anew from the metrics: that takes no model."""
    if dissection is not None and dissection.story is not None:
        return dissection.story
    if not (run.directory / METRICS_FILE).exists():
        return None
    layout = run.config.model.layout
    with contextlib.suppress(CallError):
        return training_story(run.metrics(), layout.digits, layout.answer_names)
    return None
