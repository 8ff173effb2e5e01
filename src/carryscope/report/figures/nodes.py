"""The paper's node maps: parts of the model by token position, one quantity in each cell.

In: a dissection. Out: figures. A node is one head, or the MLP, of one layer at one position; what
is not used is grey and empty, as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import altair as alt

from carryscope.core.errors import CallError
from carryscope.core.words import brief
from carryscope.dissection.attention import AttentionFinding
from carryscope.dissection.findings import Dissection
from carryscope.dissection.nodes import NodeEffect, NodesFinding
from carryscope.dissection.purposes import SubtasksFinding
from carryscope.report.figures.drawing import (
    BLACK,
    BLUE,
    DARK,
    GREY,
    PAGE,
    SAYS,
    TIP,
    TWO_LINES,
    Record,
    data,
    names_across,
    names_down,
    needed,
    shade,
)
from carryscope.report.figures.figure import AnyChart, Figure
from carryscope.task.tokens import Format

Quantity = Literal["fails", "impact", "attention", "purpose"]

LEAST_ATTENTION = 0.1
"""Tokens that get less than this are left out of the attention map."""

KNOWN = 0.12
"""The shade of a node whose purpose was found."""

LINE, CHARACTER = 13.0, 6.4
"""Height of a line and width of a character in a cell, in pixels."""


class Cell(NamedTuple):
    """What stands in a cell, line by line, and how dark it is; no shade means not used."""

    lines: list[str]
    share: float | None


def _fails(dissection: Dissection, node: NodeEffect) -> Cell:
    return Cell([brief(node.fails.estimate)], node.fails.estimate)


def _impact(dissection: Dissection, node: NodeEffect) -> Cell:
    names = list(node.digits)
    lines = [" ".join(names[i : i + 2]) for i in range(0, len(names), 2)]
    return Cell(lines, max(share.estimate for share in node.digits.values()))


def _attention(dissection: Dissection, node: NodeEffect) -> Cell:
    finding: AttentionFinding = needed(dissection, "attention")
    place = (node.layer, node.head or 0, node.row)
    seen = [r.tokens for r in finding.readings if (r.layer, r.head, r.row) == place]
    most = {t: share for tokens in seen for t, share in tokens.items() if share >= LEAST_ATTENTION}
    lines = [f"{token} {brief(share)}" for token, share in most.items()]
    return Cell(lines or ["-"], sum(most.values(), 0.0))


def _purpose(dissection: Dissection, node: NodeEffect) -> Cell:
    finding: SubtasksFinding = needed(dissection, "subtasks")
    purpose = finding.purpose_of(node.node)
    lines = purpose.replace(" with ", " with\N{NO-BREAK SPACE}").split(" ")
    return Cell(lines, 0.0 if purpose == "??" else KNOWN)


class NodeMap(NamedTuple):
    """One of the four maps: its words, and how to fill a cell."""

    title: str
    reading: str
    legend: str
    fill: Callable[[Dissection, NodeEffect], Cell]
    mlp: bool = True
    """Whether an MLP has such a quantity."""


MAPS: dict[str, NodeMap] = {
    "fails": NodeMap(
        "Questions that fail without each node",
        "In each cell, the share of questions that fail when the node is ablated.",
        "questions that fail",
        _fails,
    ),
    "impact": NodeMap(
        "Answer digits that each node affects",
        "In each cell, the answer digits that turn wrong when the node is ablated; the shade is "
        "the share of the digit that suffers most.",
        "digits that turn wrong",
        _impact,
    ),
    "attention": NodeMap(
        "Tokens that each head attends to",
        f"In each cell, the tokens that get at least {LEAST_ATTENTION:.0%} of a head's attention "
        "at an answer row.",
        "attention",
        _attention,
        mlp=False,
    ),
    "purpose": NodeMap(
        "What each node is for",
        "In each cell, what the node was found to carry, for which answer digit and of which "
        "column. ??: useful, but nothing was found.",
        "",
        _purpose,
    ),
}
"""The maps by the quantity they show."""


def node_map(dissection: Dissection, quantity: Quantity) -> Figure:
    """One of the paper's maps: what fails, which digits, attended tokens, or purposes."""
    if quantity not in MAPS:
        raise CallError(f"A node map shows {', '.join(MAPS)}. Got '{quantity}'.")
    chosen, layout = MAPS[quantity], dissection.model.layout
    finding: NodesFinding = needed(dissection, "nodes")
    shown = {*layout.answer_rows, *(node.row for node in finding.nodes if node.useful)}
    nodes = [n for n in finding.nodes if n.row in shown and (chosen.mlp or n.head is not None)]
    cells = {n.node: chosen.fill(dissection, n) if n.useful else Cell([], None) for n in nodes}
    told = [f"{name} {', '.join(cell.lines)}" for name, cell in cells.items() if cell.lines]
    hidden = layout.context - len(shown)
    left_out = f" {hidden} positions, with no useful node, are left out." if hidden else ""
    return Figure(
        _chart(nodes, cells, layout, chosen.legend),
        chosen.title,
        f"A table, a row for each head and MLP, a column for each token position. "
        f"{chosen.reading} {'; '.join(told) or 'No node is used'}.",
        f"{chosen.reading} Grey and empty: none of {finding.clean.count:,} questions needs it."
        f"{left_out}",
    )


def _part(node: NodeEffect) -> str:
    return f"L{node.layer} {'MLP' if node.head is None else f'H{node.head}'}"


