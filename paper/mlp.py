"""The study of the MLP that the paper asks for in its limitations: remove it, or train it again.

In: a directory for the runs. Out: a `Subject` for the base, a trained model with an MLP, and for
each of its `VARIANTS`: what it can do, on the same questions.

Embeddings and readout are frozen in variants that start from the base, so that a success is due to
the new part. They use the seed after the base's: with the base's own the new weights would be those
that the base started from, on the same questions.

The *exam* has as many questions of a rare case as of a common one. A case is what lies in the
columns below a digit (its look-ahead):

    BA            no carry arrives, and the column below does not sum to 9
    UC1           the column below makes the carry that arrives
    simple US9    the column below sums to 9 and passes a carry on
    cascade d     d columns below sum to 9 and pass a carry on, d = 2 and up
    quiet nines   one or more columns below sum to 9, and no carry arrives

In 00445+00555 the digit A3 is a cascade 2. For each digit and look-ahead the questions are drawn
uniformly among those that have it; quiet nines have every depth in equal numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

import msgspec
import numpy as np
from jaxtyping import Int

from carryscope.core.errors import CallError
from carryscope.core.evidence import Mean, Share
from carryscope.core.progress import Progress
from carryscope.model.prediction import answer
from carryscope.model.transformer import Transformer
from carryscope.run import Run
from carryscope.sweeps.running import trained
from carryscope.task.operation import Array, State
from carryscope.task.questions import Questions
from carryscope.task.sampling import uniform, with_states
from carryscope.task.strata import LookAhead, look_ahead_probabilities
from carryscope.training.config import ModelPart, RunConfig, all_but, part_of
from carryscope.training.loop import train
from carryscope.training.presets import changed, run_config, started_config
from paper.draw import uniform_states
from paper.study import Jobs, Study, page

BASE = "base"
BASE_RECIPE = run_config("paper-5", {"stream": "ours", "steps": 28_125})
"""The paper's recipe with our batches, on the 1.8 million questions that its text names."""

STEPS = 5000
"""Steps of each variant, as many as the paper's tables have."""

SMOOTHED = 125
"""Steps over which a training loss is averaged."""

UNIFORM_QUESTIONS = 10_000
"""Fresh uniform questions for whole answers."""

EACH = 1000
"""Questions for each digit and look-ahead: an interval reaches at most 3.1 % to either side."""

AS_GOOD = 2
"""By convention a loss within this factor of the base's counts as the same."""

EXAM_SEED = 20240613
"""Draws the questions; training batches are drawn from (seed, step)."""


class CaseRight(msgspec.Struct, frozen=True, kw_only=True):
    """One answer digit in one case."""

    digit: str
    case: str
    right: Share
    """How often the digit is right, teacher-forced."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One model of the study."""

    name: str
    about: str
    weights_sha256: str
    seed: int
    steps: int
    trained: int
    """Parameters that were trained."""
    training_loss: float
    """Its training loss after as many steps as the variants have."""
    held_out_loss: Mean
    """On the fixed held-out questions of every training, enriched by the paper's rule."""
    uniform_right: Share
    """Whole answers right, of fresh uniform questions; free-running, it is the same number."""
    right: list[CaseRight]

    def by_case(self) -> dict[str, Share]:
        """Each case over all digits that have it."""
        cases = dict.fromkeys(cell.case for cell in self.right)
        cells = {case: [c.right for c in self.right if c.case == case] for case in cases}
        return {
            case: Share.measured(sum(s.count for s in shares), sum(s.of for s in shares))
            for case, shares in cells.items()
        }


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


def rounds(runs: Path) -> list[Jobs]:
    """The base, then its variants."""
    variants = {v.name: partial(_variant, v, runs / BASE, STEPS) for v in VARIANTS}
    return [{BASE: partial(_base, BASE_RECIPE, STEPS)}, variants]


