"""The paper's node maps: parts of the model by token position, one quantity in each cell.

In: findings. Out: a figure. A node is one head, or the MLP, of one layer at one position; what
is not used is grey and empty, as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import altair as alt

from carryscope.core.errors import CallError
from carryscope.dissection.attention import AttentionFinding
from carryscope.dissection.findings import Dissection
from carryscope.dissection.nodes import NodeEffect, NodesFinding
from carryscope.dissection.purposes import SubtasksFinding
from carryscope.report.drawing import (
    DARK,
    GREY,
    SAYS,
    TWO_LINES,
    Record,
    data,
    names_across,
    names_down,
    needed,
    percent,
    shade,
)
from carryscope.report.figure import AnyChart, Figure
from carryscope.report.hover import TIP
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


UNUSED = Cell([], None)


@dataclass(frozen=True)
class _Map:
    """One of the four maps: its words, and how to fill a cell."""

    title: str
    reading: str
    legend: str | None
    fill: Callable[[Dissection], Callable[[NodeEffect], Cell]]
    mlp: bool = True
    """Whether an MLP has such a quantity."""


def node_map(dissection: Dissection, quantity: Quantity) -> Figure:
    """One of the paper's maps: what fails, which digits, attended tokens, or purposes."""
    if quantity not in MAPS:
        raise CallError(f"A node map shows {', '.join(MAPS)}. Got '{quantity}'.")
    chosen, finding = MAPS[quantity], needed(dissection, "nodes")
    assert isinstance(finding, NodesFinding)
    fill = chosen.fill(dissection)
    shown = _rows_shown(finding, dissection.model.layout)
    nodes = [n for n in finding.nodes if n.row in shown and (chosen.mlp or n.head is not None)]
    cells = {node.node: fill(node) if node.useful else UNUSED for node in nodes}
    chart = _chart(nodes, cells, dissection.model.layout, chosen.legend)
    hidden = dissection.model.layout.context - len(shown)
    left_out = f" {hidden} positions, with no useful node, are left out." if hidden else ""
    return Figure(
        chart,
        chosen.title,
        f"A table, a row for each head and MLP, a column for each token position. "
        f"{chosen.reading} {_told(nodes, cells)}",
        f"{chosen.reading} Grey and empty: none of {finding.clean.count:,} questions needs it."
        f"{left_out}",
    )


def _fails(dissection: Dissection) -> Callable[[NodeEffect], Cell]:
    return lambda node: Cell([percent(node.fails.estimate)], node.fails.estimate)


def _impact(dissection: Dissection) -> Callable[[NodeEffect], Cell]:
    def fill(node: NodeEffect) -> Cell:
        names = list(node.digits)
        lines = [" ".join(names[i : i + 2]) for i in range(0, len(names), 2)]
        return Cell(lines, max(share.estimate for share in node.digits.values()))

    return fill


def _attention(dissection: Dissection) -> Callable[[NodeEffect], Cell]:
    finding: AttentionFinding = needed(dissection, "attention")
    tokens = {(r.layer, r.head, r.row): r.tokens for r in finding.readings}

    def fill(node: NodeEffect) -> Cell:
        seen = tokens.get((node.layer, node.head or 0, node.row), {})
        most = {token: share for token, share in seen.items() if share >= LEAST_ATTENTION}
        lines = [f"{token} {percent(share)}" for token, share in most.items()]
        return Cell(lines or ["-"], sum(most.values(), 0.0))

    return fill


def _purpose(dissection: Dissection) -> Callable[[NodeEffect], Cell]:
    finding: SubtasksFinding = needed(dissection, "subtasks")

    def fill(node: NodeEffect) -> Cell:
        purpose = finding.purpose_of(node.node)
        lines = purpose.replace(" with ", " with\N{NO-BREAK SPACE}").split(" ")
        return Cell(lines, 0.0 if purpose == "??" else KNOWN)

    return fill


MAPS: dict[str, _Map] = {
    "fails": _Map(
        "Questions that fail without each node",
        "In each cell, the share of questions that fail when the node is ablated.",
        "questions that fail",
        _fails,
    ),
    "impact": _Map(
        "Answer digits that each node affects",
        "In each cell, the answer digits that turn wrong when the node is ablated; the shade is "
        "the share of the digit that suffers most.",
        "digits that turn wrong",
        _impact,
    ),
    "attention": _Map(
        "Tokens that each head attends to",
        f"In each cell, the tokens that get at least {LEAST_ATTENTION:.0%} of a head's attention "
        "at an answer row.",
        "attention",
        _attention,
        mlp=False,
    ),
    "purpose": _Map(
        "What each node is for",
        "In each cell, what the node was found to carry, for which answer digit and of which "
        "column. ??: useful, but nothing was found.",
        None,
        _purpose,
    ),
}
"""The maps by the quantity they show."""


