"""How a number is taken from a finding: its run, its interval, and how much is behind it.

In: shares, means, counts and steps. Out: `Number`. And the paper's own numbers, as far as their
print can be trusted.
"""

from __future__ import annotations

from fractions import Fraction

from carryscope.core.evidence import Mean, Share
from carryscope.report.paper import paper_values
from carryscope.verification.estimate import Rate
from carryscope.verification.stratified import WeightedShare
from paper.claims.claims import Number
from paper.claims.reading import Study


def share(
    what: str,
    run: Study | None,
    value: Share | WeightedShare,
    *,
    of_what: str = "questions",
    paper: str | None = None,
) -> Number:
    """A share of questions as a number; one with no question behind it has no estimate."""
    known = value.of > 0
    return Number(
        what=what,
        run=run.name if run else None,
        kind="share",
        estimate=value.estimate if known else None,
        low=value.low if known else None,
        high=value.high if known else None,
        of=value.of,
        of_what=of_what,
        paper=paper,
    )


def rate(what: str, run: Study, value: Rate | Mean, of: int) -> Number:
    """A chance that was weighed or averaged, from so many questions, as a number."""
    return Number(
        what=what,
        run=run.name,
        kind="share",
        estimate=value.estimate,
        low=value.low,
        high=value.high,
        of=of,
    )


def loss(
    what: str,
    run: Study | None,
    value: Mean,
    *,
    of_what: str = "questions",
    paper: str | None = None,
) -> Number:
    """A mean loss as a number."""
    return Number(
        what=what,
        run=run.name if run else None,
        kind="loss",
        estimate=value.estimate,
        low=value.low,
        high=value.high,
        of=value.of,
        of_what=of_what,
        paper=paper,
    )


def count(what: str, run: Study, value: int, *, of: int | None = None, of_what: str) -> Number:
    """A count, which has no interval."""
    return Number(
        what=what, run=run.name, kind="count", estimate=float(value), of=of, of_what=of_what
    )


def counted(what: str, value: Fraction | int) -> Number:
    """A share of all questions with 5 digits, counted out without a model."""
    return Number(what=what, run=None, kind="share", estimate=float(value), of=10**10)


def step(what: str, run: Study, value: int | None) -> Number:
    """A training step, or that it never came."""
    return Number(what=what, run=run.name, kind="step", estimate=_float(value), of_what="steps")


def steps(what: str, run: Study, value: int | None) -> Number:
    """How many training steps something took, or that it never came to it."""
    return Number(what=what, run=run.name, kind="steps", estimate=_float(value), of_what="steps")


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


def noise_of(what: str, run: Study, deviation: float) -> Number:
    """How much the losses of the last steps vary: their standard deviation."""
    return Number(
        what=what,
        run=run.name,
        kind="loss",
        estimate=deviation,
        of=len(run.last_steps),
        of_what="steps",
    )


def at_most(name: str) -> float:
    """The largest number that the paper would print as its value of this name."""
    text = paper_values()[name].text
    if text.startswith("<"):
        return float(text[1:])
    return float(text) + _half_a_unit(text)


def at_least(name: str) -> float:
    """The least number that the paper would print as its value of this name."""
    text = paper_values()[name].text
    return float(text) - _half_a_unit(text)


def _half_a_unit(text: str) -> float:
    """Half of the last digit that is printed."""
    decimals = len(text.partition(".")[2])
    return float(0.5 * 10**-decimals)
