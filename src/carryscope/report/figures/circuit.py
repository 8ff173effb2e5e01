"""The main figures: what each head reads at each answer row, and what it carries there.

In: a dissection. Out: two figures that stand side by side, in the manner of the paper's first one.
Rows are answer rows, each named by the digit that it writes. In the first stand the tokens with the
number of the head that reads each of them, so that the double staircase shows; in the second what
each head carries, and what the MLP makes of it. A head that no question needs stays an empty
outline. Both are narrow enough for a phone.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from carryscope.core.words import brief
from carryscope.dissection.attention import Reading
from carryscope.dissection.dissect import Dissection
from carryscope.dissection.interventions import head_name
from carryscope.report.figures.canvas import BLACK, GREY, HEADS, PALE, Canvas
from carryscope.report.figures.figure import Figure
from carryscope.report.nodes import UNKNOWN, UNUSED, NodeWords, node_words
from carryscope.report.words import STAIRCASE, head_roles

LEAST_SHOWN = 0.15
"""Tokens that get less of a head's attention than this are left out."""

ROW, HEADING, MARGIN, PART = 36.0, 44.0, 42.0, 66.0
"""Height of a row; room for the names above and left of the rows; width of a part's column."""

LINE, SMALL = 11, 9.0
"""Characters of a line in a box, and their size."""

ABOVE, BELOW = 12.0, 30.0
"""Where the two lines of names above the rows stand, in pixels."""


def reads(dissection: Dissection) -> Figure:
    """The staircase: which head reads which token, row by row."""
    finding = dissection.attention
    assert finding is not None
    return Figure(
        _drawn(dissection, _Layer.reads),
        f"What each head reads: {STAIRCASE[finding.staircase]}",
        f"A diagram, a row for each answer row: the tokens that each head reads. "
        f"{finding.statement}",
        f"D and D': the digits of the two numbers; A: those of the answer. Numbers are heads, the "
        f"stronger the more attention (mean over {finding.questions:,} questions). Outlines: "
        "attention that no question needs.",
    )


def circuit(dissection: Dissection) -> Figure:
    """What every head carries, row by row, and what is made of it."""
    carried = dissection.subtasks.statement if dissection.subtasks else ""
    words = dissection.model.layout.operation.words
    base = f"base {words.question}"
    return Figure(
        _drawn(dissection, _Layer.carries),
        "What each head carries",
        f"A diagram, a row for each answer row: what each head and the MLP carry. {carried}",
        f"{base[:1].upper()}{base[1:]}: of the two digits alone, before a {words.carry} arrives. "
        f"State: whether a column makes a {words.carry}, passes one on or neither. Outlines: no "
        "question needs it.",
    )


def _drawn(dissection: Dissection, draw: Callable[[_Layer], None]) -> Canvas:
    canvas = Canvas()
    for layer in range(dissection.model.layers):
        draw(_Layer(canvas, dissection, layer))
    return canvas