def _rows_shown(finding: NodesFinding, layout: Format) -> list[int]:
    """The answer rows, and others at which a node is useful."""
    return sorted({*layout.answer_rows, *(node.row for node in finding.nodes if node.useful)})


def _part(node: NodeEffect) -> str:
    return f"L{node.layer} {'MLP' if node.head is None else f'H{node.head}'}"


def _position(row: int, layout: Format) -> str:
    """Two lines, parted by a bar: "P11|= → A5", or "P3|D1" for a row that predicts no answer."""
    names = layout.position_names
    predicts = f" → {names[row + 1]}" if row in layout.answer_rows else ""
    return f"P{row}|{names[row]}{predicts}"


def _chart(
    nodes: list[NodeEffect], cells: dict[str, Cell], layout: Format, legend: str | None
) -> AnyChart:
    rows = sorted({node.row for node in nodes})
    in_order = sorted(nodes, key=lambda n: (n.layer, n.head is None, n.head or 0))
    parts = list(dict.fromkeys(map(_part, in_order)))
    positions = [_position(row, layout) for row in rows]
    above = {"orient": "top", "labelAngle": 0, "labelPadding": 18, "domain": False}
    x = names_across("position", positions, labelExpr=TWO_LINES, **above)
    y = names_down("part", parts, domain=False)
    boxes = [
        {
            "position": _position(n.row, layout),
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
    colour = shade(legend or "", legend=legend is not None)
    width, height = _cell_size(cells, rows, layout)
    return alt.layer(
        alt.Chart(data(unused))
        .mark_rect(stroke="white", strokeWidth=2, fill=GREY)
        .encode(x=x, y=y, description=SAYS),
        alt.Chart(data(used))
        .mark_rect(stroke="white", strokeWidth=2)
        .encode(x=x, y=y, color=colour, description=SAYS),
        *[chart.encode(x=x, y=y) for chart in _texts(nodes, cells, layout)],
    ).properties(width=width * len(rows), height=height * len(parts))


def _texts(nodes: list[NodeEffect], cells: dict[str, Cell], layout: Format) -> list[alt.Chart]:
    """The lines of all cells: one chart for each ink, and each height at which a line stands."""
    lines: dict[tuple[str, float], list[Record]] = {}
    for node in nodes:
        cell = cells[node.node]
        place = {"position": _position(node.row, layout), "part": _part(node)}
        ink = "white" if (cell.share or 0) >= DARK else "black"
        for i, line in enumerate(cell.lines):
            height = (i - (len(cell.lines) - 1) / 2) * LINE
            lines.setdefault((ink, height), []).append({**place, "line": line})
    return [
        alt.Chart(data(records)).mark_text(dy=dy, color=ink, fontSize=10).encode(text="line:N")
        for (ink, dy), records in lines.items()
    ]


def _tip(node: NodeEffect, cell: Cell) -> str:
    """A node with what stands in its cell, and how many questions fail without it."""
    fails = node.fails
    if not node.useful:
        return f"{node.node}: no question needs it"
    told = f"{fails.count:,} of {fails.of:,} questions fail without it"
    return f"{node.node}: {', '.join(cell.lines)}. {told}, {percent(fails.estimate)}"


def _cell_size(cells: dict[str, Cell], rows: list[int], layout: Format) -> tuple[float, float]:
    """Room for the longest line and the most lines."""
    words = [line for cell in cells.values() for line in cell.lines]
    words += [part for row in rows for part in _position(row, layout).split("|")]
    lines = max((len(cell.lines) for cell in cells.values()), default=1)
    return max(map(len, words)) * CHARACTER + 12, lines * LINE + 14


def _told(nodes: list[NodeEffect], cells: dict[str, Cell]) -> str:
    """The cells that are used, in words."""
    told = [f"{n.node} {', '.join(cells[n.node].lines)}" for n in nodes if cells[n.node].lines]
    return f"{'; '.join(told)}." if told else "No node is used."
