"""What is proved about the model, what is not, and how anyone can check it.

In: the shelf of a run. Out: the section of the certificate, and its sentences.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from carryscope.certificate.certify import UNTIL
from carryscope.certificate.finding import Certificate, Family
from carryscope.core.words import counted_share, listed, with_interval
from carryscope.report.catalogue import figure
from carryscope.report.page.parts import (
    Commands,
    Facts,
    Folded,
    Missing,
    Part,
    Picture,
    Section,
    Table,
    Text,
)
from carryscope.report.shelf import Shelf
from carryscope.verification.risk_finding import RiskFinding

SHOWN_FAMILIES = 8
"""Families of questions in a table; the file has them all."""

ROUNDING = 1e-12
"""Measured rates are sums of floats: two that differ by less are the same."""

ENDS = {
    "time": "its time was up",
    "asked to": "it was stopped",
    "still running": "it had not ended when this page was written",
}
"""Why a search ended before enough was decided."""

WORDS = {
    "Box": "a set of questions: for each column, a set of digit pairs. No question of it is asked; "
    "the lead of the right token over every other is bounded for all of them at once, rounding "
    "included. A box that cannot be decided is split. docs/certificate.md has the mathematics.",
    "Proved right": "every token of the answer leads, after the true tokens before it. Then the "
    "model, running free, writes the true first token, so it reads the truth at the second, and so "
    "on: the answer that a user gets is right too.",
    "Proved wrong": "some token loses to another one, after the true tokens before it. Running "
    "free, the answer is wrong there or before.",
    "Undecided": "neither. This says nothing about the model: the bound was too coarse for the "
    "boxes that were tried, or time was up.",
}

KINDS = {
    "proved-wrong": (
        "The largest proved failures",
        "Counted are the questions that are proved wrong; others of the same pattern may be right.",
    ),
    "undecided": (
        "The largest undecided families",
        "Counted are the questions that are undecided; others of the same pattern may be decided.",
    ),
}
"""Families of questions: what they are called, and what is counted."""


def certificate_section(shelf: Shelf) -> Section | None:
    """What is proved, and what is not."""
    found = shelf.certificate
    if found is None:
        return None
    compared = measured_and_proved(found, shelf.risk) if shelf.risk is not None else ""
    parts: list[Part] = [
        Text(proved(found), lead=True),
        *([Text(compared)] if compared else []),
        Picture("certificate", {"": figure("certificate", shelf)}, "nothing proved"),
        _tokens(found),
        *_families("proved-wrong", found.wrong_families, found),
        *_families("undecided", found.undecided_families, found),
        *unfinished(shelf),
        Text(_effort(found)),
        Text(
            "To check it without trusting the search that made it: every bound is computed anew, "
            "boxes must not overlap, and counts must add up."
        ),
        Commands([f"carryscope certify {shlex.quote(shelf.where)} --check"]),
        Folded("What a proof is here", [Facts(WORDS)]),
    ]
    return Section("certificate", "What is proved, and what is not", "Certificate", parts)


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
        "estimate: every question is counted, those that nobody ever asks too."
    )


def _by_token(found: Certificate) -> str:
    shares = {d.digit: int(d.proved_right) for d in found.per_digit if int(d.proved_right)}
    if not shares:
        return ""
    told = [f"{name} in {counted_share(n, int(found.questions))}" for name, n in shares.items()]
    return f" Token by token more is known: proved right, of all questions, {listed(told)}."


def measured_and_proved(found: Certificate, risk: RiskFinding) -> str:
    """Whether what was measured agrees with what is proved; nothing if nothing is proved."""
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
            f"{measured}The estimate lies inside {bounds}; its interval reaches beyond them, and "
            "that part of it the proof rules out."
        )
    return f"{measured}The estimate lies outside {bounds}, but its interval reaches into them."


def _contradiction(risk: RiskFinding) -> str:
    if risk.exhaustive:
        return "Every question was asked, so one of the two is in error: please report it."
    return (
        "One interval in twenty misses what it measures, so measure once more, with another "
        "seed; if it stays so, one of the two is in error: please report it."
    )


def unfinished(shelf: Shelf) -> list[Missing]:
    """How to go on with a search that ended early."""
    found = shelf.certificate
    if found is None or found.decided >= UNTIL:
        return []
    if found.ended == "decided" and found.until >= UNTIL:
        return []  # no box is left that could be split
    undecided = counted_share(int(found.undecided), int(found.questions), at_most=True)
    why = ENDS.get(found.ended, f"it was to decide {found.until:.0%}")
    return [
        Missing(
            "Proved bounds on its accuracy",
            f"carryscope certify {shlex.quote(shelf.where)}",
            f"After {spent(found.seconds)} {why}, with {undecided} of all questions undecided. "
            "What is proved stays proved: the search goes on from there, for an hour, or for as "
            "long as --minutes says.",
            state="not finished",
        )
    ]


def spent(seconds: float) -> str:
    """A time in words."""
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds" if round(seconds) > 1 else "1 second"
    return f"{round(seconds / 60):,} minutes"


def _effort(found: Certificate) -> str:
    told = f"{found.boxes:,} boxes of questions were bounded, in {spent(found.seconds)}. "
    if not found.spot_checks:
        return told.strip()
    return (
        f"{told}As a check on the way, {found.spot_checks:,} questions from decided boxes were put "
        "to the model: every answer was as proved."
    )


def _tokens(found: Certificate) -> Table:
    of = int(found.questions)
    rows = [
        [
            digit.digit,
            counted_share(int(digit.proved_right), of),
            counted_share(int(digit.proved_wrong), of),
            counted_share(int(digit.undecided), of, at_most=True),
            f"{digit.boxes:,}",
        ]
        for digit in found.per_digit
    ]
    rows.append(
        [
            "whole answer",
            counted_share(int(found.proved_right), of),
            counted_share(int(found.proved_wrong), of),
            counted_share(int(found.undecided), of, at_most=True),
            "",
        ]
    )
    counts = [int(found.proved_right), int(found.proved_wrong), int(found.undecided)]
    return Table(
        "certificate-tokens",
        "Proved, token by token",
        ["answer token", "proved right", "proved wrong", "undecided", "boxes"],
        rows,
        "Shares of all questions; a token is judged after the true tokens before it. Rounded to "
        "the safe side: what is proved down, what is undecided up. Whole answers, counted: "
        f"{counts[0]:,} right, {counts[1]:,} wrong, {counts[2]:,} undecided.",
        frozenset({1, 2, 3, 4}),
    )


def _families(
    name: Literal["proved-wrong", "undecided"], families: Sequence[Family], found: Certificate
) -> list[Table]:
    """The largest families of questions that are decided, or not, alike."""
    if not families:
        return []
    of = int(found.questions)
    rows = [
        [
            family.digit,
            family.states,
            family.words,
            f"{int(family.questions):,}",
            counted_share(int(family.questions), of, at_most=name == "undecided"),
            family.example,
        ]
        for family in families[:SHOWN_FAMILIES]
    ]
    title, counted = KINDS[name]
    rest = len(families) - len(rows)
    more = f" {rest:,} more are in findings/certificate.json." if rest else ""
    return [
        Table(
            name,
            title,
            ["token", "pattern", "where", "questions", "of all", "for example"],
            rows,
            "One letter for each column, highest first: K sums to 8 or less, P to 9, G to 10 or "
            f"more, * to any of these. {counted}{more}",
            frozenset({3, 4}),
            prose=frozenset({2}),
        )
    ]
