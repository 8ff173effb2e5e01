"""What a certificate says, in words.

In: counts of questions. Out: one paragraph. A question counts only once all its digits do, so at
first nothing is proved of whole questions, and the digits are told one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_DOWN, ROUND_UP, Context, Decimal
from math import prod
from typing import TYPE_CHECKING

from carryscope.certificate.counting import Counts
from carryscope.task.operation import ADD

if TYPE_CHECKING:
    from carryscope.certificate.finding import DigitProof, Family

_PAIRS = {state.letter: pairs for state, pairs in ADD.pairs_per_state.items()}
"""Digit pairs of a column, by the letter of its state."""


def statement(counts: Counts, digits: Sequence[DigitProof], wrong: Sequence[Family]) -> str:
    """What is proved about the model."""
    parts = [
        f"Of all {counts.questions:,} questions {_share(counts.right, counts)} are proved to get "
        f"the right answer and {_share(counts.wrong, counts)} a wrong one; "
        f"{_share(counts.undecided, counts, ROUND_UP)} are undecided."
    ]
    if not counts.right and digits:
        each = ", ".join(f"{d.digit} in {_share(int(d.proved_right), counts)}" for d in digits)
        parts.append(f"Digit by digit more is proved right: {each}.")
    perfect = [d.digit for d in digits if d.undecided == d.proved_wrong == "0"]
    if counts.right == counts.questions:
        return f"The model is proved to answer all {counts.questions:,} questions right."
    if perfect:
        parts.append(
            f"{_listed(perfect)} {_verb(perfect)} proved right in every question, if the digits "
            "before are."
        )
    if wrong:
        worst = max(wrong, key=lambda family: int(family.questions))
        alike = prod(_PAIRS.get(letter, 100) for letter in worst.states)
        where = f" where {worst.words}" if alike < counts.questions else ""
        parts.append(
            f"The largest failure that is proved: {worst.digit}, if not a digit before it, is "
            f"wrong in {int(worst.questions):,} of the {alike:,} questions{where}, such as "
            f"{worst.example}."
        )
    return " ".join(parts)


def _share(part: int, counts: Counts, rounding: str = ROUND_DOWN) -> str:
    """A share in per cent: what is proved is rounded down, what is undecided up."""
    exact = Context(prec=4, rounding=rounding)
    share = exact.divide(Decimal(100 * part), Decimal(counts.questions))
    return f"{share.normalize():f}%"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _verb(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
