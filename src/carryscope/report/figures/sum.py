"""One sum as a person writes it, and what the heads read while one digit of it is written.

In: an `Answer`. Out: a figure: the digits under each other, the carries above them, an arrow from
the column that decides a carry to the digit that needs it, and each column in the colour of the
head that reads it. A column that is needed and that no head reads is hatched: there the model is
blind.
"""

from __future__ import annotations

from carryscope.dissection.asking import Answer, Digit
from carryscope.dissection.explaining import READS, column_words
from carryscope.report.figures.canvas import BLACK, CHARACTER, GREY, HEADS, PALE, Canvas
from carryscope.report.figures.figure import Figure
from carryscope.task.columns import Columns
from carryscope.task.operation import MIXED
from carryscope.task.questions import parse_question

COLUMN, LEFT, LARGE, SMALL = 44.0, 46.0, 22.0, 11.0
"""Width of a column, room for names on the left, and the sizes of digits and of words, in pixels:
narrow enough for a phone."""

CARRIES, FIRST, SECOND, READERS, WRITTEN, TRUE = 62.0, 96.0, 132.0, 162.0, 204.0, 236.0
"""Where the lines of the drawing stand, in pixels."""

WRONG = "#b3400a"


def sum_figure(given: Answer, at: str = "", whose: str = "") -> Figure:
    """The sum at a digit; by default its first wrong one, or the one hardest to get right."""
    chosen = next((digit for digit in given.digits if digit.name == at), hardest(given))
    return _Sum(given, chosen).figure(f"{whose}: " if whose else "")


def hardest(given: Answer) -> Digit:
    """The first wrong digit that attention explains; of a right answer, the deepest carry."""
    wrong = [
        digit for digit in given.digits if digit.predicted != digit.truth and digit.explanation
    ]
    return wrong[0] if wrong else max(given.digits, key=lambda digit: digit.look_ahead or 0)


def columns_read(digit: Digit) -> dict[int, list[str]]:
    """The columns that get more than half of a head's attention while a digit is written."""
    if digit.explanation is not None:
        return digit.explanation.read
    read: dict[int, list[str]] = {}
    for look in digit.attention:
        columns = {name.lstrip("D'") for name in look.positions if name.startswith("D")}
        if len(columns) == 1 and sum(look.positions.values()) > READS:
            read.setdefault(int(columns.pop()), []).append(f"H{look.head}")
    return read


class _Sum:
    def __init__(self, given: Answer, focus: Digit) -> None:
        self.given, self.canvas = given, Canvas()
        self.digits = sum(digit.task is not None for digit in given.digits) - 1
        self.question = parse_question(given.question, self.digits, MIXED)
        self.focus = focus
        self.at = int(self.focus.name[1:])
        self.read = columns_read(self.focus)
        explained = self.focus.explanation
        self.blind = explained.blind if explained else []

    def figure(self, whose: str) -> Figure:
        self._columns()
        self._numbers()
        if self.at:
            self._arrow(int(Columns.of(self.question).deciding[0, self.at]))
        verdict = "right" if self.given.correct else "wrong"
        return Figure(
            self.canvas,
            f"{whose}{self.given.question} = {self.given.answer}, {verdict}",
            f"A sum written column under column; it is {self.given.truth}. To write "
            f"{self.focus.name} the heads read {column_words(list(self.read))}; not read, but "
            f"needed: {column_words(self.blind)}.",
            f"Columns in colour: what each head reads while {self.focus.name} is written. Hatched: "
            "needed, and read by no head.",
        )

    def _x(self, column: int) -> float:
        return LEFT + COLUMN * (self.digits - column + 0.5)

    def _columns(self) -> None:
        top, tall, wide = FIRST - 20, SECOND - FIRST + 40, COLUMN - 6
        for column in range(self.digits):
            x, heads = self._x(column) - wide / 2, self.read.get(column, [])
            for i, head in enumerate(heads):
                fill, part = HEADS[int(head.rpartition("H")[2]) % len(HEADS)], wide / len(heads)
                self.canvas.box(x + i * part, top, part, tall, fill=fill, opacity=0.75, radius=8.0)
            if column in self.blind:
                self.canvas.box(x, top, wide, tall, fill="#dcdcdc", stroke=GREY, radius=8.0)
                self._hatch(x, top, wide, tall)
            readers = "+".join(heads) or ("no head" if column in self.blind else "")
            ink = BLACK if heads else GREY
            self.canvas.text(self._x(column), READERS, readers, ink=ink, weight="bold")

    def _hatch(self, x: float, y: float, wide: float, tall: float) -> None:
        for start in range(8, int(tall), 12):
            self.canvas.line(f"M{x:.0f},{y + start:.0f} l{wide:.0f},-8", stroke=PALE)

    def _numbers(self) -> None:
        names = {"carries": CARRIES, "reads": READERS, "model": WRITTEN, "truth": TRUE}
        for name, y in names.items():
            self.canvas.text(0.0, y, name, ink=GREY, anchor="start", size=SMALL)
        self.canvas.text(LEFT + COLUMN / 2, SECOND, self.question.operation.symbol, size=LARGE)
        for column in reversed(range(self.digits)):
            x, pair = self._x(column), (self.question.first, self.question.second)
            first, second = (str(number[0, column]) for number in pair)
            self._digit(x, FIRST, first)
            self._digit(x, SECOND, second)
            heads = " ".join(self.read.get(column, []))
            self.canvas.records.append(
                {"column": column, "first": first, "second": second, "read by": heads}
            )
        right = self._x(0) + COLUMN / 2
        self.canvas.line(f"M{LEFT},{READERS + 14} H{right}", width=1.5)
        for place, digit in enumerate(self.given.digits):
            self._answer(self._x(len(self.given.digits) - 1 - place), digit)

    def _answer(self, x: float, digit: Digit) -> None:
        right = digit.predicted == digit.truth
        if digit.carrying:
            self.canvas.text(x, CARRIES, "1", size=14.0, weight="bold")
        if digit is self.focus:
            stroke = BLACK if right else WRONG
            fill = "#ffffff" if right else "#fdf0e8"
            self.canvas.box(x - 18, WRITTEN - 18, 36.0, 36.0, fill=fill, stroke=stroke, radius=8.0)
        self._digit(x, WRITTEN, digit.predicted, BLACK if right else WRONG)
        self.canvas.text(x, TRUE, digit.truth, ink=GREY, size=14.0)

    def _digit(self, x: float, y: float, text: str, ink: str = BLACK) -> None:
        self.canvas.text(x, y, text, ink=ink, size=LARGE)

    def _arrow(self, start: int) -> None:
        """From the column that decides the carry to the digit that needs it."""
        x, end, carrying = self._x(start), self._x(self.at), bool(self.focus.carrying)
        ink, top = (BLACK if carrying else GREY), CARRIES - 14
        self.canvas.line(
            f"M{x},{top} C{x},{top - 44} {end},{top - 44} {end},{top - 4}",
            stroke=ink,
            width=2.0,
            dash="" if carrying else "5 4",
            end=f"M{end - 6},{top - 8} h12 l-6,9 z",
        )
        origin = f"made in column {start}" if carrying else f"ruled out by column {start}"
        words = f"the carry for {self.focus.name} is {origin}"
        half = len(words) * CHARACTER * SMALL / 20
        middle = min((x + end) / 2, self._x(0) + COLUMN / 2 - half)
        self.canvas.text(max(middle, half), 6.0, words, size=SMALL)
