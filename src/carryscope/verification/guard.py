"""A guard: which questions to refuse, so that what is left is answered better.

In: a measured risk. Out: a `Guard`. A model that fails where two columns in a row pass a carry on
is guarded by refusing such questions. That takes no model: the digits of the question show it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from carryscope.verification.estimate import Rate, weighted_rate
from carryscope.verification.risk import RiskFinding, StratumRisk
from carryscope.verification.risk_verdict import UNSAFE


class Guard(NamedTuple):
    """Refuse questions in which this many neighbouring columns pass a carry on."""

    columns: int
    refused: float
    """The share of all questions that are refused."""
    wrong: Rate
    """How often an answer that is given is wrong."""


def guard(risk: RiskFinding) -> Guard | None:
    """The guard at the shallowest look-ahead that is unsafe; none if none is, or all are."""
    unsafe = [case.depth for case in risk.cases if case.wrong.low >= UNSAFE]
    if not unsafe or not min(unsafe):
        return None
    columns = min(unsafe)
    kept = [stratum for stratum in risk.strata if longest_run(stratum.name) < columns]
    if not kept:
        return None
    refused = 1 - sum(stratum.probability for stratum in kept)
    return Guard(columns, refused, _wrong(kept, exact=risk.exhaustive))


def longest_run(stratum: str) -> int:
    """How many neighbouring columns propagate, in each question of a stratum.

    Up to six digits its name has a letter for each column; beyond, it says how long the longest
    runs are.
    """
    if lengths := re.findall(r"\d+", stratum):
        return max(map(int, lengths))
    return max(map(len, re.findall("P+", stratum)), default=0)


def _wrong(kept: list[StratumRisk], *, exact: bool) -> Rate:
    weight = np.array([stratum.probability for stratum in kept])
    asked = np.array([stratum.failed.of for stratum in kept])
    failed = np.array([stratum.failed.count for stratum in kept])
    if exact:
        return Rate.exactly(int(failed.sum()), int(asked.sum()))
    return weighted_rate(weight / weight.sum(), asked, failed)
