"""How well algorithms describe a model: its answers, its errors and its inside.

In: a model. Out: `FaithfulnessFinding`, with a verdict for someone who must decide what to trust
the model with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from carryscope.core.evidence import Finding
from carryscope.core.progress import Progress, silent
from carryscope.core.words import with_interval
from carryscope.dissection.attention import study_attention
from carryscope.dissection.engine import Engine
from carryscope.dissection.samples import Samples
from carryscope.model.files import weights_hash
from carryscope.model.transformer import Transformer
from carryscope.task.columns import Columns
from carryscope.verification.agreement import Agreement, AgreementFinding, study_agreement
from carryscope.verification.algorithms import AS_DISSECTED, shipped
from carryscope.verification.estimate import WeightedSample
from carryscope.verification.own_algorithm import own_algorithm
from carryscope.verification.scrubbing import POOL, Scrubbed, Scrubber
from carryscope.verification.sight import SightFinding, study_sight
from carryscope.version import __version__

PREDICTS_ANSWERS = 0.99
"""An algorithm predicts a model's answers if it agrees on this share, interval included."""

PREDICTS_ERRORS = 0.9
"""It predicts the errors if, where either is wrong, both give the same answer this often."""


class FaithfulnessFinding(Finding, frozen=True, kw_only=True):
    """A model compared with algorithms."""

    package_version: str
    weights_sha256: str
    seed: int
    digits: int
    questions: int
    """Questions used for the agreement and for the inside, together."""
    own: str | None = None
    """The name of the user's own algorithm, if there is one."""
    agreement: AgreementFinding
    """The answers of the model and of the algorithms."""
    inside: list[Scrubbed]
    """Answers that stay when everything an algorithm calls irrelevant is resampled."""
    sight: SightFinding | None = None
    """Whether digits are wrong where no head reads the column that decides. Null in findings made
    before this was measured."""
    verdict: str
    """The result in a paragraph."""


def faithful(
    model: Transformer,
    *,
    seed: int = 0,
    own: Callable[[Columns], Any] | None = None,
    progress: Progress = silent,
) -> FaithfulnessFinding:
    """Compare a model with the shipped algorithms, and with one of the user's own."""
    layout = model.config.layout
    digits, operation = layout.digits, layout.operation
    samples = Samples.of(layout, seed)
    engine = Engine(model, samples.varied)
    attention = study_attention(engine, samples)
    read = attention if model.config.layers == 1 else None  # deeper rows hold what others computed
    *algorithms, control = shipped(layout.digits, read, layout.operation)
    if own is not None:
        algorithms.append(own_algorithm(own, layout.digits, layout.operation))
    algorithms.append(control)
    with progress("faithfulness", total=1 + len(algorithms), unit="steps") as advance:
        generator = samples.generator("agreement")
        sample = WeightedSample.draw(generator, digits, operation=operation)
        agreement = study_agreement(model, sample, algorithms)
        sight = study_sight(model, seed=seed)
        advance()
        scrubber, inside = Scrubber(engine, samples, attention), []
        for algorithm in algorithms:
            inside.append(scrubber.by(algorithm))
            advance(1, algorithm.name)
    return FaithfulnessFinding(
        package_version=__version__,
        weights_sha256=weights_hash(model),
        seed=seed,
        digits=digits,
        questions=len(sample) + POOL,
        own=None if own is None else algorithms[-2].name,
        agreement=agreement,
        inside=inside,
        sight=sight,
        verdict=faithfulness_verdict(agreement),
    )


def faithfulness_verdict(agreement: AgreementFinding) -> str:
    """What the numbers mean."""
    count = sum(not one.control and one.same_as is None for one in agreement.algorithms)
    if agreement.best is None:
        return (
            f"None of the {count} algorithms describes this model: no algorithm predicts any of "
            f"its {agreement.questions:,} answers."
        )
    name, best = _named(agreement.best), agreement.of(agreement.best).answer
    ranking = (
        f"Of {count} algorithms, {name} agrees best: it gives the model's whole answer to "
        f"{with_interval(best.agreement)} of all questions (teacher-forced)."
    )
    if agreement.difference is not None and agreement.difference.low <= 0:
        ranking += f" It is not significantly better than {_named(agreement.runner_up)}."
    return f"{_headline(name, best)} {ranking} {_errors(agreement, best)}"


def _headline(name: str, best: Agreement) -> str:
    if best.agreement.low < PREDICTS_ANSWERS:
        return "None of the algorithms describes this model: none predicts its answers reliably."
    alike, subject = best.errors_alike, f"{name[:1].upper()}{name[1:]}"
    if alike is None:
        return f"{subject} predicts every answer tested. Neither made an error."
    if alike.low >= PREDICTS_ERRORS:
        return (
            f"{subject} predicts this model's answers, errors included: where the algorithm fails "
            "the model fails, and almost nowhere else."
        )
    return (
        f"{subject} predicts most of this model's answers but not its errors: do not use it to "
        "decide which answers to trust."
    )


def _errors(agreement: AgreementFinding, best: Agreement) -> str:
    if best.also_wrong is None:
        return "The model made no error in the sample, so there are none to compare."
    text = f"The model is wrong on {with_interval(best.model_wrong)} of all questions."
    if agreement.best_on_errors is None:
        return f"{text} No algorithm shares any of these errors."
    near = agreement.of(agreement.best_on_errors).answer
    assert near.also_wrong is not None
    return (
        f"{text} These errors are predicted best by {_named(agreement.best_on_errors)}: it makes "
        f"{with_interval(near.also_wrong)} of them."
    )


def _named(name: str | None) -> str:
    """An algorithm's name in a sentence."""
    return "the dissected algorithm" if name == AS_DISSECTED else str(name)
