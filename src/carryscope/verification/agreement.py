"""Does an algorithm predict a model's answers, the right ones and the wrong ones?

In: the model's answers and algorithms. Out: `AgreementFinding`.

Two adders that agree where both are right show little. So the model's errors are counted
separately: how many the algorithm makes too, and how many with the same digit. All answers are
teacher-forced. Probabilities are over uniform questions. Algorithms do not predict the sign of a
signed answer, so it is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from jaxtyping import Bool, Int

from carryscope.core.evidence import Share
from carryscope.model.prediction import answer
from carryscope.model.transformer import Transformer
from carryscope.task.algorithms import exact_sum
from carryscope.task.operation import Array
from carryscope.task.strata import LookAhead, look_ahead_probabilities
from carryscope.task.tokens import Format
from carryscope.verification.algorithms import Algorithm
from carryscope.verification.estimate import Rate
from carryscope.verification.stratified import Sample, WeightedShare

WORST = 5
"""Strata shown for each algorithm."""


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Whole answers, or one answer digit."""

    scope: str
    """`answer`, or a digit such as `A3`."""
    agreement: Rate
    """Model and algorithm give the same."""
    model_wrong: Rate
    algorithm_wrong: Rate
    where_right: WeightedShare | None
    """Where the model is right: the algorithm is right too."""
    also_wrong: WeightedShare | None
    """Where the model is wrong: the algorithm is wrong too. Null if the model is never wrong."""
    same_wrong: WeightedShare | None
    """Where the model is wrong: the algorithm gives the same wrong answer."""
    model_also_wrong: WeightedShare | None
    """Where the algorithm is wrong: the model is wrong too."""
    errors_alike: WeightedShare | None
    """Where either is wrong: both give the same wrong answer. 1 if they make the same errors, 0 if
    they share none, as with exact addition."""
    left_wrong: WeightedShare | None
    """Where the algorithm is right: the model is wrong. The failure rate that is left if the model
    only gets questions that the algorithm answers correctly."""


class DepthConfusion(msgspec.Struct, frozen=True, kw_only=True):
    """The confusion matrix of model and algorithm for answer digits of one look-ahead."""

    depth: int
    carrying: bool
    asked: int
    """Answer digits of the sample."""
    chance: float
    """The share of all answer digits that have this look-ahead."""
    both_right: float
    """This and the next three add up to 1."""
    only_model_right: float
    only_algorithm_right: float
    both_wrong: float
    both_wrong_alike: float
    """Of all: both wrong, with the same digit."""


class WorstStratum(msgspec.Struct, frozen=True, kw_only=True):
    """A stratum in which model and algorithm disagree, and an example."""

    stratum: str
    probability: float
    agreement: Share
    example: str
    truth: str
    model: str
    """The model's answer, teacher-forced."""
    algorithm: str


class AlgorithmAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """One algorithm compared with the model."""

    name: str
    about: str
    control: bool
    """Wrong on purpose."""
    same_as: str | None
    """An earlier algorithm that gave the same answer to every question."""
    answer: Agreement
    digits: list[Agreement]
    """From the highest digit down."""
    by_depth: list[DepthConfusion]
    worst: list[WorstStratum]


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


def answer_digits(model: Transformer, sample: Sample) -> Int[Array, "batch digit"]:
    """The model's answer digits, teacher-forced, units first."""
    answers = answer(model, sample.questions, free_running=False)
    return answers.predicted[:, ::-1][:, : sample.columns.digits + 1]


def study_agreement(
    sample: Sample,
    said: Int[Array, "batch digit"],
    algorithms: Sequence[Algorithm],
    layout: Format,
) -> AgreementFinding:
    """Compare every algorithm with what the model said."""
    truth = exact_sum(sample.questions)
    pairs = [_Pair(sample, layout, truth, said, a.answer(sample.columns)) for a in algorithms]
    found: list[AlgorithmAgreement] = []
    for algorithm, pair in zip(algorithms, pairs, strict=True):
        same = (
            one.name
            for one, earlier in zip(found, pairs, strict=False)
            if one.same_as is None and (earlier.stated == pair.stated).all()
        )
        found.append(pair.agreement(algorithm, next(same, None)))
    ranked = _ranked(found)
    names = [found[i].name for i in ranked[:2]]
    alike = [(pairs[i].stated == said).all(axis=1) for i in ranked[:2]]
    return AgreementFinding(
        questions=len(sample),
        strata=len(sample.partition),
        algorithms=found,
        best=names[0] if names else None,
        runner_up=names[1] if len(names) > 1 else None,
        difference=sample.difference(*alike) if len(alike) > 1 else None,
        best_on_errors=_best_on_errors([found[i] for i in ranked]),
    )


