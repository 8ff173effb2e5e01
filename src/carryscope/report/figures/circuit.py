"""The main figure: what each head reads at each answer row, what it carries, what is written.

In: a dissection. Out: a figure in the manner of the paper's first one. Rows are answer rows, from
"=" down. On the left stand the tokens with the number of the head that reads each of them, so that
the double staircase shows; on the right what each head carries, what the MLP makes of it, and the
digit that is written. A head that no question needs stays an empty outline.
"""

from __future__ import annotations

import altair as alt

from carryscope.core.words import brief
from carryscope.dissection.attention import AttentionFinding, Reading
from carryscope.dissection.findings import Dissection
from carryscope.report.figures.drawing import SAYS, TIP, Record, data, needed, pixels
from carryscope.report.figures.figure import AnyChart, Figure
from carryscope.report.words import head_name, head_roles
from carryscope.task.questions import parse_question

LEAST_SHOWN = 0.15
"""Tokens that get less of a head's attention than this are left out."""

HEADS = ("#7cc0ea", "#f2bd4c", "#5fc3a2", "#d9a0c2", "#f5ec7a", "#b9b9b9")
"""One light colour for each head, which the colour-blind tell apart; its number stands on it."""

ROW, HEADING, MARGIN, DIGIT = 30.0, 44.0, 62.0, 40.0
"""Height of a row; room for the names above, left of the rows and right of them, in pixels."""

ABOVE, BELOW = 12.0, 30.0
"""Where the two lines of names above the rows stand, in pixels."""

CHARACTER, GAP = 6.3, 8.0
"""Width of a character and the space between two boxes, in pixels."""

UNUSED, UNKNOWN = "not needed", "?"

BLACK, GREY, PALE = "#000000", "#666666", "#999999"
"""Inks of texts."""


def circuit(dissection: Dissection) -> Figure:
    """The staircase with what every head carries, row by row."""
    finding: AttentionFinding = needed(dissection, "attention")
    layers = range(dissection.model.layers)
    title = {"present": f"How this model adds {dissection.model.digits}-digit numbers"}.get(
        finding.staircase,
        f"What the heads read: {'part of a' if finding.staircase == 'partial' else 'no'} staircase",
    )
    return Figure(
        alt.vconcat(*(_Layer(dissection, finding, layer).drawn() for layer in layers), spacing=24),
        title,
        f"A diagram, a row for each answer row: the tokens that each head reads, what it carries, "
        f"what the MLP carries, and the digit that is written. {finding.statement} "
        f"{dissection.subtasks.statement if dissection.subtasks else ''}",
        "Numbers are heads, the stronger the more attention (mean over "
        f"{finding.questions:,} questions). Outlines: attention that no question needs.",
    )


