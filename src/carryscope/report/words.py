"""Words that many parts share. What a column does is named by the operation.

In: counts and findings. Out: a few words, meaning first and the code for it behind.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from carryscope.core.errors import CallError
from carryscope.core.words import counted
from carryscope.dissection.interventions import head_name
from carryscope.task.operation import ADD, MIXED, Operation, Words
from carryscope.task.tokens import Format

if TYPE_CHECKING:
    from carryscope.dissection.attention import AttentionFinding
    from carryscope.model.config import ModelConfig
    from carryscope.task.tokens import Format
    from carryscope.verification.cases import CaseRisk


def spoken_of(question: str) -> Operation:
    """The operation of a question as it is written: `445-555`."""
    return next((one for one in MIXED.parts if one.symbol in question), ADD)


def letters(words: Words) -> str:
    """How to read a pattern such as KKPPG."""
    does = ", ".join(f"{state.letter} {does}" for state, does in words.column.items())
    return f"One letter for each column, highest first: {does}"


def run_lengths(words: Words) -> str:
    """How to read a pattern of more than six digits."""
    return (
        f"Carrying: how many columns in a row pass a {words.carry} on, at most. "
        "Quiet: how many in a row would, and none arrives"
    )


def in_short(carries: str, operation: Operation) -> str:
    """The same in a table: `BA(3)` is "base sum of column 3"."""
    names, words = operation.subtasks, operation.words
    short = {
        names.base: f"base {words.question} of column {{}}",
        names.makes: f"{words.carry} from column {{}}",
        names.passes: f"{words.passing} in column {{}}",
        "state": "state of column {}",
        "carry_in": f"{words.carry} into column {{}}",
        "digit": "digit A{}",
    }
    variable = r"([\w/]+)\((\d+)\)"
    return re.sub(variable, lambda one: short.get(one[1], one[0]).format(one[2]), carries)


STAIRCASE = {
    "present": "a double staircase",
    "partial": "part of a staircase",
    "absent": "no staircase",
}
"""What the heads look at, row by row."""


def is_sum(text: str | None, layout: Format) -> bool:
    """Whether a model can be asked this; a finding may hold any text."""
    with contextlib.suppress(CallError):
        return bool(layout.parse(text or ""))
    return False


def shape(model: ModelConfig) -> str:
    """The shape of a model: "5 digits, 1 layer, 3 heads"."""
    return ", ".join(
        f"{number} {name if number == 1 else f'{name}s'}"
        for name in ("digit", "layer", "head")
        if (number := getattr(model, f"{name}s"))
    )


def nines(count: int, words: Words) -> str:
    """ "two nines"."""
    return counted(count, words.passing, words.passing_plural)


def carry(carrying: bool | None, words: Words) -> str:
    """Whether a carry arrives: "a carry", "no carry"."""
    return f"{'a' if carrying else 'no'} {words.carry}"


def look_ahead(case: CaseRisk, words: Words) -> str:
    """What lies below a digit: "two nines, a carry"."""
    return f"{nines(case.depth, words)}, {carry(case.carrying, words)}"


def above(case: CaseRisk, words: Words) -> str:
    """An answer digit and what lies below it: "A3 above two nines with a carry"."""
    way = "with" if case.carrying else "without"
    return f"{case.digit} above {nines(case.depth, words)} {way} a {words.carry}"


def control_name(name: str, control: bool) -> str:
    """An algorithm by name; one that is wrong on purpose says so."""
    return f"{name} (control)" if control else name


def head_roles(finding: AttentionFinding) -> dict[tuple[int, int], str]:
    """What each head reads: "own column"."""
    return {(head.layer, head.head): head.role or "no staircase" for head in finding.heads}


def head_titles(finding: AttentionFinding, layers: int) -> dict[tuple[int, int], str]:
    """Each head with what it reads: "H0, own column"."""
    return {
        place: f"{head_name(*place, layers)}, {role}" for place, role in head_roles(finding).items()
    }