def _ranked(found: list[AlgorithmAgreement]) -> list[int]:
    """The candidates that ever give the model's answer, best first."""
    able = [
        i
        for i, one in enumerate(found)
        if not one.control and one.same_as is None and one.answer.agreement.estimate > 0
    ]
    return sorted(able, key=lambda i: -found[i].answer.agreement.estimate)


def _best_on_errors(ranked: list[AlgorithmAgreement]) -> str | None:
    shared = {f.name: f.answer.errors_alike.estimate for f in ranked if f.answer.errors_alike}
    best = max(shared, key=lambda name: shared[name], default=None)
    return best if best is not None and shared[best] > 0 else None


@dataclass(frozen=True, eq=False)
class _Pair:
    """The answers of the model and of one algorithm, and the true ones."""

    sample: Sample
    layout: Format
    truth: Int[Array, "batch digit"]
    said: Int[Array, "batch digit"]
    stated: Int[Array, "batch digit"]

    def agreement(self, algorithm: Algorithm, same_as: str | None) -> AlgorithmAgreement:
        """All that is compared."""
        return AlgorithmAgreement(
            name=algorithm.name,
            about=algorithm.about,
            control=algorithm.control,
            same_as=same_as,
            answer=self._scope("answer", slice(None)),
            digits=[self._scope(f"A{k}", [k]) for k in reversed(range(self.truth.shape[1]))],
            by_depth=self._by_depth(),
            worst=self._worst(),
        )

    def _scope(self, scope: str, digits: slice | list[int]) -> Agreement:
        truth, said, stated = (x[:, digits] for x in (self.truth, self.said, self.stated))
        alike = (said == stated).all(axis=1)
        model_wrong, algorithm_wrong = ((x != truth).any(axis=1) for x in (said, stated))
        sample = self.sample
        return Agreement(
            scope=scope,
            agreement=sample.rate_of_not(~alike),
            model_wrong=sample.rate(model_wrong),
            algorithm_wrong=sample.rate(algorithm_wrong),
            where_right=sample.share(alike, ~model_wrong),
            also_wrong=sample.share(algorithm_wrong, model_wrong),
            same_wrong=sample.share(alike, model_wrong),
            model_also_wrong=sample.share(model_wrong, algorithm_wrong),
            errors_alike=sample.share(alike, model_wrong | algorithm_wrong),
            left_wrong=sample.share(model_wrong, ~algorithm_wrong),
        )

    def _by_depth(self) -> list[DepthConfusion]:
        """All answer digits together, by their look-ahead."""
        columns, count = self.sample.columns, self.truth.shape[1]
        chances = look_ahead_probabilities(columns.digits)
        found = []
        for depth, carrying in sorted({(case.depth, case.carrying) for case in chances}):
            here = (columns.look_ahead == depth) & (columns.carry_in == carrying)
            if here.any():
                cases = [LookAhead(k, depth, carrying) for k in range(count)]
                chance = float(sum(chances.get(case, 0) for case in cases) / count)
                found.append(self._confusion(depth, carrying, chance, here))
        return found

    def _confusion(
        self, depth: int, carrying: bool, chance: float, here: Bool[Array, "batch digit"]
    ) -> DepthConfusion:
        weight = np.broadcast_to(self.sample.weight[:, None], here.shape)[here]
        truth, said, stated = (x[here] for x in (self.truth, self.said, self.stated))
        model, algorithm = said == truth, stated == truth

        def share(hits: Array) -> float:
            return float(weight[hits].sum() / weight.sum())

        return DepthConfusion(
            depth=depth,
            carrying=carrying,
            asked=len(weight),
            chance=chance,
            both_right=share(model & algorithm),
            only_model_right=share(model & ~algorithm),
            only_algorithm_right=share(~model & algorithm),
            both_wrong=share(~model & ~algorithm),
            both_wrong_alike=share(~model & (said == stated)),
        )

    def _worst(self) -> list[WorstStratum]:
        """The strata with the least agreement; among equals, the likelier first."""
        sample, weights = self.sample, self.sample.partition.weights
        apart = (self.said != self.stated).any(axis=1)
        misses = sample.count(apart)
        order = np.lexsort((-weights, -misses / sample.asked))
        return [self._stratum(int(s), apart) for s in order[:WORST] if misses[s]]

    def _stratum(self, stratum: int, apart: Bool[Array, " batch"]) -> WorstStratum:
        sample = self.sample
        inside = sample.stratum == stratum
        agreed, asked = int((inside & ~apart).sum()), int(inside.sum())
        example = int(np.flatnonzero(inside & apart)[0])
        truth, said, stated = (
            self.layout.text(x[example, ::-1]) for x in (self.truth, self.said, self.stated)
        )
        return WorstStratum(
            stratum=sample.partition.names[stratum],
            probability=float(sample.partition.probabilities[stratum]),
            agreement=Share.measured(agreed, asked),
            example=sample.questions[example : example + 1].texts()[0],
            truth=truth,
            model=said,
            algorithm=stated,
        )
