"""What the risk of a model comes to, as records that are kept as JSON."""

from __future__ import annotations

import msgspec

from carryscope.core.evidence import Share
from carryscope.verification.estimate import Rate
from carryscope.verification.failures import FailureSearch
from carryscope.version import __version__


class StratumRisk(msgspec.Struct, frozen=True, kw_only=True):
    """One stratum."""

    name: str
    probability: float
    failed: Share
    contribution: float
    """Its part in the chance of a wrong answer: probability times share that failed."""
    simplest: str | None
    """A question of the stratum that fails, shrunk to few non-zero digits; none if none failed."""


class LikelyFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern that fails, and the simplest question that shows it."""

    stratum: str
    share_of_failures: float
    """Of all wrong answers, how many are of this pattern."""
    rate: float
    """How many questions of the pattern fail."""
    question: str


class DigitRisk(msgspec.Struct, frozen=True, kw_only=True):
    """One answer token."""

    digit: str
    teacher_forced: Rate
    free_running: Rate


class CaseRisk(msgspec.Struct, frozen=True, kw_only=True):
    """One answer digit at one look-ahead depth: the paper's central finding, by numbers."""

    digit: str
    depth: int
    carrying: bool
    probability: float
    wrong: Rate
    """The chance that the digit is wrong, teacher-forced, given this look-ahead."""
    asked: int


class NaiveTest(msgspec.Struct, frozen=True, kw_only=True):
    """What the usual test, a million uniform questions, would say; and what it would take."""

    questions: int
    low: float
    high: float
    """Its interval, if it met with just the estimated share of failures."""
    for_our_width: int
    """Uniform questions it would need for an interval as narrow as ours."""


class RiskFinding(msgspec.Struct, frozen=True, kw_only=True):
    """How often a model fails, and where."""

    package_version: str
    weights_sha256: str
    seed: int
    questions: str
    """How many there are: 10^(2n), in decimal."""
    evaluated: int
    exhaustive: bool
    width: float
    budget: int
    teacher_forced: Rate
    """The chance of a wrong answer over all questions."""
    free_running: Rate
    """The same number: up to the first wrong token both read the same."""
    digits: list[DigitRisk]
    cases: list[CaseRisk]
    strata: list[StratumRisk]
    """Those that were met failing, likeliest failures first; then all others."""
    failures: list[LikelyFailure]
    search: FailureSearch
    naive: NaiveTest
    verdict: str

    def answers(self, weights_sha256: str, seed: int, width: float, budget: int) -> bool:
        """Whether this is what would be found now, at least as precisely as is asked for."""
        same = (self.package_version, self.weights_sha256, self.seed) == (
            __version__,
            weights_sha256,
            seed,
        )
        narrow = self.teacher_forced.relative_width <= width
        return same and (self.exhaustive or narrow or self.evaluated >= budget)
