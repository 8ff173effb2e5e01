"""A run: a directory with a model and what was found out about it.

runs/<name>/
  config.json          model and training config, format and package version
  model.safetensors    weights
  checkpoint/          what exact resume needs, while the training is under way
  metrics.jsonl        one record per step
  findings/*.json      one file per stage
  report.html          everything above on one page, and the model to try
  README.md            the model's card

    run = carryscope.load("runs/study")
    run.risk().verdict             # read, or measured now and kept
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from carryscope.certificate import proof
from carryscope.certificate.certify import MINUTES, UNTIL, certify
from carryscope.certificate.certify import check_settings as check_proof_settings
from carryscope.certificate.finding import Certificate
from carryscope.core.errors import CallError
from carryscope.core.progress import Progress, silent
from carryscope.core.storage import check_place, read_json
from carryscope.core.workers import worker_count
from carryscope.dissection.asking import Answer, answers, answers_without
from carryscope.dissection.dissect import Dissection, chosen_parts, dissect, known_story
from carryscope.dissection.engine import Engine
from carryscope.dissection.interventions import Without
from carryscope.dissection.samples import Samples
from carryscope.model.files import CONFIG_FILE
from carryscope.model.plain import PlainModel
from carryscope.shipped import exact_model, typed
from carryscope.stages import (
    CERTIFICATE,
    DISSECTION,
    FAITHFULNESS,
    RISK,
    STAGES,
    TRAINING,
    RunDirectory,
)
from carryscope.training.checkpoint import METRICS_FILE, read_metrics
from carryscope.training.config import RunConfig
from carryscope.training.losses import StepRecord
from carryscope.training.summary import TrainingSummary
from carryscope.verification.faithfulness import FaithfulnessFinding, faithful
from carryscope.verification.own_function import Function, load_function
from carryscope.verification.risk import (
    BUDGET,
    WIDTH,
    RiskFinding,
    check_settings,
    measure_risk,
    precise_enough,
)

if TYPE_CHECKING:
    from carryscope.report.figures.figure import Figure
    from carryscope.report.page import Page
    from carryscope.report.shelf import Shelf


class Run(RunDirectory):
    """A run directory: its model, its findings, and what a person can do with them."""

    @property
    def name(self) -> str:
        """The name of its directory."""
        return self.directory.resolve().name

    @cached_property
    def config(self) -> RunConfig:
        """How the run was made."""
        return read_json(self.directory / CONFIG_FILE, RunConfig)

    @property
    def trained(self) -> bool:
        """Whether the model was trained here, so that there are metrics."""
        return (self.directory / METRICS_FILE).exists()

    def metrics(self) -> list[StepRecord]:
        """One record per training step; none for an imported model."""
        return read_metrics(self.directory) if self.trained else []

    def training(self) -> TrainingSummary:
        """How the training ended."""
        return self.there(TRAINING)

    def dissection(
        self,
        only: str | Sequence[str] | None = None,
        *,
        seed: int | None = None,
        again: bool = False,
        progress: Progress = silent,
    ) -> Dissection:
        """How the model adds: all experiments, or those named in `only`.

        The seed of the questions is that of the findings that are there, or 0.
        """
        parts = chosen_parts(only)

        def there(known: Dissection) -> bool:
            return seed in (None, known.seed) and not known.missing(parts, trained=self.trained)

        def make(known: Dissection | None, keep: Callable[[Dissection], None]) -> Dissection:
            if known is not None and seed not in (None, known.seed):
                if only is not None:
                    raise CallError(
                        f"The findings have seed {known.seed}. Leave out --only to make all again."
                    )
                known = None
            if known is not None and again:
                known = msgspec.structs.replace(known, **dict.fromkeys(parts))
            chosen = known.seed if known is not None else seed or 0
            work = dissect(
                self.model(), self.metrics, seed=chosen, parts=parts, known=known, progress=progress
            )
            found = next(work)
            for found in work:
                keep(found)
            return found

        return self.find(DISSECTION, make, enough=there, again=again)

    def risk(
        self,
        *,
        seed: int = 0,
        width: float = WIDTH,
        budget: int = BUDGET,
        again: bool = False,
        progress: Progress = silent,
    ) -> RiskFinding:
        """How often the model fails over all questions, and where.

        Sampling ends when the 95 % interval is as wide as `width` times the estimate, or after
        `budget` questions. An estimate that is already this precise is reused.
        """
        check_settings(seed, width, budget)
        enough = partial(precise_enough, seed=seed, width=width, budget=budget)

        return self.find(
            RISK,
            lambda *_: measure_risk(
                self.model(), seed=seed, width=width, budget=budget, progress=progress
            ),
            enough=enough,
            again=again,
        )

    def faithfulness(
        self,
        algorithm: str | Function | None = None,
        *,
        seed: int = 0,
        again: bool = False,
        progress: Progress = silent,
    ) -> FaithfulnessFinding:
        """How well stated algorithms predict what the model does, in its answers and inside.

        `algorithm` is one of your own: a function from `Columns` to answer digits, or where to
        find it, `file.py:name`.
        """
        own = load_function(algorithm) if isinstance(algorithm, str) else algorithm
        return self.find(
            FAITHFULNESS,
            lambda *_: faithful(self.model(), seed=seed, own=own, progress=progress),
            enough=lambda known: known.seed == seed and known.own is None,
            again=again or own is not None,
        )

    def certificate(
        self,
        *,
        until: float = UNTIL,
        minutes: float = MINUTES,
        workers: int | None = None,
        cluster: str | None = None,
        about: proof.About | None = None,
        engine: proof.Engine | None = None,
        again: bool = False,
        progress: Progress = silent,
    ) -> Certificate:
        """Proved bounds on the accuracy over every question; continues what is proved already.

        Until a share of all questions is decided, or for so many minutes; options as in `certify`.
        """
        check_proof_settings(until, minutes, count := worker_count(workers))

        def make(known: Certificate | None, keep: Callable[[Certificate], None]) -> Certificate:
            return certify(
                self.model(),
                known=None if again else known,
                until=until,
                minutes=minutes,
                workers=count,
                cluster=cluster,
                about=about,
                engine=engine,
                keep=keep,
                progress=progress,
            )

        enough = partial(Certificate.is_enough, until=until, about=about)
        return self.find(CERTIFICATE, make, enough=enough, again=again)

    def ask(self, question: str, *, without: Without = ()) -> Answer:
        """The model's answer to a sum such as `445+555`, digit by digit.

        `without` takes parts away by mean ablation: `H1`, `MLP`, in deeper models `L0H1`.
        """
        if without:
            return answers_without(self.model(), [question], without)[0]
        return answers(PlainModel.read(self.directory), [question])[0]

    def engine(self, seed: int = 0) -> Engine:
        """An engine for interventions on the model; means are over the questions of the seed."""
        return Engine(self.model(), Samples.of(self.config.model.layout, seed).varied)

    def shelf(self) -> Shelf:
        """All findings that can be used, for the report and its figures."""
        from carryscope.report.parts import Absent
        from carryscope.report.shelf import Shelf

        kept, where = {stage.name: self.read(stage) for stage in STAGES}, typed(self.directory)
        found = {name: one.found for name, one in kept.items()}
        absent = {
            stage.name: Absent(stage.what, stage.line(where), kept[stage.name].why)
            for stage in STAGES
            if found[stage.name] is None
        }
        return Shelf(
            name=self.name,
            where=where,
            config=self.config,
            weights_sha256=self.weights_sha256,
            story=known_story(found["dissection"], self.metrics, self.config.model.layout),
            absent=absent,
            **found,
        )

    def figure(self, name: str) -> Figure:
        """A figure of the findings, such as `staircase`."""
        from carryscope.report.sections.report import figure

        return figure(name, self.shelf())

    def report(self, path: Path | str | None = None) -> Path:
        """Write the report, one file for any browser; by default into the run."""
        from carryscope.report.page import REPORT_FILE, report_page

        path = self.directory / REPORT_FILE if path is None else Path(path)
        check_place(path)
        place = exact_model(self.config.model.digits, other_than=self.directory)
        exact = Run(place) if place is not None else None
        live = [(run.shelf(), run.model()) for run in (self, exact) if run is not None]
        report_page(self.shelf(), live).save(path)
        return path

    def explorer(self, question: str = "", *, beside: Sequence[Run] = ()) -> Page:
        """The live model as a page, opened on a question; in a notebook it shows itself.

        Runs that stand `beside` it answer the same question.
        """
        from carryscope.report.page import explorer_page

        runs = (self, *beside)
        return explorer_page([(run.shelf(), run.model()) for run in runs], question)

    def __repr__(self) -> str:
        return f"Run({typed(self.directory)!r})"

    def _repr_html_(self) -> str:
        from carryscope.report.page import notebook

        return notebook(self.shelf())
