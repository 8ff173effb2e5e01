"""Does an algorithm predict a model's answers, the right ones and the wrong ones?

In: a model, questions and algorithms. Out: `AgreementFinding`.

Two adders that agree where both are right show little. So the model's errors are counted
separately: how many the algorithm makes too, and how many with the same answer. All answers are
teacher-forced. Probabilities are over uniform questions. Algorithms do not predict the sign of a
signed answer, so it is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from carryscope.model.prediction import answer
from carryscope.model.transformer import Transformer
from carryscope.task.operation import Array
from carryscope.verification.algorithms import Algorithm
from carryscope.verification.estimate import Rate, WeightedSample, WeightedShare


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Whole answers of the model and of one algorithm."""

    agreement: Rate
    """Model and algorithm give the same."""
    model_wrong: Rate
    algorithm_wrong: Rate
    also_wrong: WeightedShare | None
    """Where the model is wrong: the algorithm is wrong too. Null if the model is never wrong."""
    errors_alike: WeightedShare | None
    """Where either is wrong: both give the same wrong answer. 1 if they make the same errors, 0 if
    they share none, as with exact addition."""
    left_wrong: WeightedShare | None
    """Where the algorithm is right: the model is wrong. The failure rate that is left if the model
    only gets questions that the algorithm answers correctly."""


class AlgorithmAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """One algorithm compared with the model."""

    name: str
    about: str
    control: bool
    """Wrong on purpose."""
    same_as: str | None
    """An earlier algorithm that gave the same answer to every question."""
    answer: Agreement


class AgreementFinding(msgspec.Struct, frozen=True, kw_only=True):
    """All algorithms compared with the model."""

    questions: int
    strata: int
    algorithms: list[AlgorithmAgreement]
    best: str | None
    """The one that agrees with the model on most whole answers; null if none ever does."""
    runner_up: str | None
    """The next one that gives different answers."""
    difference: Rate | None
    """How much more often the best agrees than the runner-up."""
    best_on_errors: str | None
    """The one whose errors are closest to the model's; null if none shares any."""

    def of(self, name: str) -> AlgorithmAgreement:
        """One algorithm by its name."""
        return next(found for found in self.algorithms if found.name == name)


def study_agreement(
    model: Transformer, sample: WeightedSample, algorithms: Sequence[Algorithm]
) -> AgreementFinding:
    """Compare every algorithm with the answers of a model, digits units first."""
    given = answer(model, sample.questions, free_running=False).predicted
    said = given[:, ::-1][:, : sample.columns.digits + 1]
    stated = {a.name: a.answer(sample.columns) for a in algorithms}
    found: list[AlgorithmAgreement] = []
    for algorithm in algorithms:
        ours = stated[algorithm.name]
        twins = [one for one in found if one.same_as is None and (stated[one.name] == ours).all()]
        found.append(
            AlgorithmAgreement(
                name=algorithm.name,
                about=algorithm.about,
                control=algorithm.control,
                same_as=twins[0].name if twins else None,
                answer=_agreement(sample, said, ours),
            )
        )
    able = [one for one in found if not one.control and one.same_as is None]
    able = [one for one in able if one.answer.agreement.estimate > 0]
    ranked = sorted(able, key=lambda one: -one.answer.agreement.estimate)
    hits = [(stated[one.name] == said).all(axis=1) for one in ranked[:2]]
    shared = [(one.answer.errors_alike, one.name) for one in ranked]
    alike = {name: share.estimate for share, name in shared if share and share.estimate}
    return AgreementFinding(
        questions=len(sample),
        strata=len(sample.partition),
        algorithms=found,
        best=ranked[0].name if ranked else None,
        runner_up=ranked[1].name if len(ranked) > 1 else None,
        difference=sample.difference(*hits) if len(hits) > 1 else None,
        best_on_errors=max(alike, key=lambda name: alike[name], default=None),
    )


def _agreement(sample: WeightedSample, said: Array, stated: Array) -> Agreement:
    truth = sample.columns.answer()
    alike = (said == stated).all(axis=1)
    model_wrong, algorithm_wrong = ((x != truth).any(axis=1) for x in (said, stated))
    return Agreement(
        agreement=sample.rate_of_not(~alike),
        model_wrong=sample.rate(model_wrong),
        algorithm_wrong=sample.rate(algorithm_wrong),
        also_wrong=sample.share(algorithm_wrong, model_wrong),
        errors_alike=sample.share(alike, model_wrong | algorithm_wrong),
        left_wrong=sample.share(model_wrong, ~algorithm_wrong),
    )
