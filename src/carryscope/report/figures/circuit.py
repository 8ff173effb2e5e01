"""The main figures: what each head reads at each answer row, and what it carries there.

In: a dissection. Out: two figures that stand side by side, in the manner of the paper's first one.
Rows are answer rows, from "=" down. In the first stand the tokens with the number of the head that
reads each of them, so that the double staircase shows; in the second what each head carries, what
the MLP makes of it, and the digit that is written. A head that no question needs stays an empty
outline.
"""

from __future__ import annotations

from collections.abc import Callable

from carryscope.core.words import brief
from carryscope.dissection.attention import Reading
from carryscope.dissection.dissect import Dissection
from carryscope.dissection.interventions import head_name
from carryscope.report.figures.canvas import BLACK, CHARACTER, GREY, HEADS, PALE, Canvas
from carryscope.report.figures.figure import Figure
from carryscope.report.nodes import UNKNOWN, UNUSED, NodeWords, node_words
from carryscope.report.words import STAIRCASE, head_roles

LEAST_SHOWN = 0.15
"""Tokens that get less of a head's attention than this are left out."""

ROW, HEADING, MARGIN, GAP = 30.0, 44.0, 62.0, 8.0
"""Height of a row; room for the names above and left of the rows; space between two boxes."""

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
        "Numbers are heads, the stronger the more attention (mean over "
        f"{finding.questions:,} questions). Outlines: attention that no question needs.",
    )


def circuit(dissection: Dissection) -> Figure:
    """What every head carries, row by row, and what is made of it."""
    carried = dissection.subtasks.statement if dissection.subtasks else ""
    return Figure(
        _drawn(dissection, _Layer.carries),
        "What each head carries",
        "A diagram, a row for each answer row: what each head and the MLP carry, and the digit "
        f"that is written. {carried}",
        "BA(3): the base sum of column 3. state(2): whether column 2 makes a carry, passes one on "
        "or neither. MC1(1): whether column 1 makes one. Outlines: no question needs it.",
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
        self.cell = max(14.0, min(20.0, 620 / self.model.context))
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
            self.canvas.text(x, self.top + BELOW, name, ink=GREY)
        self._attention()

    def carries(self) -> None:
        """A column of boxes for each part, and the digit that is written."""
        parts = [*range(self.model.heads), *([None] if self.model.d_mlp else [])]
        widths = {
            head: CHARACTER * max(8, *(len(self._known(row, head).carries) for row in self.rows))
            + 10
            for head in parts
        }
        right = MARGIN + sum(width + GAP for width in widths.values())
        self._rows(right + 40)
        left = MARGIN
        for head, width in widths.items():
            self._carried(head, left, width)
            left += width + GAP
        self.canvas.text(right + 16, self.top + ABOVE, "writes")
        for row, y in self.rows.items():
            self.canvas.text(right + 16, y, self.names[row + 1])

    def _rows(self, right: float) -> None:
        """The names of the rows, every other one on a band."""
        for i, (row, y) in enumerate(self.rows.items()):
            if i % 2 == 0:
                self.canvas.box(0.0, y - ROW / 2, right, ROW, fill="#f6f6f6")
            self.canvas.text(MARGIN - 10, y, f"row {self.names[row]}", anchor="end")

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
        tip = f"{name} at the row of {reading.answer} gives {token} {brief(share)} of its attention"
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
        self.canvas.text(x + width / 2, self.rows[row], text, ink=ink)

    def _carried(self, head: int | None, left: float, width: float) -> None:
        """The names and boxes of one part, row by row."""
        role = "" if head is None else head_roles(self.finding)[self.layer, head]
        self.canvas.text(left, self.top + ABOVE, self._part(head), anchor="start", weight="bold")
        self.canvas.text(left, self.top + BELOW, role, ink=GREY, anchor="start")
        for row in self.rows:
            carries, tip = self._known(row, head).carries, self._known(row, head).sentence
            text = {UNUSED: "-", UNKNOWN: "?", "": "?"}.get(carries, carries)
            self._box((left, width), row, head, text, float(carries != UNUSED), tip)
            record = {"part": self._part(head), "writes": self.names[row + 1], "carries": carries}
            self.canvas.records.append(record)

    def _example(self) -> str:
        """The paper's own example, as many of its digits as the model takes."""
        layout = self.model.layout
        first, second = ("54321" * 4)[: layout.digits], ("77779" * 4)[-layout.digits :]
        asked = layout.parse(layout.operation.each_part[0].text(int(first), int(second)))
        return layout.text(layout.encode(asked)[0])[:-1]
