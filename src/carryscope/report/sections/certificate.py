"""What is proved about the model, what is not, and how anyone can check it.

In: a certificate. Out: its parts and its section.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from carryscope.certificate.certify import UNTIL
from carryscope.certificate.finding import Certificate, DigitProof, Family
from carryscope.core.words import counted_share, listed, spent, with_interval
from carryscope.report.figures import picture
from carryscope.report.parts import (
    Absent,
    Commands,
    Facts,
    Faint,
    Folded,
    More,
    Part,
    Section,
    Table,
    Text,
)
from carryscope.report.shelf import Shelf
from carryscope.report.words import LETTERS
from carryscope.verification.risk import RiskFinding

SHOWN_FAMILIES = 8
"""Families of questions in a table; the file has them all."""

ROUNDING = 1e-12
"""Measured rates are sums of floats: two that differ by less are the same."""

ENDS = {
    "time": "its time was up",
    "asked to": "it was stopped",
    "still running": "it was still running when this page was written",
}
"""Why a search ended before enough was decided."""

WORDS = {
    "Box": "a set of questions: for each column, a set of digit pairs. For all questions of a box "
    "at once, the lead of the right token over every other is bounded, rounding included. A box "
    "that cannot be decided is split. docs/certificate.md has the mathematics.",
    "Proved right": "every token of the answer leads, after the true tokens before it. Then the "
    "model, running free, writes the true first token, so it reads the truth at the second, and so "
    "on: the answer that a user gets is right too.",
    "Proved wrong": "some token loses to another one, after the true tokens before it. Running "
    "free, the answer is wrong there or before.",
    "Undecided": "neither. This says nothing about the model: the bound was too coarse for the "
    "boxes that were tried, or time was up.",
}

Kind = Literal["proved-wrong", "undecided"]

KINDS: dict[Kind, tuple[str, str]] = {
    "proved-wrong": (
        "The largest proved failures",
        "Counted are the questions that are proved wrong; others of the same pattern may be right.",
    ),
    "undecided": (
        "The largest undecided families",
        "Counted are the questions that are undecided; others of the same pattern may be decided.",
    ),
}
"""Families of questions: their title, and what is counted."""


def certificate_section(shelf: Shelf) -> Section | None:
    """What is proved, and what is not."""
    if shelf.certificate is None:
        return None
    parts = certificate_parts(shelf.certificate, shelf.risk, shelf.where)
    return Section("certificate", "What is proved, and what is not", "Certificate", parts)


def certificate_parts(
    found: Certificate, risk: RiskFinding | None = None, where: str = "RUN"
) -> list[Part]:
    """The proved bounds, token by token, and the largest families; then how to check them."""
    compared = measured_and_proved(found, risk) if risk is not None else ""
    return [
        Text(proved(found), lead=True),
        *([Text(compared)] if compared else []),
        picture("certificate", found, "nothing proved"),
        _tokens(found),
        *_families("proved-wrong", found.wrong_families, found),
        *_families("undecided", found.undecided_families, found),
        More(
            [
                *unfinished(found, where),
                Text(_effort(found)),
                Text(
                    "To check it without trusting the search: every bound is computed again, "
                    "boxes must not overlap, and counts must add up."
                ),
                Commands([f"carryscope certify {shlex.quote(where)} --check"]),
                Folded("What a proof is here", [Facts(WORDS)]),
            ]
        ),
    ]


def proved(found: Certificate) -> str:
    """The bounds on the accuracy, in a sentence or two."""
    right, wrong, of = int(found.proved_right), int(found.proved_wrong), int(found.questions)
    if right == of:
        return f"Proved: all {of:,} questions get the right answer."
    if not int(found.undecided):
        return f"Proved: exactly {right:,} of all {of:,} questions get the right answer."
    if not right and not wrong:
        return f"No whole answer is proved right or wrong yet.{_by_token(found)}"
    bounds = f"{counted_share(right, of)} and {counted_share(of - wrong, of, at_most=True)}"
    return (
        f"Proved: between {bounds} of all {of:,} questions get the right answer. This is no "
        "estimate: every question is counted, even those that nobody ever asks."
    )


def _by_token(found: Certificate) -> str:
    shares = {d.digit: int(d.proved_right) for d in found.per_digit if int(d.proved_right)}
    if not shares:
        return ""
    told = [f"{name} in {counted_share(n, int(found.questions))}" for name, n in shares.items()]
    return f" More is known token by token. Proved right, of all questions: {listed(told)}."


def measured_and_proved(found: Certificate, risk: RiskFinding) -> str:
    """Whether the measured rate agrees with the proof; empty if nothing is proved."""
    wrong, of = int(found.proved_wrong), int(found.questions)
    most_wrong = of - int(found.proved_right)
    if not wrong and most_wrong == of:
        return ""
    least, most = float(Fraction(wrong, of)) - ROUNDING, float(Fraction(most_wrong, of)) + ROUNDING
    rate = risk.teacher_forced
    measured = f"Measured wrong: {with_interval(rate)}. "
    low, high = counted_share(wrong, of), counted_share(most_wrong, of, at_most=True)
    bounds = f"the proved bounds, {low} to {high}" if wrong != most_wrong else f"the proved {low}"
    if rate.high < least or rate.low > most:
        return f"{measured}That contradicts {bounds}. {_contradiction(risk)}"
    if wrong == most_wrong:
        return f"{measured}That agrees with {bounds}."
    if least <= rate.low and rate.high <= most:
        return f"{measured}That lies inside {bounds}."
    if least <= rate.estimate <= most:
        return (
            f"{measured}The estimate lies inside {bounds}; its interval reaches beyond them. The "
            "proof rules that part of it out."
        )
    return f"{measured}The estimate lies outside {bounds}, but its interval reaches into them."


def _contradiction(risk: RiskFinding) -> str:
    if risk.exhaustive:
        return "Every question was asked, so one of the two is in error: please report it."
    return (
        "One interval in twenty misses the true value, so measure once more, with another seed. "
        "If the contradiction stays, one of the two is in error: please report it."
    )


def unfinished(found: Certificate, where: str) -> list[Absent]:
    """How to continue a search that ended early."""
    if found.decided >= UNTIL:
        return []
    if found.ended == "decided" and found.until >= UNTIL:
        return []  # no box is left that could be split
    undecided = counted_share(int(found.undecided), int(found.questions), at_most=True)
    why = ENDS.get(found.ended, f"it had decided the {found.until:.0%} that it was to decide")
    return [
        Absent(
            "Proved bounds on its accuracy",
            f"carryscope certify {shlex.quote(where)}",
            f"After {spent(found.seconds)} {why}, with {undecided} of all questions undecided. "
            "What is proved stays proved: the search continues from there, for an hour, or for as "
            "long as --minutes says.",
            state="not finished",
        )
    ]


def _effort(found: Certificate) -> str:
    told = f"{found.boxes:,} boxes of questions were bounded, in {spent(found.seconds)}."
    if not found.spot_checks:
        return told
    return (
        f"{told} As a check on the way, the model answered {found.spot_checks:,} questions from "
        "decided boxes: every answer was as proved."
    )


def by_token(found: Certificate) -> list[DigitProof]:
    """The tokens, and the whole answer as one more."""
    whole = DigitProof(
        digit="whole answer",
        proved_right=found.proved_right,
        proved_wrong=found.proved_wrong,
        undecided=found.undecided,
        boxes=sum(digit.boxes for digit in found.per_digit),
    )
    return [*found.per_digit, whole]


def _tokens(found: Certificate) -> Table:
    of = int(found.questions)
    right, wrong, undecided = map(int, (found.proved_right, found.proved_wrong, found.undecided))
    return Table.of(
        "certificate-tokens",
        "Proved, token by token",
        by_token(found),
        {
            "answer token": lambda row: row.digit,
            "proved right": lambda row: counted_share(int(row.proved_right), of),
            "proved wrong": lambda row: counted_share(int(row.proved_wrong), of),
            "undecided": lambda row: counted_share(int(row.undecided), of, at_most=True),
            "boxes": lambda row: f"{row.boxes:,}",
        },
        "Shares of all questions; a token is judged after the true tokens before it. Rounded to "
        "the safe side: what is proved down, what is undecided up. Whole answers, counted: "
        f"{right:,} right, {wrong:,} wrong, {undecided:,} undecided.",
    )


def _families(kind: Kind, families: Sequence[Family], found: Certificate) -> list[Table]:
    """The largest families of questions that are decided, or not, alike."""
    if not families:
        return []
    of, (title, meaning) = int(found.questions), KINDS[kind]
    rest = len(families) - SHOWN_FAMILIES
    more = f" {rest:,} more are in findings/certificate.json." if rest > 0 else ""
    return [
        Table.of(
            kind,
            title,
            families[:SHOWN_FAMILIES],
            {
                "token": lambda family: family.digit,
                "sums like": lambda family: family.example,
                "where": lambda family: family.words,
                "pattern": lambda family: Faint(family.states),
                "questions": lambda family: f"{int(family.questions):,}",
                "of all": lambda family: counted_share(
                    int(family.questions), of, at_most=kind == "undecided"
                ),
            },
            f"{LETTERS}, * any of these. {meaning}{more}",
            text=["pattern", "sums like"],
            prose=["where"],
        )
    ]
