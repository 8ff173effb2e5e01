"""A repair as parts: what was missing, and the model before and after.

In: a `RepairFinding`. Out: parts, claim first.
"""

from __future__ import annotations

from carryscope.core.words import with_interval
from carryscope.report.parts import Part, Text
from carryscope.report.tables import Table
from carryscope.report.words import carry, nines
from carryscope.verification.before_after import RepairFinding, Round


def repair_parts(found: RepairFinding) -> list[Part]:
    """The statement, the rounds, and failures by look-ahead before and after."""
    return [Text(found.statement, lead=True), _rounds(found), _depths(found)]


def _rounds(found: RepairFinding) -> Table:
    return Table.of(
        "repair-rounds",
        "Round by round",
        list(enumerate(found.rounds)),
        {
            "round": lambda one: str(one[0]) if one[0] else "before",
            "heads": lambda one: str(one[1].heads),
            "steps": lambda one: f"{one[1].steps:,}" if one[1].steps else "",
            "columns no head reads": lambda one: _blind(one[1]),
            "wrong answers": lambda one: with_interval(one[1].wrong),
        },
        "For each answer digit, the columns that can decide it and that no head reads at its row.",
        text=["columns no head reads"],
    )


def _blind(one: Round) -> str:
    return ", ".join(f"{b.digit}: {' '.join(map(str, b.columns))}" for b in one.blind) or "none"


def _depths(found: RepairFinding) -> Table:
    before, after = found.rounds[0].depths, found.rounds[-1].depths
    return Table.of(
        "repair-depths",
        "Wrong answer digits, before and after",
        list(zip(before, after, strict=True)),
        {
            "nines below": lambda pair: nines(pair[0].depth),
            "arriving": lambda pair: carry(pair[0].carrying),
            "before": lambda pair: with_interval(pair[0].wrong),
            "after": lambda pair: with_interval(pair[1].wrong),
        },
        text=["arriving"],
    )
