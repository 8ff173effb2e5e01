"""What is proved about the model, what is not, and how anyone can check it.

In: a certificate. Out: its parts and its section.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from carryscope.certificate.certify import UNTIL
from carryscope.certificate.finding import Certificate, DigitProof, Family
from carryscope.core.words import counted_share, listed, spent, with_interval
from carryscope.report.parts import Absent, Commands, Facts, Folded, Part, Section, Text, evidence
from carryscope.report.tables import Cell, Faint, Table
from carryscope.report.words import letters, spoken_of
from carryscope.task.operation import MIXED
from carryscope.verification.risk import RiskFinding

SHOWN_FAMILIES = 8
"""Families of questions in a table; the file has them all."""

ROUNDING = 1e-12
"""Measured rates are sums of floats: two that differ by less are the same."""

ENDS = {
    "time": "its time was up",
    "asked to": "it was stopped",
    "still running": "it was still running when this page was written",
    "decided": "it had decided as much as it was to decide",
}
"""Why a search ended."""

WORDS = {
    "Box": "a set of questions: for each column, a set of digit pairs. The lead of the right token "
    "is bounded for all of them at once, rounding included. docs/certificate.md has the proof.",
    "Proved right": "every token leads, after the true tokens before it. So the model, running "
    "free, writes the whole answer right.",
    "Proved wrong": "some token loses to another one. Running free, the answer is wrong there or "
    "before.",
    "In exact arithmetic": "as if no number were rounded. A proof in any float32 evaluation covers "
    "what rounding can change, too.",
    "Undecided": "neither. The bound was too coarse for the boxes that were tried, or time was up.",
}


def certificate_section(
    found: Certificate, risk: RiskFinding | None = None, where: str = "RUN"
) -> Section:
    """The proved bounds, token by token, and the largest families; then how to check them."""
    compared = measured_and_proved(found, risk) if risk is not None else ""
    check = Commands([f"carryscope certify {shlex.quote(where)} --check"])
    parts: list[Part] = [
        *([Text(compared)] if compared else []),
        _tokens(found),
        *_families(found, "proved wrong", found.wrong_families),
        *_families(found, "undecided", found.undecided_families),
        *unfinished(found, where),
        Folded("What a proof is here, and how to check it", [Facts(WORDS), _effort(found), check]),
    ]
    return evidence("certificate", "Proof", found.statement, parts)


def measured_and_proved(found: Certificate, risk: RiskFinding) -> str:
    """Whether the measured rate agrees with the proof; empty if nothing is proved."""
    of, wrong = int(found.questions), int(found.proved_wrong)
    most = of - int(found.proved_right)
    if not wrong and most == of:
        return ""
    rate, bounds = risk.teacher_forced, counted_share(wrong, of)
    if most != wrong:
        bounds = f"{bounds} to {counted_share(most, of, at_most=True)}"
    both = f"Measured wrong: {with_interval(rate)}. Proved wrong: {bounds}."
    if wrong / of - ROUNDING <= rate.high and rate.low <= most / of + ROUNDING:
        return f"{both} The two agree."
    what = "Every question was asked, so one of them is in error: please report it."
    if not risk.exhaustive:
        what = (
            "One interval in twenty misses the true value, so measure once more, with another "
            "seed. If the contradiction stays, please report it."
        )
    return f"{both} The two contradict each other. {what}"


def unfinished(found: Certificate, where: str) -> list[Absent]:
    """How to continue a search that ended early."""
    if found.is_enough(UNTIL):
        return []
    undecided = counted_share(int(found.undecided), int(found.questions), at_most=True)
    why = ENDS.get(found.ended, found.ended)
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


def _effort(found: Certificate) -> Text:
    checked = f"{found.checked_with} checked it" if found.checked_with else "nothing checked it yet"
    return Text(
        f"By its own record, {listed(found.found_with)} found this proof, and {checked}. "
        f"{found.boxes:,} boxes of questions were bounded, in {spent(found.seconds)}. As a check "
        f"on the way, the model answered {found.spot_checks:,} questions from decided boxes: every "
        "answer was as proved. This page did not check it: what comes from elsewhere is a claim. "
        "A check does not trust the search: the engine that did not search decides every box "
        "again, boxes must not overlap, and counts must add up."
    )


def _tokens(found: Certificate) -> Table:
    """What is proved of each token, and of the whole answer."""
    of = int(found.questions)
    whole = DigitProof(
        digit="whole answer",
        proved_right=found.proved_right,
        proved_wrong=found.proved_wrong,
        undecided=found.undecided,
        boxes=sum(digit.boxes for digit in found.per_digit),
    )

    def share(count: str, tone: str = "") -> Cell:
        text = counted_share(int(count), of, at_most=tone == "faint")
        tip = f"{int(count):,} of {of:,} questions"
        return Cell(text, tone=tone if int(count) else "", tip=tip)

    return Table.of(
        "certificate",
        "Proved, token by token",
        [*found.per_digit, whole],
        {
            "answer token": lambda row: row.digit,
            "proved right": lambda row: share(row.proved_right),
            "proved wrong": lambda row: share(row.proved_wrong, "wrong"),
            "undecided": lambda row: share(row.undecided, "faint"),
            "boxes": lambda row: f"{row.boxes:,}",
        },
        "Shares of all questions; a token is judged after the true tokens before it. Rounded to "
        "the safe side: what is proved down, what is undecided up. Whole answers, counted: "
        f"{int(found.proved_right):,} right, {int(found.proved_wrong):,} wrong, "
        f"{int(found.undecided):,} undecided.",
    )


def _families(found: Certificate, kind: str, families: Sequence[Family]) -> list[Table]:
    """The largest families of questions that are proved wrong, or undecided, alike."""
    if not families:
        return []
    of, rest = int(found.questions), len(families) - SHOWN_FAMILIES
    more = f" {rest:,} more are in findings/certificate.json." if rest > 0 else ""
    kinds = {spoken_of(family.example) for family in families}
    words = (MIXED if len(kinds) > 1 else kinds.pop()).words
    like = f"{words.question}s like"
    return [
        Table.of(
            kind.replace(" ", "-"),
            f"The largest families of questions that are {kind}",
            families[:SHOWN_FAMILIES],
            {
                "token": lambda family: family.digit,
                like: lambda family: family.example,
                "where": lambda family: family.words,
                "pattern": lambda family: Faint(family.states),
                "questions": lambda family: f"{int(family.questions):,}",
                "of all": lambda family: counted_share(
                    int(family.questions), of, at_most=kind == "undecided"
                ),
            },
            f"{letters(words)}, * any of these. Only questions that are {kind} are counted; others "
            f"of the same pattern may not be.{more}",
            text=["pattern", like],
            prose=["where"],
        )
    ]