def _base(
    recipe: RunConfig, steps: int, directory: Path, threads: int, progress: Progress
) -> Subject:
    run = trained(recipe, directory, threads=threads, progress=progress)
    return _measured(BASE, "The base", run, steps)


def _variant(
    variant: Variant, base: Path, steps: int, directory: Path, threads: int, progress: Progress
) -> Subject:
    """A variant, trained from wherever it stands, then measured."""
    start, config = base if variant.renew else None, variant.config(Run(base), steps)
    train(config, directory, start_from=start, threads=threads, progress=progress)
    return _measured(variant.name, variant.about, Run(directory), steps)


def _measured(name: str, about: str, run: Run, steps: int) -> Subject:
    """A model in the exam, on the held-out questions and on uniform ones."""
    model, recipe, metrics = run.model(), run.config.training, run.metrics()
    assert recipe is not None
    drawn = uniform(np.random.default_rng((EXAM_SEED, 0)), UNIFORM_QUESTIONS, model.config.digits)
    learning = [p for n, p in model.named_parameters() if part_of(n) not in recipe.freeze]
    return Subject(
        name=name,
        about=about,
        weights_sha256=run.weights_sha256,
        seed=recipe.seed,
        steps=len(metrics),
        trained=sum(parameter.numel() for parameter in learning),
        training_loss=fmean(record.loss for record in metrics[:steps][-SMOOTHED:]),
        held_out_loss=run.training().held_out_loss,
        uniform_right=Share.of_hits(answer(model, drawn, free_running=False).correct),
        right=sit(model),
    )


def exam(digits: int, each: int = EACH) -> dict[LookAhead, Questions]:
    """The questions for models of so many digits, by the digit and look-ahead they are for."""
    generator = np.random.default_rng((EXAM_SEED, digits))
    return {
        case: with_states(generator, _states(generator, case, digits, each))
        for case in look_ahead_probabilities(digits)
    }


def _states(
    generator: np.random.Generator, case: LookAhead, digits: int, each: int
) -> Int[Array, "batch column"]:
    """The state of every column: as the case demands, elsewhere as in uniform questions."""
    states = uniform_states(generator, each, digits)
    last = case.digit - case.depth
    states[:, last : case.digit] = State.PROPAGATE
    if last:
        states[:, last - 1] = State.GENERATE if case.carrying else State.KILL
    return states


def sit(model: Transformer, each: int = EACH) -> list[CaseRight]:
    """How a model does in the exam, case by case, digit by digit."""
    hits: dict[tuple[str, int], list[Array]] = {}
    for case, questions in exam(model.config.digits, each).items():
        right = answer(model, questions, free_running=False).right[:, -1 - case.digit]
        hits.setdefault((case_of(case), case.digit), []).append(right)
    cases = ("BA", "UC1", "simple US9", *(f"cascade {d}" for d in range(2, 20)), "quiet nines")
    return [
        CaseRight(digit=f"A{digit}", case=case, right=Share.of_hits(np.concatenate(found)))
        for (case, digit), found in sorted(
            hits.items(), key=lambda item: (cases.index(item[0][0]), -item[0][1])
        )
    ]


def case_of(look_ahead: LookAhead) -> str:
    """The name of the case."""
    if not look_ahead.carrying:
        return "quiet nines" if look_ahead.depth else "BA"
    return ("UC1", "simple US9", f"cascade {look_ahead.depth}")[min(2, look_ahead.depth)]


def pages(subjects: Sequence[Subject]) -> dict[str, str]:
    """What the study found, and all models in one table."""
    known = {one.name: one for one in subjects}
    found = {name: known[name] for name in (BASE, *(variant.name for variant in VARIANTS))}
    questions = EACH * len(look_ahead_probabilities(5))
    name = "mlp-study.md"
    return {name: page(name, found=found, as_good=AS_GOOD, questions=questions)}


STUDY = Study("mlp", Subject, pages, rounds)
