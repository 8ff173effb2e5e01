"""A repair in numbers and words: what was missing, and the model before and after.

In: what each round of a repair left. Out: `RepairFinding`.

    before    0.62 % wrong. To write A3 no head reads column 0.
    after     5 heads, 2,500 steps more: all 10,000,000,000 questions are proved right.
"""

from __future__ import annotations

import msgspec

from carryscope.core.evidence import Finding
from carryscope.core.words import counted, listed
from carryscope.dissection.attention import AttentionFinding
from carryscope.task.operation import OperationName
from carryscope.task.tokens import Format
from carryscope.verification.cases import CaseRisk
from carryscope.verification.estimate import Rate
from carryscope.verification.risk_verdict import how_often


class BlindDigit(msgspec.Struct, frozen=True, kw_only=True):
    """An answer digit at whose row no head reads some of the columns that can decide it."""

    digit: str
    columns: list[int]
    """The columns that no head reads, highest first."""


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One round: the model, what it was trained on, and how it fails."""

    heads: int
    steps: int
    """Of this round's training; none for the model that came in."""
    patterns: list[str]
    """Failing patterns of columns that it was trained on."""
    blind: list[BlindDigit]
    wrong: Rate
    evaluated: int
    """Questions tested."""
    depths: list[CaseRisk]
    """How often an answer digit is wrong, by look-ahead, all digits together."""


class RepairFinding(Finding, frozen=True, kw_only=True):
    """A model before and after its repair."""

    package_version: str
    weights_sha256: str
    """Of the repaired model."""
    source: str
    """The run that was repaired."""
    operation: OperationName = "addition"
    rounds: list[Round]
    """The first is the model that came in, the last the repaired one."""
    questions: str
    proved_right: str
    proved_wrong: str
    undecided: str
    """Of the repaired model, in decimal."""
    seconds: float
    """From the first training to the proof, in this session."""
    time_is_up: bool = False
    """Whether the time ended before the repair was complete."""
    statement: str


def blind_digits(attention: AttentionFinding, layout: Format) -> list[BlindDigit]:
    """The answer digits at whose row no head reads every column that can decide them.

    A3 can be decided by column 3 and by every column below it, a sign by all columns. A_n of a
    difference is always 0.
    """
    found, operation = [], layout.operation
    for digit in reversed(range(layout.digits + 1 + operation.signed)):
        if digit == layout.digits and all(one.signed for one in operation.each_part):
            continue
        name = f"A{digit}"
        read = {one.column for one in attention.readings if one.answer == name}
        missing = [c for c in reversed(range(min(digit + 1, layout.digits))) if c not in read]
        found += [BlindDigit(digit=name, columns=missing)] if missing else []
    return found


def blind_words(blind: list[BlindDigit]) -> str:
    """ "To write A3 no head reads columns 1 and 0." """
    by_columns: dict[tuple[int, ...], list[str]] = {}
    for one in blind:
        by_columns.setdefault(tuple(one.columns), []).append(one.digit)
    return " ".join(
        f"To write {listed(digits)} no head reads "
        f"{'column' if len(columns) == 1 else 'columns'} {listed([str(c) for c in columns])}."
        for columns, digits in by_columns.items()
    )


def repair_statement(found: RepairFinding) -> str:
    """Before, what was missing, what was done, after, and what is proved."""
    before, after = found.rounds[0], found.rounds[-1]
    trained, added = len(found.rounds) > 1, after.heads - before.heads
    heads = f"{counted(added, 'head')} added and " if added else ""
    steps = sum(one.steps for one in found.rounds)
    parts = [
        f"{'Before' if trained else 'Nothing was trained'}: {_tested(found, before)}",
        f"The repair: {heads}{steps:,} steps of training on cascades." * trained,
        f"After: {_tested(found, after)}" * trained,
        _what_is_proved(found),
        "The time is up. The same command with more minutes continues." * found.time_is_up,
    ]
    return " ".join(part for part in parts if part)


def _tested(found: RepairFinding, one: Round) -> str:
    said = how_often(one.wrong, int(found.questions), one.evaluated)
    return f"{said} {blind_words(one.blind)}".strip() if one.wrong.estimate else said


def _what_is_proved(found: RepairFinding) -> str:
    if found.proved_right == found.questions:
        return f"All {int(found.questions):,} questions are proved right."
    return (
        f"Of all {int(found.questions):,} questions {int(found.proved_right):,} are proved right "
        f"and {int(found.proved_wrong):,} proved wrong; {int(found.undecided):,} are undecided."
    )
