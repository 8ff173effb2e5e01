"""Where in the question the useful nodes stand: the paper's figure of failures by position.

In: findings. Out: a figure with one strip for each head and MLP, and one bar for each token.
"""

from __future__ import annotations

from typing import Any

import altair as alt

from carryscope.dissection.findings import Dissection
from carryscope.dissection.nodes import NodeEffect, NodesFinding
from carryscope.report.drawing import (
    BLACK,
    BLUE,
    PAGE,
    SAYS,
    Record,
    data,
    names_across,
    needed,
    percent,
)
from carryscope.report.figure import Figure
from carryscope.report.hover import TIP


def fails_by_position(dissection: Dissection) -> Figure:
    """How many questions fail without each node, at every token position."""
    finding: NodesFinding = needed(dissection, "nodes")
    names = [f"P{i} {name}" for i, name in enumerate(dissection.model.layout.position_names)]
    parts = list(dict.fromkeys(map(_part, finding.nodes)))
    strips = [
        _strip([n for n in finding.nodes if _part(n) == part], part, names, last=part == parts[-1])
        for part in parts
    ]
    used = [name for row, name in enumerate(names) if row not in finding.unused_rows]
    return Figure(
        alt.vconcat(*strips, spacing=6),
        "Positions at which questions fail",
        "Bars, a strip for each head and MLP: the questions that fail when the node at each token "
        f"position is ablated. Positions with a useful node: {', '.join(used) or 'none'}.",
        f"Share of {finding.clean.count:,} questions answered right that fail when one node is set "
        "to its mean, at every token position.",
    )


def _part(node: NodeEffect) -> str:
    return f"L{node.layer} {'MLP' if node.head is None else f'H{node.head}'}"


def _strip(nodes: list[NodeEffect], part: str, names: list[str], *, last: bool) -> alt.Chart:
    records: list[Record] = [
        {
            "position": names[node.row],
            "node": node.node,
            "failing": node.fails.count,
            "of": node.fails.of,
            "share": node.fails.estimate,
            TIP: f"{node.node}: {node.fails.count:,} of {node.fails.of:,} questions fail, "
            f"{percent(node.fails.estimate)}",
        }
        for node in nodes
    ]
    labels: dict[str, Any] = {"labelAngle": -90, "labelFontSize": 9, "labels": last}
    y = alt.Y("share:Q", title=part, scale=alt.Scale(domain=[0, 1]))
    bars = alt.Chart(data(records), width=PAGE - 60, height=46)
    drawn: alt.Chart = bars.mark_bar(fill=BLUE, stroke=BLACK, strokeWidth=0.5).encode(
        x=names_across("position", names, **labels),
        y=y.axis(format="%", values=[0, 0.5, 1], titleAngle=0, titleAlign="right"),
        description=SAYS,
    )
    return drawn