def _position(row: int, layout: Format) -> str:
    """Two lines, parted by a bar: "P11|= → A5", or "P3|D1" for a row that predicts no answer."""
    names = layout.position_names
    predicts = f" → {names[row + 1]}" if row in layout.answer_rows else ""
    return f"P{row}|{names[row]}{predicts}"


def _chart(
    nodes: list[NodeEffect], cells: dict[str, Cell], layout: Format, legend: str
) -> AnyChart:
    positions = {row: _position(row, layout) for row in sorted({node.row for node in nodes})}
    in_order = sorted(nodes, key=lambda n: (n.layer, n.head is None, n.head or 0))
    parts = list(dict.fromkeys(map(_part, in_order)))
    above = {"orient": "top", "labelAngle": 0, "labelPadding": 18, "domain": False}
    x = names_across("position", list(positions.values()), labelExpr=TWO_LINES, **above)
    y = names_down("part", parts, domain=False)
    boxes = [
        {
            "position": positions[n.row],
            "part": _part(n),
            "node": n.node,
            "share": cells[n.node].share,
            "text": " ".join(cells[n.node].lines),
            TIP: _tip(n, cells[n.node]),
        }
        for n in nodes
    ]
    used = [box for box in boxes if box["share"] is not None]
    unused = [box for box in boxes if box["share"] is None]
    look: Record = {"stroke": "white", "strokeWidth": 2}
    width, height = _cell_size(list(cells.values()), list(positions.values()))
    return alt.layer(
        alt.Chart(data(unused)).mark_rect(fill=GREY, **look).encode(x=x, y=y, description=SAYS),
        alt.Chart(data(used))
        .mark_rect(**look)
        .encode(x=x, y=y, color=shade(legend, legend=bool(legend)), description=SAYS),
        *(chart.encode(x=x, y=y) for chart in _texts(used, cells)),
    ).properties(width=width * len(positions), height=height * len(parts))


def _texts(boxes: list[Record], cells: dict[str, Cell]) -> list[alt.Chart]:
    """The lines of all cells: one chart for each ink, and each height at which a line stands."""
    lines: dict[tuple[str, float], list[Record]] = {}
    for box in boxes:
        ink = "white" if box["share"] >= DARK else "black"
        written = cells[box["node"]].lines
        for i, line in enumerate(written):
            place = {"position": box["position"], "part": box["part"], "line": line}
            lines.setdefault((ink, (i - (len(written) - 1) / 2) * LINE), []).append(place)
    return [
        alt.Chart(data(records)).mark_text(dy=dy, color=ink, fontSize=10).encode(text="line:N")
        for (ink, dy), records in lines.items()
    ]


def _tip(node: NodeEffect, cell: Cell) -> str:
    """A node with what stands in its cell, and how many questions fail without it."""
    if not node.useful:
        return f"{node.node}: no question needs it"
    return f"{node.node}: {', '.join(cell.lines)}. {_failing(node)} without it"


def _failing(node: NodeEffect) -> str:
    fails = node.fails
    return f"{fails.count:,} of {fails.of:,} questions ({brief(fails.estimate)}) fail"


def _cell_size(cells: list[Cell], positions: list[str]) -> tuple[float, float]:
    """Room for the longest line and the most lines."""
    words = [line for cell in cells for line in cell.lines]
    words += [part for name in positions for part in name.split("|")]
    lines = max((len(cell.lines) for cell in cells), default=1)
    return max(map(len, words)) * CHARACTER + 12, lines * LINE + 14


def fails_by_position(dissection: Dissection) -> Figure:
    """How many questions fail without each node, at every token position."""
    finding: NodesFinding = needed(dissection, "nodes")
    names = [f"P{i} {name}" for i, name in enumerate(dissection.model.layout.position_names)]
    strips: dict[str, list[NodeEffect]] = {}
    for node in finding.nodes:
        strips.setdefault(_part(node), []).append(node)
    last = list(strips)[-1]
    drawn = [_strip(nodes, part, names, last=part == last) for part, nodes in strips.items()]
    used = [name for row, name in enumerate(names) if row not in finding.unused_rows]
    return Figure(
        alt.vconcat(*drawn, spacing=6),
        "Positions at which questions fail",
        "Bars, a strip for each head and MLP: the questions that fail when the node at each token "
        f"position is ablated. Positions with a useful node: {', '.join(used) or 'none'}.",
        f"Share of {finding.clean.count:,} questions answered right that fail when one node is set "
        "to its mean, at every token position.",
    )


def _strip(nodes: list[NodeEffect], part: str, names: list[str], *, last: bool) -> alt.Chart:
    records: list[Record] = [
        {
            "position": names[node.row],
            "node": node.node,
            "failing": node.fails.count,
            "of": node.fails.of,
            "share": node.fails.estimate,
            TIP: f"{node.node}: {_failing(node)}",
        }
        for node in nodes
    ]
    y = alt.Y("share:Q", title=part, scale=alt.Scale(domain=[0, 1]))
    bars = alt.Chart(data(records), width=PAGE - 60, height=46)
    drawn: alt.Chart = bars.mark_bar(fill=BLUE, stroke=BLACK, strokeWidth=0.5).encode(
        x=names_across("position", names, labelAngle=-90, labelFontSize=9, labels=last),
        y=y.axis(format="%", values=[0, 0.5, 1], titleAngle=0, titleAlign="right"),
        description=SAYS,
    )
    return drawn
