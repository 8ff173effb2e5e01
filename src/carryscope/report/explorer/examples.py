"""Sums to begin with: one for each class that fits into the model's digits.

In: a number of digits. Out: `Example`s, from no carry at all to one that passes four nines.
"""

from __future__ import annotations

import msgspec

_NO_CARRY = ("12345", "54321")
_CARRIES = ("23816", "15327")
"""Digit for digit, repeated to the left: no column sums to 9."""


class Example(msgspec.Struct, frozen=True):
    """A sum to pick."""

    label: str
    sum: str
    about: str


def examples(digits: int) -> list[Example]:
    """The examples that a model of so many digits can be asked."""
    cases = [
        (1, Example("BA", _lowest(_NO_CARRY, digits), "no column makes a carry")),
        (1, Example("UC1", _lowest(_CARRIES, digits), "carries, each used where it arrives")),
        (2, Example("Simple US9", "25+79", "a carry passes through one nine")),
        (3, Example("Cascade 2", "445+555", "a carry passes through two nines")),
        (4, Example("Cascade 3", "1234+8769", "a carry passes through three nines")),
        (5, Example("Cascade 4", "54321+45679", "a carry passes through four nines")),
    ]
    return [example for least, example in cases if digits >= least]


def _lowest(numbers: tuple[str, str], digits: int) -> str:
    """The lowest digits of two numbers that go on for ever to the left."""
    return "+".join((number * digits)[-digits:] for number in numbers)
