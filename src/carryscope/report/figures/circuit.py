"""The main figure: what each head reads at each answer row, what it carries, what is written.

In: a dissection. Out: a figure in the manner of the paper's first one. Rows are answer rows, from
"=" down. On the left stand the tokens with the number of the head that reads each of them, so that
the double staircase shows; on the right what each head carries, what the MLP makes of it, and the
digit that is written. A head that no question needs stays an empty outline.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import altair as alt

from carryscope.core.words import brief
from carryscope.dissection.attention import AttentionFinding, Reading
from carryscope.dissection.findings import Dissection
from carryscope.report.figures.drawing import SAYS, Record, data, needed, pixels
from carryscope.report.figures.figure import AnyChart, Figure
from carryscope.report.figures.hover import TIP
from carryscope.report.words import head_name, head_roles
from carryscope.task.questions import parse_question
from carryscope.task.tokens import Format

LEAST_SHOWN = 0.15
"""Tokens that get less of a head's attention than this are left out."""

HEADS = ("#7cc0ea", "#f2bd4c", "#5fc3a2", "#d9a0c2", "#f5ec7a", "#b9b9b9")
"""One light colour for each head, which the colour-blind tell apart; its number stands on it."""

ROW, HEADING, MARGIN = 30.0, 44.0, 62.0
"""Height of a row, room for the names above and for the rows' names on the left, in pixels."""

ABOVE, BELOW = 12.0, 30.0
"""Where the two lines of names above the rows stand, in pixels."""

CHARACTER, GAP = 6.3, 8.0
"""Width of a character and the space between two boxes, in pixels."""

UNUSED, UNKNOWN = "not needed", "?"


def circuit(dissection: Dissection) -> Figure:
    """The staircase with what every head carries, row by row."""
    finding: AttentionFinding = needed(dissection, "attention")
    layers = range(dissection.model.layers)
    panels = [_Panel(dissection, finding, layer).drawn() for layer in layers]
    return Figure(
        alt.vconcat(*panels, spacing=24),
        _title(dissection, finding),
        f"A diagram, a row for each answer row: the tokens that each head reads, what it carries, "
        f"what the MLP carries, and the digit that is written. {finding.statement} "
        f"{dissection.subtasks.statement if dissection.subtasks else ''}",
        "Numbers are heads, the stronger the more attention (mean over "
        f"{finding.questions:,} questions). Outlines: attention that no question needs.",
    )


def _title(dissection: Dissection, finding: AttentionFinding) -> str:
    if finding.staircase == "present":
        return f"How this model adds {dissection.model.digits}-digit numbers"
    seen = "part of a staircase" if finding.staircase == "partial" else "no staircase"
    return f"What the heads read: {seen}"


