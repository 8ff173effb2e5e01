"""How often an answer digit is wrong, by how far it must look ahead: the paper's central finding.

In: a `Tally`. Out: a `CaseRisk` for every answer digit and look-ahead. In 00445+00555 the digit A3
has a carrying look-ahead of depth 2: two columns pass a carry on to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

import msgspec

from carryscope.task.operation import Array
from carryscope.task.strata import look_ahead_probabilities, sign_probabilities
from carryscope.verification.estimate import Rate, weighted_rate
from carryscope.verification.trial import Tally

ALL_DIGITS = "all"
"""Stands for every answer digit together."""


class CaseRisk(msgspec.Struct, frozen=True, kw_only=True):
    """How often an answer digit is wrong at one look-ahead."""

    digit: str
    """`A3`, or `all`."""
    depth: int
    """How many columns directly below propagate."""
    carrying: bool
    """Whether a carry arrives through them."""
    probability: float
    """The chance that the digit has this look-ahead."""
    wrong: Rate
    """The chance that it is wrong then, teacher-forced."""
    asked: int

    @classmethod
    def pooled(cls, cases: Iterable[CaseRisk]) -> CaseRisk:
        """All answer digits of one look-ahead together, each weighted by its probability.

        The ends of the interval are the means of the digits' ends, which is conservative.
        """
        cases = list(cases)
        chances = [case.probability for case in cases]
        rates = [(case.wrong.estimate, case.wrong.low, case.wrong.high) for case in cases]
        return cls(
            digit=ALL_DIGITS,
            depth=cases[0].depth,
            carrying=cases[0].carrying,
            probability=fmean(chances),
            wrong=Rate(*(fmean(ends, weights=chances) for ends in zip(*rates, strict=True))),
            asked=sum(case.asked for case in cases),
        )


def by_look_ahead(cases: Iterable[CaseRisk]) -> dict[tuple[int, bool], list[CaseRisk]]:
    """The cases of each (depth, carrying): the shallowest first, carrying before quiet."""
    groups: dict[tuple[int, bool], list[CaseRisk]] = {}
    for case in sorted(cases, key=lambda c: (c.depth, not c.carrying)):
        groups.setdefault((case.depth, case.carrying), []).append(case)
    return groups


def pooled(cases: Iterable[CaseRisk]) -> list[CaseRisk]:
    """A case for each look-ahead, answer digits at all places together."""
    return [CaseRisk.pooled(group) for group in by_look_ahead(cases).values()]


def case_risks(tally: Tally) -> list[CaseRisk]:
    """Every look-ahead, the highest digit first; before it, the sign of a difference."""
    cases = []
    asked_for = (tally.partition.digits, tally.partition.operation)
    chances = look_ahead_probabilities(*asked_for) | sign_probabilities(*asked_for)
    for case in sorted(chances, key=lambda c: (-c.digit, c.depth, not c.carrying)):
        place = (slice(None), case.digit, case.depth, int(case.carrying))
        asked, wrong = tally.case_asked[place], tally.case_wrong[place]
        cases.append(
            CaseRisk(
                digit=f"A{case.digit}",
                depth=case.depth,
                carrying=case.carrying,
                probability=float(chances[case]),
                wrong=_rate(tally, asked, wrong),
                asked=int(asked.sum()),
            )
        )
    return cases


def _rate(tally: Tally, asked: Array, wrong: Array) -> Rate:
    """The rate among the questions of a case. A case that was never tested may always fail.

    Up to six digits a stratum lies completely inside a case or outside. Beyond that, the part
    that lies inside is estimated from the sample, and the interval does not include its error.
    """
    seen = asked > 0
    if not seen.any():
        return Rate(0.0, 0.0, 1.0)
    if tally.exhaustive:
        return Rate.exactly(int(wrong.sum()), int(asked.sum()))
    inside = tally.partition.weights[seen] * asked[seen] / tally.asked[seen]
    return weighted_rate(inside / inside.sum(), asked[seen], wrong[seen])
