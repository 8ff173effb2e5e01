"""Stages: how findings are read, checked, made and kept. One mechanism for all of them.

A `Stage` says what a finding is called and what record it is. `RunDirectory.find` is the one way to
a finding: it returns what is there if that is enough, else it makes the finding and keeps it in
`findings/<name>.json`. A stage of your own takes three lines:

    EXAM = Stage("exam", "the exam", ExamFinding)
    found = run.find(EXAM, lambda known, keep: sit(run.model()))

Its record needs the fields `package_version` and `weights_sha256`, which say when it is current.

A finding is about one set of weights. One about other weights, of another version, or damaged
is made again, unless it is costly (a certificate): then it takes `again` to replace it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from carryscope.certificate.finding import Certificate
from carryscope.core.errors import CallError, WorkError, command
from carryscope.core.storage import check_ordinary, only_writer, read_json, write_json
from carryscope.dissection.dissect import Dissection
from carryscope.fits import check_fit
from carryscope.model.files import check_version, load_model, weights_hash
from carryscope.model.transformer import Transformer
from carryscope.training.summary import TrainingSummary
from carryscope.verification.faithfulness import FaithfulnessFinding
from carryscope.verification.risk import RiskFinding
from carryscope.version import __version__

F = TypeVar("F")

FINDINGS = Path("findings")
"""Where findings are, in a run directory."""


@dataclass(frozen=True)
class Stage(Generic[F]):
    """One step from a run to a finding."""

    name: str
    """Its finding is in `findings/<name>.json`, and `Run` has a method of this name."""
    what: str
    """What it finds, in words: "the measured risk"."""
    record: type[F]
    command: tuple[str, ...] = ()
    """The words of the command that makes it, to be followed by the run."""
    costly: bool = False
    """Whether what cannot be used is refused instead of being replaced."""
    knows: Callable[[F], float] = lambda _: 0
    """How much a finding knows. One that knows more is not replaced by one that was stopped."""

    @property
    def file(self) -> Path:
        return FINDINGS / f"{self.name}.json"

    def line(self, directory: Path | str, *options: str) -> str:
        """The command that makes the finding of a run."""
        return command(*self.command, directory, *options)


TRAINING = Stage("training", "the summary of a training", TrainingSummary, ("train", "--out"))
DISSECTION = Stage(
    "dissection", "a dissection", Dissection, ("dissect",), knows=lambda found: len(found.made)
)
RISK = Stage(
    "risk", "the measured risk", RiskFinding, ("risk",), knows=lambda found: found.evaluated
)
FAITHFULNESS = Stage(
    "faithfulness", "the comparison with algorithms", FaithfulnessFinding, ("faithful",)
)
CERTIFICATE = Stage(
    "certificate",
    "a certificate",
    Certificate,
    ("certify",),
    costly=True,
    knows=lambda found: found.decided if found.can_be_continued else 0,
)

STAGES: tuple[Stage[Any], ...] = (TRAINING, DISSECTION, RISK, FAITHFULNESS, CERTIFICATE)
"""The stages of a study, in their order."""


@dataclass(frozen=True)
class Kept(Generic[F]):
    """What a stage left in a run directory."""

    found: F | None
    why: str = ""
    """Why what is there cannot be used; nothing if it can, or if nothing is there."""


class RunDirectory:
    """The findings of one run directory. Its model is loaded and hashed once, when needed."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        check_version(self.directory)

    @cached_property
    def _model(self) -> Transformer:
        return load_model(self.directory)

    def model(self) -> Transformer:
        """The trained model."""
        return self._model

    @cached_property
    def weights_sha256(self) -> str:
        """The hash of the weights: findings say which weights they are about."""
        return weights_hash(self._model)

    def find(
        self,
        stage: Stage[F],
        make: Callable[[F | None, Callable[[F], None]], F],
        *,
        enough: Callable[[F], bool] = lambda _: True,
        again: bool = False,
    ) -> F:
        """The finding of a stage: what is there if it is enough, else made now and kept.

        `make` receives what was found before about these weights, and a function that keeps
        what is found so far. What is not enough and knows less than before is not kept.
        """
        _check_record(stage)
        self.model()  # without weights nothing can be found, whatever else is there
        kept = self.read(stage)
        if kept.why and stage.costly and not again:
            raise CallError(kept.why)
        known = kept.found if stage.costly else self._of_this_version(kept.found)
        if known is not None and not again and enough(known):
            return known
        path = self.directory / stage.file
        check_ordinary(path)  # before work is done for it
        with only_writer(self.directory):

            def is_worse(found: F) -> bool:
                less = known is not None and stage.knows(found) < stage.knows(known)
                return less and not enough(found)

            def keep(found: F) -> None:
                if not is_worse(found):
                    write_json(path, found)

            found = make(known, keep)
            keep(found)
        if is_worse(found):
            raise WorkError(f"What was found now knows less than {path}, which stays.")
        return found

    def there(self, stage: Stage[F]) -> F:
        """The finding that is there, of any version, or an error that says how to make it."""
        kept = self.read(stage)
        if kept.found is None:
            make = f"{self.directory} has not {stage.what} yet. Run: {stage.line(self.directory)}"
            raise CallError(kept.why or make)
        return kept.found

    def known(self, stage: Stage[F]) -> F | None:
        """The finding that is there, of these weights and this version, or None."""
        return self._of_this_version(self.read(stage).found)

    def _of_this_version(self, found: F | None) -> F | None:
        return found if getattr(found, "package_version", None) == __version__ else None

    def read(self, stage: Stage[F]) -> Kept[F]:
        """What a stage left, of any version; where it cannot be used, the reason."""
        path = self.directory / stage.file
        if not path.exists():
            return Kept(None)
        again = f"Make it again: {stage.line(self.directory, '--again')}"
        try:
            found = read_json(path, stage.record)
        except CallError as error:
            return Kept(None, f"{error} Or it is of another version. {again}")
        try:
            check_fit(found, self._model.config)
        except CallError as error:
            return Kept(None, f"{path} is damaged: {error} {again}")
        if getattr(found, "weights_sha256", self.weights_sha256) != self.weights_sha256:
            return Kept(None, f"{path} is about other weights. {again}")
        return Kept(found)


def _check_record(stage: Stage[F]) -> None:
    """Refuse a record that cannot say which weights and version it is about."""
    for name in ("package_version", "weights_sha256"):
        if name not in getattr(stage.record, "__struct_fields__", ()):
            raise CallError(f"The record of the stage '{stage.name}' must have a field {name}.")
