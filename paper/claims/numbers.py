"""How a number is taken from a finding: its run, its interval, and how much is behind it.

In: shares, means, counts and steps. Out: `Number`. Also the paper's own numbers, as far as their
printed digits go.
"""

from __future__ import annotations

from fractions import Fraction

from carryscope.core.evidence import Mean, Share
from carryscope.core.words import Interval
from carryscope.report.paper import paper_values
from carryscope.verification.stratified import WeightedShare
from paper.claims.claims import Kind, Number
from paper.claims.reading import Study


def _number(
    kind: Kind,
    what: str,
    study: Study | None,
    value: Interval | float | None,
    *,
    of: int | None = None,
    of_what: str = "questions",
    paper: str | None = None,
) -> Number:
    """A number with the interval that its value has, if any."""
    known = value if isinstance(value, Interval) else None
    return Number(
        what=what,
        run=study.name if study else None,
        kind=kind,
        estimate=value.estimate if isinstance(value, Interval) else value,
        low=known.low if known else None,
        high=known.high if known else None,
        of=of,
        of_what=of_what,
        paper=paper,
    )


def share(
    what: str, study: Study | None, value: Share | WeightedShare, *, of_what: str = "questions"
) -> Number:
    """A share as a number; without data it has no estimate."""
    known = value if value.of > 0 else None
    return _number("share", what, study, known, of=value.of, of_what=of_what)


def rate(
    what: str,
    study: Study,
    value: Interval | float | None,
    of: int,
    *,
    of_what: str = "questions",
    paper: str | None = None,
) -> Number:
    """A share that was weighted or averaged over so many things; a float has no interval."""
    return _number("share", what, study, value, of=of, of_what=of_what, paper=paper)


def loss(
    what: str,
    study: Study | None,
    value: Mean,
    *,
    of_what: str = "questions",
    paper: str | None = None,
) -> Number:
    """A mean loss."""
    return _number("loss", what, study, value, of=value.of, of_what=of_what, paper=paper)


def noise_of(what: str, study: Study, deviation: float) -> Number:
    """The standard deviation of the losses of the last steps."""
    return _number("loss", what, study, deviation, of=len(study.last_steps), of_what="steps")


def count(what: str, study: Study, value: int, *, of: int | None = None, of_what: str) -> Number:
    """A count, which has no interval."""
    return _number("count", what, study, float(value), of=of, of_what=of_what)


def counted(what: str, value: Fraction | int) -> Number:
    """A share of all questions with 5 digits, by counting, without a model."""
    return _number("share", what, None, float(value), of=10**10)


def step(what: str, study: Study, value: int | None) -> Number:
    """A training step; None if it was never reached."""
    return _number("step", what, study, _float(value), of_what="steps")


def steps(what: str, study: Study, value: int | None) -> Number:
    """How many training steps something took; None if it never ended."""
    return _number("steps", what, study, _float(value), of_what="steps")


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


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