class _Layer:
    """One layer, below the ones that are drawn already."""

    def __init__(self, canvas: Canvas, dissection: Dissection, layer: int) -> None:
        assert dissection.attention is not None
        self.canvas, self.finding, self.layer = canvas, dissection.attention, layer
        self.model, self.words = dissection.model, node_words(dissection)
        self.names = self.model.layout.position_names
        self.tokens = self.names[:-1]  # nothing comes after the last, so nothing reads it
        self.cell = max(14.0, min(17.0, 620 / self.model.context))
        self.top = canvas.height + (24.0 if layer else 0.0)
        self.rows = {
            row: self.top + HEADING + ROW * (i + 0.5)
            for i, row in enumerate(self.model.layout.answer_rows)
        }

    def reads(self) -> None:
        """The tokens above, and the heads that read each of them."""
        self._rows(MARGIN + self.cell * len(self.tokens))
        for i, (name, symbol) in enumerate(zip(self.tokens, self._example(), strict=True)):
            x = MARGIN + self.cell * (i + 0.5)
            self.canvas.text(x, self.top + ABOVE, symbol)
            self.canvas.text(x, self.top + BELOW, name, ink=GREY, size=SMALL)
        self._attention()

    def carries(self) -> None:
        """A column of boxes for each part."""
        parts = [*range(self.model.heads), *([None] if self.model.d_mlp else [])]
        self._rows(MARGIN + PART * len(parts))
        for i, head in enumerate(parts):
            self._carried(head, MARGIN + PART * i)

    def _rows(self, right: float) -> None:
        """The names of the rows, every other one on a band."""
        self.canvas.text(MARGIN - 6, self.top + BELOW, "writes", ink=GREY, anchor="end", size=SMALL)
        for i, (row, y) in enumerate(self.rows.items()):
            if i % 2 == 0:
                self.canvas.box(0.0, y - ROW / 2, right, ROW, fill="#f6f6f6")
            self.canvas.text(MARGIN - 10, y, self.names[row + 1], anchor="end")

    def _part(self, head: int | None) -> str:
        return "MLP" if head is None else head_name(self.layer, head, self.model.layers)

    def _node(self, row: int, head: int | None) -> str:
        return f"P{row}.L{self.layer}.{'MLP' if head is None else f'H{head}'}"

    def _known(self, row: int, head: int | None) -> NodeWords:
        return self.words.get(self._node(row, head), NodeWords("", "Not tested.", None))

    def _attention(self) -> None:
        """The tokens that heads read; where several read one token they share its cell."""
        shown: dict[tuple[int, str], list[Reading]] = {}
        for reading in self.finding.readings:
            for token, share in reading.tokens.items():
                if reading.layer == self.layer and share >= LEAST_SHOWN and token in self.tokens:
                    shown.setdefault((reading.row, token), []).append(reading)
        for (_, token), readers in shown.items():
            left, width = MARGIN + self.cell * self.tokens.index(token), self.cell / len(readers)
            for i, reading in enumerate(readers):
                self._reading(reading, token, left + i * width, width)

    def _reading(self, reading: Reading, token: str, left: float, width: float) -> None:
        used = self._known(reading.row, reading.head).carries != UNUSED
        share, name = reading.tokens[token], self._part(reading.head)
        tip = f"{name} at row {reading.answer} gives {token} {brief(share)} of its attention"
        tip += "" if used else "; no question needs it there"
        span, strength = (left + 0.5, width - 1), (0.3 + 0.7 * share) * used
        self._box(span, reading.row, reading.head, str(reading.head), strength, tip)
        record = {"part": name, "writes": reading.answer, "reads": token, "attention": share}
        self.canvas.records.append(record)

    def _box(
        self,
        span: tuple[float, float],
        row: int,
        head: int | None,
        text: str,
        strength: float,
        tip: str,
    ) -> None:
        """A box with its text, from x on so wide; without strength it is an outline."""
        x, width = span
        fill = "#ffffff" if head is None else HEADS[head % len(HEADS)]
        stroke, ink = ("#444444", BLACK) if strength else (PALE, "#888888")
        top, look = self.rows[row] - ROW / 2 + 4, {"fill": fill, "stroke": stroke, "tip": tip}
        self.canvas.box(x, top, width, ROW - 8, opacity=strength, radius=3.0, **look)
        lines = textwrap.wrap(text, LINE)
        for i, line in enumerate(lines):
            y = self.rows[row] + SMALL * (i - (len(lines) - 1) / 2)
            self.canvas.text(x + width / 2, y, line, ink=ink, size=SMALL)

    def _carried(self, head: int | None, left: float) -> None:
        """The names and boxes of one part, row by row."""
        role = "" if head is None else head_roles(self.finding)[self.layer, head]
        self.canvas.text(left, self.top + ABOVE, self._part(head), anchor="start", weight="bold")
        self.canvas.text(left, self.top + BELOW, role, ink=GREY, anchor="start", size=SMALL)
        for row in self.rows:
            carries, tip = self._known(row, head).carries, self._known(row, head).sentence
            text = {UNUSED: "-", UNKNOWN: "?", "": "?"}.get(carries, carries)
            self._box((left, PART - 4), row, head, text, float(carries != UNUSED), tip)
            record = {"part": self._part(head), "writes": self.names[row + 1], "carries": carries}
            self.canvas.records.append(record)

    def _example(self) -> str:
        """The paper's own example, as many of its digits as the model takes."""
        layout = self.model.layout
        first, second = ("54321" * 4)[: layout.digits], ("77779" * 4)[-layout.digits :]
        asked = layout.parse(layout.operation.each_part[0].text(int(first), int(second)))
        return layout.text(layout.encode(asked)[0])[:-1]
