"""The paper's mathematical framework as data: which task unlocks which questions, digit by digit.

In: a number of digits and an operation. Out: one `Discovery` per (answer digit, task), with exact
shares of uniform questions and what must come before it. For A3:

    BA              50.05 %   no carry arrives: A3 is the base sum of column 3
    UC1             45 %      column 2 makes a carry
    US9, depth 1    4.5 %     column 1 makes a carry, column 2 is a nine and passes it on
    US9, depth 2    0.45 %    column 0 makes it, columns 1 and 2 pass it on: 445+555

A word on US9. The framework asks through how many nines the carry *into* a digit came; the
`Task` of a digit asks whether its *own* column is a nine that passes a carry on. The questions
of class US9 at column k are those of all US9 depths at digit k+1.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from carryscope.task.columns import Task
from carryscope.task.operation import ADD, Operation
from carryscope.task.strata import LookAhead, look_ahead_probabilities


class DigitTask(NamedTuple):
    """A task of one answer digit: a square of the paper's framework figure."""

    digit: int
    task: Task
    depth: int = 0
    """Nines the carry came through: at least 1 for US9, otherwise 0."""

    @property
    def name(self) -> str:
        return f"A{self.digit} {self.task.name}" + (f" depth {self.depth}" if self.depth else "")


class Discovery(NamedTuple):
    """What learning one task adds to one answer digit."""

    learnt: DigitTask
    share: Fraction
    """Share of uniform questions on which the digit becomes right by this task."""
    needs: tuple[DigitTask, ...]
    """Tasks that must be learnt before."""


def framework(digits: int, operation: Operation = ADD) -> tuple[Discovery, ...]:
    """All discoveries, by answer digit from A0, each digit's from BA to the deepest US9.

    US9 of depth d at digit k needs one depth less at the same digit, and one depth less at
    the digit below, where the same carry arrived before one more nine passed it on. So
    99999+1 is a chain through all digits: A1 UC1, A2 US9 depth 1, A3 US9 depth 2 ... In
    subtraction a borrow does not reach A_n, so only BA is left there.
    """
    chances = look_ahead_probabilities(digits, operation)
    found: list[Discovery] = []
    for k in range(digits + 1):
        quiet = sum((chances[LookAhead(k, d, False)] for d in range(k + 1)), Fraction())
        found.append(Discovery(DigitTask(k, Task.BA), quiet, ()))
        for depth in range(k):
            if share := chances.get(LookAhead(k, depth, True)):
                found.append(Discovery(_carry(k, depth), share, _needs(k, depth)))
    return tuple(found)


def _carry(digit: int, depth: int) -> DigitTask:
    """The task of using a carry that came through so many nines."""
    return DigitTask(digit, Task.US9 if depth else Task.UC1, depth)


def _needs(digit: int, depth: int) -> tuple[DigitTask, ...]:
    if not depth:
        return (DigitTask(digit, Task.BA),)
    return _carry(digit, depth - 1), _carry(digit - 1, depth - 1)
