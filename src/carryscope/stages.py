"""The run directory: the shelf on which each stage leaves what the next one picks up.

runs/<name>/
  config.json          model and training config, format and package version
  model.safetensors    weights
  checkpoint/          what exact resume needs, while training goes on
  metrics.jsonl        one record per step
  findings/*.json      one file per stage, and the nodes in the format of the paper's authors
  report.html          everything above on one page, and the model to try
  README.md            the model's card
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from carryscope.core.errors import CallError
from carryscope.core.progress import Progress, silent
from carryscope.core.storage import only_writer, read_json, write_bytes, write_json
from carryscope.model.config import FORMAT_VERSION
from carryscope.model.files import (
    CONFIG_FILE,
    check_free,
    check_version,
    load_model,
    save_weights,
    weights_hash,
)
from carryscope.model.transformer_lens import read_state_dict
from carryscope.report.parts import Absent
from carryscope.training.checkpoint import METRICS_FILE, read_metrics
from carryscope.training.config import RunConfig
from carryscope.training.losses import StepRecord
from carryscope.training.summary import FINDING_FILE, TrainingSummary

if TYPE_CHECKING:
    from carryscope.certificate.finding import Certificate
    from carryscope.dissection.asking import Answer
    from carryscope.dissection.dissect import Bar
    from carryscope.dissection.engine import Engine
    from carryscope.dissection.findings import Dissection
    from carryscope.model.transformer import Transformer
    from carryscope.report.figures.figure import Figure
    from carryscope.report.shelf import Shelf
    from carryscope.verification.faithfulness import FaithfulnessFinding
    from carryscope.verification.risk_finding import RiskFinding
    from carryscope.verification.trial import Tally

SHIPPED = Path(__file__).parent / "shipped" / "fast-5"
"""The trained 5-digit, 3-head model that comes with the package."""


_STAGES = {
    "training": ("training.json", "train --out", "the summary of a training"),
    "dissection": ("dissection.json", "dissect", "a dissection"),
    "risk": ("risk.json", "risk", "the measured risk"),
    "faithfulness": ("faithfulness.json", "faithful", "the comparison with algorithms"),
    "certificate": (
        "certificate.json",
        "certify",
        "a certificate",
    ),
}


class Run:
    """What stands on the shelf of one run. Only its version is read before it is asked for."""

    def __init__(self, directory: Path | str = SHIPPED) -> None:
        self.directory = Path(directory)
        check_version(self.directory)

    @property
    def config(self) -> RunConfig:
        """How the run was made."""
        return read_json(self.directory / CONFIG_FILE, RunConfig)

    def model(self) -> Transformer:
        """The trained model."""
        return load_model(self.directory)

    def metrics(self) -> list[StepRecord]:
        """One record per training step."""
        return read_metrics(self.directory)

    def training(self) -> TrainingSummary:
        """What the training came to."""
        return read_json(self.directory / FINDING_FILE, TrainingSummary)

    def ask(self, question: str) -> Answer:
        """The model's answer to a sum such as `445+555`, digit by digit."""
        from carryscope.dissection.asking import answer

        return answer(self.model(), question)

    def engine(self, seed: int = 0) -> Engine:
        """An engine for interventions on the model; means are over the questions of the seed."""
        from carryscope.dissection.engine import Engine
        from carryscope.dissection.samples import Samples

        model = self.model()
        return Engine(model, Samples(model.config.digits, seed).varied)

    def dissect(
        self,
        only: str | Sequence[str] | None = None,
        *,
        seed: int | None = None,
        again: bool = False,
        bar: Bar | None = None,
    ) -> Dissection:
        """Dissect the model, or the parts of it named in `only`, and keep what is found.

        What was found before is not made again, unless `again` is set. The seed is that of
        the findings that are there, or 0.
        """
        from carryscope.dissection.dissect import no_bar
        from carryscope.dissection.kept import keep_dissection

        trained = (self.directory / METRICS_FILE).exists()
        return keep_dissection(
            self.directory,
            self.model(),
            self.metrics if trained else list,
            only,
            seed=seed,
            again=again,
            bar=bar or no_bar,
        )

    @property
    def dissected(self) -> bool:
        """Whether there are findings of a dissection."""
        from carryscope.dissection.findings import DISSECTION_FILE

        return (self.directory / DISSECTION_FILE).exists()

    def dissection(self) -> Dissection:
        """What a dissection found in the model that is there now."""
        from carryscope.dissection.findings import read_dissection

        found = read_dissection(self.directory)
        self._check_weights(found.weights_sha256, "dissect")
        return found

    def _check_weights(self, weights_sha256: str, command: str) -> None:
        """Refuse findings about other weights than those of the run."""
        if weights_sha256 != weights_hash(self.model()):
            raise CallError(
                f"The findings in {self.directory} are about other weights. "
                f"Run: carryscope {command} {self.directory}"
            )

    def risk(self) -> RiskFinding:
        """How often the model fails, and where; measured before by `measure_risk`."""
        from carryscope.verification.risk import read_risk

        found = read_risk(self.directory)
        self._check_weights(found.weights_sha256, "risk")
        return found

    def measure_risk(
        self,
        *,
        seed: int = 0,
        width: float | None = None,
        budget: int | None = None,
        again: bool = False,
        on_round: Callable[[Tally], bool | None] = lambda _: None,
    ) -> RiskFinding:
        """Measure how often the model fails, and keep it; what is known as precisely is kept."""
        from carryscope.verification.risk import (
            BUDGET,
            RISK_FILE,
            WIDTH,
            measure_risk,
            read_risk,
        )

        width = WIDTH if width is None else width
        budget = BUDGET if budget is None else budget
        model, path = self.model(), self.directory / RISK_FILE
        if path.exists() and not again:
            known = read_risk(self.directory)
            if known.answers(weights_hash(model), seed, width, budget):
                return known
        with only_writer(self.directory):
            found = measure_risk(model, seed=seed, width=width, budget=budget, on_round=on_round)
            write_json(path, found)
        return found

    def faithfulness(self) -> FaithfulnessFinding:
        """How far stated algorithms tell what the model does; measured before by `compare`."""
        from carryscope.verification.faithfulness import read_faithfulness

        found = read_faithfulness(self.directory)
        self._check_weights(found.weights_sha256, "faithful")
        return found

    def compare(
        self,
        algorithm: str | Callable[..., Any] | None = None,
        *,
        seed: int = 0,
        again: bool = False,
        bar: Bar | None = None,
    ) -> FaithfulnessFinding:
        """Compare the model with stated algorithms, and keep what is found.

        `algorithm` is one of your own: a function from `Columns` to answer digits, or where
        to find it, `file.py:name`. With one of your own the comparison is made again.
        """
        from carryscope.dissection.dissect import no_bar
        from carryscope.dissection.findings import read_dissection
        from carryscope.verification.faithfulness import (
            FAITHFULNESS_FILE,
            expected_answers,
            faithful,
            read_faithfulness,
            write_faithfulness,
        )
        from carryscope.verification.own_algorithm import load_algorithm

        if seed < 0:
            raise CallError(f"seed must be at least 0. Got {seed}.")
        model = self.model()
        weights = weights_hash(model)
        own = (
            load_algorithm(algorithm, model.config.digits)
            if isinstance(algorithm, str)
            else algorithm
        )
        dissection = read_dissection(self.directory) if self.dissected else None
        if dissection is not None and dissection.weights_sha256 != weights:
            dissection = None
        if (self.directory / FAITHFULNESS_FILE).exists() and not again and own is None:
            known = read_faithfulness(self.directory)
            if known.answers(weights, seed, dissection):
                return known
        answers = expected_answers(model.config.digits)
        with only_writer(self.directory):
            with (bar or no_bar)("faithful", answers) as on_progress:
                found = faithful(
                    model, seed=seed, dissection=dissection, own=own, on_progress=on_progress
                )
            write_faithfulness(found, self.directory)
        return found

    def certify(self, **settings: Any) -> Certificate:
        """Prove bounds on the accuracy over every question; settings as in `keep_certificate`."""
        from carryscope.certificate.kept import keep_certificate

        return keep_certificate(self.directory, self.model(), **settings)

    def certificate(self) -> Certificate:
        """What is proved about the model that is there now."""
        from carryscope.certificate.finding import read_certificate

        found = read_certificate(self.directory)
        self._check_weights(found.weights_sha256, "certify --again")
        return found

    def figure(self, name: str) -> Figure:
        """A figure of the findings, such as `staircase`."""
        from carryscope.report.figures.catalogue import figure

        return figure(name, self.shelf())

    def shelf(self) -> Shelf:
        """All that the stages left, for the report and its figures."""
        from carryscope.report.shelf import Shelf

        found: dict[str, Any] = {}
        absent = {}
        for stage, (file, command, what) in _STAGES.items():
            found[stage], why, run = (
                None,
                "",
                f"carryscope {command} {shlex.quote(str(self.directory))}",
            )
            if (self.directory / "findings" / file).exists():
                try:
                    found[stage] = getattr(self, stage)()
                except CallError as error:
                    why = str(error)
                    run += " --again" if stage == "certificate" else ""
            if found[stage] is None:
                absent[stage] = Absent(what, run, why)
        return Shelf(
            name=self.directory.resolve().name,
            where=str(self.directory),
            config=self.config,
            weights_sha256=weights_hash(self.model()),
            story=self._story(found["dissection"]),
            absent=absent,
            **found,
        )

    def _story(self, dissection: Dissection | None) -> Any:
        from carryscope.dissection.story import training_story

        if dissection is not None and dissection.story is not None:
            return dissection.story
        if not (self.directory / METRICS_FILE).exists():
            return None
        layout = self.config.model.layout
        try:
            return training_story(self.metrics(), layout.digits, layout.answer_names)
        except CallError:
            return None

    def _repr_html_(self) -> str:
        from carryscope.report.findings import parts_of
        from carryscope.report.page import fragment

        return fragment(parts_of(self.shelf()))

    def report(
        self,
        path: Path | str | None = None,
        *,
        progress: Progress = silent,
    ) -> Path:
        """Write the report, one file for any browser; by default into the run."""
        from carryscope.report.page import REPORT_FILE, report_page

        path = self.directory / REPORT_FILE if path is None else Path(path)
        write_bytes(path, report_page(self.shelf(), self.model(), progress=progress).encode())
        return path

    def attention_figure(self, question: str) -> Figure:
        """Where every head looks, at every row, for one question."""
        from carryscope.dissection.attention import pattern
        from carryscope.report.figures.maps import one_pattern
        from carryscope.task.questions import parse_question

        layout = self.config.model.layout
        asked = parse_question(question, layout.digits)
        tokens = layout.encode(asked)
        return one_pattern(pattern(self.model(), tokens), layout.text(tokens[0]), layout)


def import_model(source: Path, directory: Path) -> Run:
    """A new run from a TransformerLens state dict."""
    model = read_state_dict(source)
    with only_writer(directory):
        if (directory / CONFIG_FILE).exists():
            raise CallError(f"There is a run at {directory} already. Choose another --out.")
        check_free(directory)
        save_weights(model, directory)
        config = RunConfig(format_version=FORMAT_VERSION, source=source.name, model=model.config)
        write_json(directory / CONFIG_FILE, config)
    return Run(directory)