@dataclass(frozen=True, eq=False)
class _Panel:
    """One layer."""

    dissection: Dissection
    finding: AttentionFinding
    layer: int

    @property
    def layout(self) -> Format:
        return self.dissection.model.layout

    @property
    def layers(self) -> int:
        return self.dissection.model.layers

    @cached_property
    def cell(self) -> float:
        """Width of a token's column."""
        return max(14.0, min(20.0, 620 / self.dissection.model.context))

    @cached_property
    def tokens(self) -> list[str]:
        """The tokens that can be read: all but the last, which nothing comes after."""
        return self.layout.position_names[:-1]

    @cached_property
    def readings(self) -> list[Reading]:
        return [reading for reading in self.finding.readings if reading.layer == self.layer]

    @cached_property
    def useful(self) -> set[str] | None:
        """The nodes that some question needs; None if that was not studied."""
        nodes = self.dissection.nodes
        return None if nodes is None else {node.node for node in nodes.nodes if node.useful}

    def drawn(self) -> AnyChart:
        boxes, texts = self._marks()
        spot = {"x": pixels("_x", alt.X), "y": pixels("_y", alt.Y)}
        place = {**spot, "x2": "_x2:Q", "y2": "_y2:Q"}
        chart = alt.layer(
            alt.Chart(data(self._bands())).mark_rect(fill="#f6f6f6").encode(**place),
            alt.Chart(data(boxes))
            .mark_rect(cornerRadius=3, strokeWidth=1)
            .encode(
                fill=alt.Fill("_fill:N", scale=None),
                fillOpacity=alt.FillOpacity("_opacity:Q", scale=None),
                stroke=alt.Stroke("_stroke:N", scale=None),
                description=SAYS,
                **place,
            ),
            *(
                alt.Chart(data([t for t in texts if t["_align"] == align]))
                .mark_text(align=align, fontSize=10, baseline="middle")
                .encode(color=alt.Color("_ink:N", scale=None), text="text:N", **spot)
                for align in ("center", "right", "left")
            ),
        )
        size = {"width": self._right + 40, "height": HEADING + ROW * len(self._rows)}
        drawn: AnyChart = chart.properties(**size, view=alt.ViewConfig(stroke=None))
        return drawn

    @cached_property
    def _rows(self) -> dict[int, float]:
        """The middle of each answer row."""
        rows = self.layout.answer_rows
        return {row: HEADING + ROW * (i + 0.5) for i, row in enumerate(rows)}

    @cached_property
    def _parts(self) -> list[str]:
        mlp = ["MLP"] if self.dissection.model.d_mlp else []
        return [*(f"H{head}" for head in range(self.dissection.model.heads)), *mlp]

    @cached_property
    def _lefts(self) -> dict[str, float]:
        """Where the boxes of each part begin, and after the last where they end."""
        x = MARGIN + self.cell * len(self.tokens) + 2 * GAP
        lefts = {}
        for part in self._parts:
            lefts[part] = x
            words = [self._carries(row, part) for row in self._rows]
            x += max(map(len, [*words, "wwwwwwww"])) * CHARACTER + 10 + GAP
        return lefts | {"": x}

    @cached_property
    def _right(self) -> float:
        return self._lefts[""]

    def _bands(self) -> list[Record]:
        """Every other row on grey, from its name to its digit."""
        reach = {"_x": 0.0, "_x2": self._right + 40}
        rows = list(self._rows.values())[::2]
        return [{**reach, "_y": y - ROW / 2, "_y2": y + ROW / 2} for y in rows]

    def _carries(self, row: int, part: str) -> str:
        """What a node was found to carry; what is left to say if it was not looked for."""
        node = f"P{row}.L{self.layer}.{part}"
        if self.useful is not None and node not in self.useful:
            return UNUSED
        if self.dissection.subtasks is None:
            return UNKNOWN
        digit = self.layout.position_names[row + 1]
        purpose = self.dissection.subtasks.purpose_of(node)
        return UNKNOWN if purpose == "??" else purpose.replace(f"{digit}.", "")

    def _marks(self) -> tuple[list[Record], list[Record]]:
        """All boxes and all texts."""
        boxes, texts = self._cells()
        for part in self._parts:
            more, words = self._carried(part)
            boxes, texts = boxes + more, texts + words
        return boxes, texts + self._names()

    def _cells(self) -> tuple[list[Record], list[Record]]:
        """The tokens that heads read; where several read one token they share its cell."""
        shown: dict[tuple[int, str], list[Reading]] = {}
        for reading in self.readings:
            for token, share in reading.tokens.items():
                if share >= LEAST_SHOWN and token in self.tokens:
                    shown.setdefault((reading.row, token), []).append(reading)
        boxes, texts = [], []
        for (row, token), readers in shown.items():
            left, width = MARGIN + self.cell * self.tokens.index(token), self.cell / len(readers)
            for i, reading in enumerate(readers):
                box = self._cell(reading, token, left + i * width, width)
                boxes.append(box)
                middle = (box["_x"] + box["_x2"]) / 2
                texts.append(_text(middle, self._rows[row], str(reading.head), ink=box["_ink"]))
        return boxes, texts

    def _cell(self, reading: Reading, token: str, left: float, width: float) -> Record:
        used = self._carries(reading.row, f"H{reading.head}") != UNUSED
        share, y = reading.tokens[token], self._rows[reading.row]
        name = head_name(self.layer, reading.head, self.layers)
        return {
            **_box(left + 0.5, left + width - 0.5, y, HEADS[reading.head % len(HEADS)]),
            "writes": reading.answer,
            "part": name,
            "reads": token,
            "attention": share,
            "_opacity": 0.3 + 0.7 * share if used else 0.0,
            "_stroke": "#444444" if used else "#bbbbbb",
            "_ink": "#000000" if used else "#888888",
            TIP: f"{name} at the row of {reading.answer} gives {token} {brief(share)} of its "
            f"attention{'' if used else '; no question needs it there'}",
        }

    def _carried(self, part: str) -> tuple[list[Record], list[Record]]:
        """The boxes of one part, row by row."""
        head = int(part[1:]) if part != "MLP" else None
        colour = "#ffffff" if head is None else HEADS[head % len(HEADS)]
        following = list(self._lefts)[list(self._lefts).index(part) + 1]
        left, right = self._lefts[part], self._lefts[following] - GAP
        boxes, texts = [], []
        for row, y in self._rows.items():
            carried = self._carries(row, part)
            used = carried != UNUSED
            boxes.append(
                {
                    **_box(left, right, y, colour),
                    "writes": self.layout.position_names[row + 1],
                    "part": part,
                    "carries": carried,
                    "_opacity": 1.0 if used else 0.0,
                    "_stroke": "#444444" if used else "#dddddd",
                    TIP: self._said(row, part, carried),
                }
            )
            ink = "#000000" if used else "#999999"
            texts.append(_text((left + right) / 2, y, carried if used else "-", ink=ink))
        return boxes, texts

    def _said(self, row: int, part: str, carried: str) -> str:
        node = f"P{row}.L{self.layer}.{part}"
        words = {UNUSED: "no question needs it", UNKNOWN: "what it carries was not found"}
        told = f"{node}: {words.get(carried, f'carries {carried}')}"
        nodes = self.dissection.nodes.nodes if self.dissection.nodes else []
        fails = next((n.fails for n in nodes if n.node == node and n.useful), None)
        return f"{told}; {brief(fails.estimate)} of questions fail without it" if fails else told

    def _names(self) -> list[Record]:
        """Tokens and an example above, rows on the left, digits on the right."""
        texts = []
        for i, (name, symbol) in enumerate(zip(self.tokens, self._example(), strict=True)):
            x = MARGIN + self.cell * (i + 0.5)
            texts += [_text(x, ABOVE, symbol), _text(x, BELOW, name, ink="#666666")]
        roles = head_roles(self.finding)
        for part, left in list(self._lefts.items())[:-1]:
            head = None if part == "MLP" else int(part[1:])
            name = part if head is None else head_name(self.layer, head, self.layers)
            role = "" if head is None else roles[self.layer, head]
            texts.append(_text(left, ABOVE, name, align="left"))
            texts.append(_text(left, BELOW, role, ink="#666666", align="left"))
        texts.append(_text(self._right + 16, ABOVE, "writes"))
        for row, y in self._rows.items():
            reads, writes = self.layout.position_names[row : row + 2]
            texts.append(_text(MARGIN - 10, y, f"row {reads}", align="right"))
            texts.append(_text(self._right + 16, y, writes))
        return texts

    def _example(self) -> str:
        """The paper's own example, as many of its digits as the model takes."""
        digits = self.layout.digits
        first, second = (("54321" * 4)[:digits], ("77779" * 4)[-digits:])
        asked = parse_question(f"{first}+{second}", digits)
        return self.layout.text(self.layout.encode(asked)[0])[:-1]


def _box(left: float, right: float, middle: float, fill: str) -> Record:
    half = ROW / 2 - 4
    return {"_x": left, "_x2": right, "_y": middle - half, "_y2": middle + half, "_fill": fill}


def _text(x: float, y: float, text: str, *, ink: str = "#000000", align: str = "center") -> Record:
    return {"_x": x, "_y": y, "text": text, "_ink": ink, "_align": align}