class _Layer:
    """One layer: boxes and texts are placed one after the other, then drawn."""

    def __init__(self, dissection: Dissection, finding: AttentionFinding, layer: int) -> None:
        model = dissection.model
        self.dissection, self.finding, self.layer, self.model = dissection, finding, layer, model
        self.names = model.layout.position_names
        self.tokens = self.names[:-1]  # nothing comes after the last, so nothing reads it
        self.cell = max(14.0, min(20.0, 620 / model.context))
        rows = enumerate(model.layout.answer_rows)
        self.rows = {row: HEADING + ROW * (i + 0.5) for i, row in rows}
        self.boxes: list[Record] = []
        self.texts: list[Record] = []

    def drawn(self) -> AnyChart:
        self._attention()
        right = MARGIN + self.cell * len(self.tokens) + 2 * GAP
        for head in range(self.model.heads):
            right = self._carried(f"H{head}", head, right)
        if self.model.d_mlp:
            right = self._carried("MLP", None, right)
        self._around(right)
        width, height = right + DIGIT, HEADING + ROW * len(self.rows)
        spot = {"x": pixels("_x", alt.X), "y": pixels("_y", alt.Y)}
        place = {**spot, "x2": "_x2:Q", "y2": "_y2:Q"}
        bands = [
            {"_x": 0.0, "_x2": width, "_y": y - ROW / 2, "_y2": y + ROW / 2}
            for y in list(self.rows.values())[::2]
        ]
        boxes = alt.Chart(data(self.boxes)).mark_rect(cornerRadius=3, strokeWidth=1)
        drawn: AnyChart = alt.layer(
            alt.Chart(data(bands)).mark_rect(fill="#f6f6f6").encode(**place),
            boxes.encode(
                fill=alt.Fill("_fill:N", scale=None),
                fillOpacity=alt.FillOpacity("_opacity:Q", scale=None),
                stroke=alt.Stroke("_stroke:N", scale=None),
                description=SAYS,
                **place,
            ),
            *(
                alt.Chart(data([text for text in self.texts if text["_align"] == align]))
                .mark_text(align=align, fontSize=10, baseline="middle")
                .encode(color=alt.Color("_ink:N", scale=None), text="text:N", **spot)
                for align in ("center", "right", "left")
            ),
        ).properties(width=width, height=height, view=alt.ViewConfig(stroke=None))
        return drawn

    def _box(self, left: float, right: float, row: int, head: int | None, fields: Record) -> None:
        y, half = self.rows[row], ROW / 2 - 4
        fill = "#ffffff" if head is None else HEADS[head % len(HEADS)]
        place = {"_x": left, "_x2": right, "_y": y - half, "_y2": y + half, "_fill": fill}
        self.boxes.append({**place, "writes": self.names[row + 1], **fields})

    def _text(self, x: float, y: float, text: str, ink: str = BLACK, align: str = "center") -> None:
        self.texts.append({"_x": x, "_y": y, "text": text, "_ink": ink, "_align": align})

    def _attention(self) -> None:
        """The tokens that heads read; where several read one token they share its cell."""
        shown: dict[tuple[int, str], list[Reading]] = {}
        for reading in self.finding.readings:
            for token, share in reading.tokens.items():
                if reading.layer == self.layer and share >= LEAST_SHOWN and token in self.tokens:
                    shown.setdefault((reading.row, token), []).append(reading)
        for (row, token), readers in shown.items():
            left, width = MARGIN + self.cell * self.tokens.index(token), self.cell / len(readers)
            for i, reading in enumerate(readers):
                self._reading(reading, token, left + i * width, width)
                ink = BLACK if self._carries(row, f"H{reading.head}") != UNUSED else "#888888"
                self._text(left + (i + 0.5) * width, self.rows[row], str(reading.head), ink)

    def _reading(self, reading: Reading, token: str, left: float, width: float) -> None:
        used = self._carries(reading.row, f"H{reading.head}") != UNUSED
        share, name = reading.tokens[token], head_name(self.layer, reading.head, self.model.layers)
        fields = {
            "part": name,
            "reads": token,
            "attention": share,
            "_opacity": 0.3 + 0.7 * share if used else 0.0,
            "_stroke": "#444444" if used else "#bbbbbb",
            TIP: f"{name} at the row of {reading.answer} gives {token} {brief(share)} of its "
            f"attention{'' if used else '; no question needs it there'}",
        }
        self._box(left + 0.5, left + width - 0.5, reading.row, reading.head, fields)

    def _carries(self, row: int, part: str) -> str:
        """What a node was found to carry; what is left to say if it was not looked for."""
        node, found = f"P{row}.L{self.layer}.{part}", self.dissection
        if found.nodes and not any(n.useful for n in found.nodes.nodes if n.node == node):
            return UNUSED
        purpose = found.subtasks.purpose_of(node) if found.subtasks else "??"
        return UNKNOWN if purpose == "??" else purpose.replace(f"{self.names[row + 1]}.", "")

    def _carried(self, part: str, head: int | None, left: float) -> float:
        """The names and boxes of one part, row by row; where the next one begins."""
        carried = {row: self._carries(row, part) for row in self.rows}
        right = left + max(map(len, [*carried.values(), "wwwwwwww"])) * CHARACTER + 10
        name = part if head is None else head_name(self.layer, head, self.model.layers)
        role = "" if head is None else head_roles(self.finding)[self.layer, head]
        self._text(left, ABOVE, name, align="left")
        self._text(left, BELOW, role, GREY, align="left")
        for row, y in self.rows.items():
            used = carried[row] != UNUSED
            fields = {
                "part": part,
                "carries": carried[row],
                "_opacity": 1.0 if used else 0.0,
                "_stroke": "#444444" if used else "#dddddd",
                TIP: self._tip(f"P{row}.L{self.layer}.{part}", carried[row]),
            }
            self._box(left, right, row, head, fields)
            told = carried[row] if used else "-"
            self._text((left + right) / 2, y, told, BLACK if used else PALE)
        return right + GAP

    def _tip(self, node: str, carried: str) -> str:
        words = {UNUSED: "no question needs it", UNKNOWN: "what it carries was not found"}
        told = f"{node}: {words.get(carried, f'carries {carried}')}"
        nodes = self.dissection.nodes.nodes if self.dissection.nodes else []
        fails = next((n.fails for n in nodes if n.node == node and n.useful), None)
        return f"{told}; {brief(fails.estimate)} of questions fail without it" if fails else told

    def _around(self, right: float) -> None:
        """Tokens and an example above, rows on the left, digits on the right."""
        for i, (name, symbol) in enumerate(zip(self.tokens, self._example(), strict=True)):
            x = MARGIN + self.cell * (i + 0.5)
            self._text(x, ABOVE, symbol)
            self._text(x, BELOW, name, GREY)
        self._text(right + 16, ABOVE, "writes")
        for row, y in self.rows.items():
            self._text(MARGIN - 10, y, f"row {self.names[row]}", align="right")
            self._text(right + 16, y, self.names[row + 1])

    def _example(self) -> str:
        """The paper's own example, as many of its digits as the model takes."""
        layout = self.model.layout
        first, second = ("54321" * 4)[: layout.digits], ("77779" * 4)[-layout.digits :]
        asked = parse_question(f"{first}+{second}", layout.digits)
        return layout.text(layout.encode(asked)[0])[:-1]
