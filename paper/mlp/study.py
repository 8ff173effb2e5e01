"""The study of the MLP that the paper asks for in its limitations: remove it, or train it again.

In: a trained run with an MLP, the base. Out: an `MlpStudy`: what the base and its variants can do,
on the same questions.

    no-mlp                the same recipe for a model without an MLP
    fresh-mlp             from the base: the MLP drawn again and trained, all else frozen
    fresh-attention       from the base: the attention drawn again and trained, all else frozen
    untrained-attention   control of fresh-mlp: attention drawn again too, and left untrained
    untrained-mlp         control of fresh-attention: MLP drawn again too, and left untrained

Embeddings and readout are frozen in the last four, so that a success is due to the new part. All
four use the seed after the base's: with the base's own the new weights would be those that the base
started from, on the same questions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from carryscope.core.errors import CallError, WorkError
from carryscope.core.evidence import Mean, Share
from carryscope.core.progress import Progress, silent
from carryscope.model.prediction import answer
from carryscope.run import Run
from carryscope.sweeps.running import side_by_side, trained
from carryscope.task.sampling import uniform
from carryscope.training.config import ModelPart, RunConfig, all_but, part_of
from carryscope.training.loop import train
from carryscope.training.presets import changed, run_config, started_config
from carryscope.version import __version__
from paper.mlp.exam import EACH, EXAM_SEED, CaseRight, exam, sit

BASE = "base"
BASE_RECIPE = run_config("paper-5", {"stream": "ours", "steps": 28_125})
"""The paper's recipe with our batches, on the 1.8 million questions that its text names."""

STEPS = 5000
"""Steps of each variant, as many as the paper's tables have."""

CURVE_POINTS = 40
"""Points of a variant's curve, each a mean over the steps since the one before. The points of the
base's curve are as far apart."""

UNIFORM_QUESTIONS = 10_000
"""Fresh uniform questions for whole answers."""


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The mean training loss of the steps up to this one and after the point before."""

    step: int
    loss: float


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One model of the study."""

    name: str
    about: str
    weights_sha256: str
    seed: int
    steps: int
    trained: int
    """Parameters that were trained."""
    held_out_loss: Mean
    """On the fixed held-out questions of every training, enriched by the paper's rule."""
    uniform_right: Share
    """Whole answers right, of fresh uniform questions; free-running, it is the same number."""
    right: list[CaseRight]
    curve: list[CurvePoint]

    def loss_at(self, step: int) -> float | None:
        """Its training loss near a step; None if it was not trained that far."""
        return next((point.loss for point in self.curve if point.step >= step), None)

    def by_case(self) -> dict[str, Share]:
        """Each case over all digits that have it."""
        cases = dict.fromkeys(cell.case for cell in self.right)
        cells = {case: [c.right for c in self.right if c.case == case] for case in cases}
        return {
            case: Share.measured(sum(s.count for s in shares), sum(s.of for s in shares))
            for case, shares in cells.items()
        }


class MlpStudy(msgspec.Struct, frozen=True, kw_only=True):
    """Base and variants, all tested on the same questions."""

    package_version: str
    base: str
    """The name of the base run."""
    questions: int
    """In the exam, for each model."""
    subjects: list[Subject]
    """The base first."""

    def subject(self, name: str) -> Subject:
        """The subject of this name."""
        return next(subject for subject in self.subjects if subject.name == name)


@dataclass(frozen=True)
class Variant:
    """How one model of the study is made from the base."""

    name: str
    about: str
    renew: tuple[ModelPart, ...] = ()
    learns: ModelPart | None = None
    """The one part that is trained; with None a model without an MLP is trained from scratch."""

    def config(self, base: Run, steps: int) -> RunConfig:
        """The base's recipe with as few changes as possible."""
        config = base.config
        if config.training is None or not config.model.d_mlp:
            raise CallError(f"The model at {base.directory} has no MLP, or no recipe to repeat.")
        if self.learns is None:
            all_drawn = {"start_weights": "", "renew": (), "freeze": ()}
            return changed(config, {"d_mlp": 0, "steps": steps, **all_drawn})
        parts = {"renew": self.renew, "freeze": all_but(self.learns)}
        seed = config.training.seed + 1
        return started_config(base.directory, {"seed": seed, "steps": steps, **parts})


VARIANTS = (
    Variant("no-mlp", "No MLP"),
    Variant("fresh-mlp", "A fresh MLP beside trained attention", ("mlp",), "mlp"),
    Variant("fresh-attention", "Fresh attention beside a trained MLP", ("attention",), "attention"),
    Variant(
        "untrained-attention",
        "Control, a fresh MLP beside untrained attention",
        ("attention", "mlp"),
        "mlp",
    ),
    Variant(
        "untrained-mlp",
        "Control, fresh attention beside an untrained MLP",
        ("attention", "mlp"),
        "attention",
    ),
)


def study(
    runs: Path,
    *,
    recipe: RunConfig = BASE_RECIPE,
    steps: int = STEPS,
    workers: int | None = None,
    progress: Progress = silent,
) -> MlpStudy:
    """Train the base and its variants, whatever is left of them, and compare them."""
    base = trained(recipe, runs / BASE, threads=1, progress=progress)
    jobs = {v.name: partial(_variant, v, base.directory.absolute(), steps) for v in VARIANTS}
    outcome = side_by_side(jobs, runs, workers=workers, threads=1, progress=progress)
    if outcome.failed:
        raise WorkError(" ".join(f"{name} failed: {why}" for name, why in outcome.failed.items()))
    first = _measured(Variant(BASE, "The base"), base, steps)
    return MlpStudy(
        package_version=__version__,
        base=base.name,
        questions=EACH * len(exam(base.config.model.digits, 1)),
        subjects=[first, *(outcome.done[variant.name] for variant in VARIANTS)],
    )


def _variant(
    variant: Variant, base: Path, steps: int, directory: Path, threads: int, progress: Progress
) -> Subject:
    """A variant, trained from wherever it stands, then measured."""
    start, config = base if variant.renew else None, variant.config(Run(base), steps)
    train(config, directory, start_from=start, threads=threads, progress=progress)
    return _measured(variant, Run(directory), steps)


def _measured(variant: Variant, run: Run, steps: int) -> Subject:
    """A model in the exam, on the held-out questions and on uniform ones."""
    model, recipe, metrics = run.model(), run.config.training, run.metrics()
    assert recipe is not None
    drawn = uniform(np.random.default_rng((EXAM_SEED, 0)), UNIFORM_QUESTIONS, model.config.digits)
    learning = [p for n, p in model.named_parameters() if part_of(n) not in recipe.freeze]
    return Subject(
        name=variant.name,
        about=variant.about,
        weights_sha256=run.weights_sha256,
        seed=recipe.seed,
        steps=len(metrics),
        trained=sum(parameter.numel() for parameter in learning),
        held_out_loss=run.training().held_out_loss,
        uniform_right=Share.of_hits(answer(model, drawn, free_running=False).correct),
        right=sit(model),
        curve=_curve([record.loss for record in metrics], max(1, steps // CURVE_POINTS)),
    )


def _curve(losses: list[float], apart: int) -> list[CurvePoint]:
    """Means over so many steps each, the last over the rest."""
    parts = [losses[begin : begin + apart] for begin in range(0, len(losses), apart)]
    ends = np.cumsum([len(part) for part in parts]).tolist()
    return [
        CurvePoint(step=end, loss=float(np.mean(part)))
        for end, part in zip(ends, parts, strict=True)
    ]
