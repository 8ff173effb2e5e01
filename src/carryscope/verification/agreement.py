"""Do a model and an algorithm say the same, where they are right and where they are wrong?

In: a model and stated algorithms. Out: `AgreementFinding`.

That two adders agree on sums both get right says little. So the model's errors are counted by
themselves: how many the algorithm makes too, and with the same digit. All answers are
teacher-forced. Probabilities are over uniform questions; the sign of a signed answer, of which
the algorithms say nothing, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from carryscope.verification.stratified import Difference, Sample, WeightedShare

WORST = 5
"""Strata shown for each algorithm."""


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Whole answers, or one answer digit."""

    scope: str
    """`answer`, or a digit such as `A3`."""
    agreement: Rate
    """Model and algorithm say the same."""
    model_wrong: Rate
    algorithm_wrong: Rate
    where_right: WeightedShare | None
    """Where the model is right: both say the same."""
    also_wrong: WeightedShare | None
    """Where the model is wrong: the algorithm is wrong too,"""
    same_wrong: WeightedShare | None
    """and says the same. Null if the model makes no error in the sample."""
    model_also_wrong: WeightedShare | None
    """Where the algorithm is wrong: the model is wrong too."""
    errors_alike: WeightedShare | None
    """Where either is wrong: both are, and say the same. 1 if the errors of one are those of the
    other, 0 if they share none; exact addition, which makes none, shares none."""
    left_wrong: WeightedShare | None
    """Where the algorithm is right: the model is wrong all the same. What is left of its failures
    if it is only asked what the algorithm gets right."""


class DepthConfusion(msgspec.Struct, frozen=True, kw_only=True):
    """Right and wrong against right and wrong, for answer digits of one look-ahead."""

    depth: int
    carrying: bool
    asked: int
    """Answer digits of the sample."""
    chance: float
    """The share of all answer digits that have this look-ahead."""
    both_right: float
    """This and the next three add up to 1: shares of uniform answer digits of this kind."""
    only_model_right: float
    only_algorithm_right: float
    both_wrong: float
    both_wrong_alike: float
    """Of all: both wrong, with the same digit."""


class WorstStratum(msgspec.Struct, frozen=True, kw_only=True):
    """A stratum in which model and algorithm part, and a question that shows it."""

    stratum: str
    probability: float
    agreement: Share
    example: str
    truth: str
    model: str
    """What the model says, teacher-forced."""
    algorithm: str


class AlgorithmAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """One algorithm against the model."""

    name: str
    about: str
    control: bool
    """Wrong on purpose."""
    same_as: str | None
    """An algorithm before it that gave the same answer to every question."""
    answer: Agreement
    digits: list[Agreement]
    """From the highest digit down."""
    by_depth: list[DepthConfusion]
    worst: list[WorstStratum]


class AgreementFinding(msgspec.Struct, frozen=True, kw_only=True):
    """All algorithms against the model."""

    questions: int
    strata: int
    algorithms: list[AlgorithmAgreement]
    best: str | None
    """The one that gives the model's whole answer most often; null if none ever does."""
    runner_up: str | None
    """The next that is not the same as another."""
    difference: Difference | None
    """How much more often the best agrees than the runner-up."""
    best_on_errors: str | None
    """The one whose errors are most nearly the model's; null if none shares any."""

    def of(self, name: str) -> AlgorithmAgreement:
        """One algorithm by its name."""
        return next(found for found in self.algorithms if found.name == name)


def answer_digits(
    model: Transformer, sample: Sample, on_progress: Callable[[int], object] = lambda _: None
) -> Int[Array, "batch digit"]:
    """What the model says at each answer digit, teacher-forced, units first."""
    answers = answer(model, sample.questions, free_running=False, on_progress=on_progress)
    return answers.predicted[:, ::-1][:, : sample.columns.digits + 1]


def study_agreement(
    sample: Sample,
    said: Int[Array, "batch digit"],
    algorithms: Sequence[Algorithm],
    layout: Format,
) -> AgreementFinding:
    """Hold every algorithm against what the model said."""
    truth = exact_sum(sample.questions)
    trials = [_Trial(sample, layout, truth, said, a.answer(sample.columns)) for a in algorithms]
    found: list[AlgorithmAgreement] = []
    for algorithm, trial in zip(algorithms, trials, strict=True):
        earlier = zip(found, trials, strict=False)
        same = (
            f.name for f, t in earlier if f.same_as is None and (t.stated == trial.stated).all()
        )
        found.append(
            AlgorithmAgreement(
                name=algorithm.name,
                about=algorithm.about,
                control=algorithm.control,
                same_as=next(same, None),
                answer=trial.whole(),
                digits=[trial.at(k) for k in reversed(range(truth.shape[1]))],
                by_depth=trial.by_depth(),
                worst=trial.worst(),
            )
        )
    ranked = _ranked(found)
    names = [found[i].name for i in ranked[:2]]
    pair = [(trials[i].stated == said).all(axis=1) for i in ranked[:2]]
    return AgreementFinding(
        questions=len(sample),
        strata=len(sample.partition),
        algorithms=found,
        best=names[0] if names else None,
        runner_up=names[1] if len(names) > 1 else None,
        difference=sample.difference(*pair) if len(pair) > 1 else None,
        best_on_errors=_best_on_errors([found[i] for i in ranked]),
    )


def _ranked(found: list[AlgorithmAgreement]) -> list[int]:
    """The candidates, best first. One that never gives the model's answer is none."""
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
class _Trial:
    """One algorithm's answers beside the model's and the true ones."""

    sample: Sample
    layout: Format
    truth: Int[Array, "batch digit"]
    said: Int[Array, "batch digit"]
    stated: Int[Array, "batch digit"]

    def whole(self) -> Agreement:
        """Whole answers."""
        return self._agreement("answer", slice(None))

    def at(self, k: int) -> Agreement:
        """One answer digit."""
        return self._agreement(f"A{k}", slice(k, k + 1))

    def _agreement(self, scope: str, digits: slice) -> Agreement:
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

    def by_depth(self) -> list[DepthConfusion]:
        """All answer digits together, by their look-ahead."""
        columns, count = self.sample.columns, self.truth.shape[1]
        chances = look_ahead_probabilities(columns.digits)
        found = []
        for depth, carrying in sorted({(case.depth, case.carrying) for case in chances}):
            here = (columns.look_ahead == depth) & (columns.carrying == carrying)
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

    def worst(self) -> list[WorstStratum]:
        """The strata with the least agreement; among equals the likelier first."""
        sample, weights = self.sample, self.sample.partition.weights
        parted = (self.said != self.stated).any(axis=1)
        misses = sample.count(parted)
        order = np.lexsort((-weights, -misses / sample.asked))
        return [self._stratum(int(s), parted) for s in order[:WORST] if misses[s]]

    def _stratum(self, stratum: int, parted: Bool[Array, " batch"]) -> WorstStratum:
        sample = self.sample
        inside = sample.stratum == stratum
        agreed, asked = int((inside & ~parted).sum()), int(inside.sum())
        example = int(np.flatnonzero(inside & parted)[0])
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
