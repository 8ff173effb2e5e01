"""Heat maps: the double staircase, one question's attention pattern, attention edges.

In: a dissection, or the pattern of one question. Out: figures.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import altair as alt
import numpy as np
from jaxtyping import Float

from carryscope.core.errors import CallError
from carryscope.dissection.attention import AttentionFinding
from carryscope.dissection.findings import Dissection
from carryscope.dissection.rows import RowsFinding
from carryscope.report.figures.drawing import (
    SAYS,
    TIP,
    Record,
    data,
    names_across,
    names_down,
    needed,
    panel_size,
    shade,
)
from carryscope.report.figures.figure import AnyChart, Figure
from carryscope.report.words import head_name, head_titles, row_names
from carryscope.task.operation import Array
from carryscope.task.tokens import Format

ROW = 16.0
"""Height of a row, in pixels."""

TOKENS: dict[str, Any] = {"labelAngle": -90, "labelFontSize": 9}
"""How tokens are written below a narrow column."""


def staircase(dissection: Dissection) -> Figure:
    """The double staircase: where each head looks at each answer row, on average."""
    finding: AttentionFinding = needed(dissection, "attention")
    layout, layers = dissection.model.layout, dissection.model.layers
    mean, rows = _mean_pattern(finding), row_names(layout)
    titles = head_titles(finding, layers)
    side_by_side, cell = panel_size(dissection.model.heads, layout.context)

    def panel(layer: int, head: int) -> AnyChart:
        return _panel(
            _visible(mean[layer, head], rows, layout.position_names, layout.first_row),
            says="{row}: {token} gets {share:.1%} of the attention",
            x=names_across("token", layout.position_names, **TOKENS),
            y=names_down("row", rows, labels=head % side_by_side == 0),
            size=(cell * layout.context, ROW * len(rows)),
            title=titles[layer, head],
        )

    return Figure(
        _storeys(panel, layers, dissection.model.heads, side_by_side),
        _staircase_title(finding),
        f"Heat maps, one for each head: a row for each answer row, a column for each token, "
        f"the darker the more attention. {finding.statement}",
        f"Mean attention over {finding.questions:,} questions. Each row reads the token before "
        "the arrow and predicts the one after.",
    )


def _staircase_title(finding: AttentionFinding) -> str:
    """A title that claims no staircase where there is none."""
    if finding.staircase == "present":
        return "The double staircase"
    seen = "part of a staircase" if finding.staircase == "partial" else "no staircase"
    return f"Where the heads look: {seen}"


def one_pattern(
    pattern: Float[Array, "layer head row position"], tokens_text: str, layout: Format
) -> Figure:
    """The whole attention pattern of one question, every row, as the paper draws it."""
    if len(tokens_text) != layout.context or pattern.shape[2:] != (layout.context, layout.context):
        raise CallError(
            f"A pattern of this format has {layout.context} tokens. "
            f"Got {len(tokens_text)} and an array of shape {pattern.shape}."
        )
    layers, heads = pattern.shape[:2]
    places = list(range(layout.context))
    side_by_side, cell = panel_size(heads, layout.context)
    # Tokens repeat, so places are the axis and tokens its labels; JSON makes a safe literal.
    tokens = alt.Axis(
        labelExpr=f"{json.dumps(list(tokens_text))}[datum.value]",
        labelAngle=0,
        labelOverlap=False,
        labelFontSize=9,
        ticks=False,
        labelPadding=3,
    )

    def panel(layer: int, head: int) -> AnyChart:
        return _panel(
            _visible(pattern[layer, head], places, places, 0),
            says="row {row} to {token}: {share:.1%}",
            x=alt.X("token:O", title=None, axis=tokens),
            y=alt.Y("row:O", title=None, axis=tokens),
            size=(cell * layout.context, cell * layout.context),
            title=head_name(layer, head, layers),
        )

    return Figure(
        _storeys(panel, layers, heads, side_by_side),
        f"The attention pattern of {tokens_text}",
        f"Triangular heat maps, one for each head: rows are the tokens of {tokens_text} as they "
        "are read, columns the tokens attended to, the darker the more attention. "
        f"{_most_attended(pattern, layout)}",
        "Time runs downwards: each row sees one token more. From the row of '=' on, each row "
        "predicts the next answer token.",
    )


def edges(dissection: Dissection) -> Figure:
    """Which tokens each answer digit needs to see: answers that change when an edge is cut."""
    finding: RowsFinding = needed(dissection, "rows")
    subjects = {"this model": finding}
    if finding.untrained:
        subjects["untrained, of the same shape"] = finding.untrained
    layout, layers = dissection.model.layout, dissection.model.layers
    side_by_side, cell = panel_size(len(subjects), layout.context, most=22.0)

    def panel(layer: int, number: int) -> AnyChart:
        name, rows = list(subjects.items())[number]
        cut = [edge for edge in rows.edges if edge.layer == layer]
        return _panel(
            [_cell(edge.answer, edge.token, edge.flipped.estimate) for edge in cut],
            says="{row} without {token}: {share:.1%} of the answers change",
            x=names_across("token", layout.position_names, **TOKENS),
            y=names_down("row", layout.answer_names),
            size=(cell * layout.context, ROW * layout.answer_length),
            legend="answers that change",
            title=f"{f'block {layer}, ' if layers > 1 else ''}{name}",
        )

    return Figure(
        _storeys(panel, layers, len(subjects), side_by_side),
        "Attention edges that matter",
        "Heat maps, a row for each answer digit and a column for each token: the darker, the "
        f"more answers change when the digit's row no longer sees the token. {finding.statement}",
        f"Share of {finding.edge_questions} answers that change when an answer row no longer "
        "sees a token.",
    )


def _storeys(
    panel: Callable[[int, int], AnyChart], layers: int, panels: int, side_by_side: int
) -> AnyChart:
    """Panels by layer, each layer below the one before it."""
    storeys = [
        alt.concat(*(panel(layer, i) for i in range(panels)), columns=side_by_side, spacing=14)
        for layer in range(layers)
    ]
    chart: AnyChart = alt.vconcat(*storeys, spacing=18)
    return chart


def _panel(
    cells: list[Record],
    *,
    says: str,
    x: alt.X,
    y: alt.Y,
    size: tuple[float, float],
    title: str,
    legend: str = "attention",
) -> AnyChart:
    told = [cell | {TIP: says.format(**cell)} for cell in cells]
    chart = alt.Chart(data(told), width=size[0], height=size[1], title=title)
    cell = chart.mark_rect(stroke="#eeeeee", strokeWidth=0.5)
    drawn: AnyChart = cell.encode(x=x, y=y, color=shade(legend), description=SAYS)
    return drawn


def _cell(row: Any, token: Any, share: float) -> Record:
    return {"row": row, "token": token, "share": round(share, 4)}


def _visible(
    pattern: Float[Array, "row position"], rows: list[Any], tokens: list[Any], first_row: int
) -> list[Record]:
    """The cells that a row can see: none to the right of itself."""
    return [
        _cell(rows[row], tokens[place], float(pattern[row, place]))
        for row, place in np.ndindex(*pattern.shape)
        if place <= first_row + row
    ]


def _mean_pattern(finding: AttentionFinding) -> Float[Array, "layer head answer position"]:
    """The mean over all questions, of whatever class."""
    names = list(finding.patterns)
    weights = [finding.questions_by_class[name] for name in names]
    return np.average([np.array(finding.patterns[name]) for name in names], axis=0, weights=weights)


def _most_attended(pattern: Float[Array, "layer head row position"], layout: Format) -> str:
    """In words: the token each head attends to most, answer row by answer row."""
    names = layout.position_names
    told = []
    for layer, head in np.ndindex(*pattern.shape[:2]):
        tops = [names[int(pattern[layer, head, row].argmax())] for row in layout.answer_rows]
        told.append(f"{head_name(layer, head, len(pattern))} {' '.join(tops)}")
    return f"Attended to most from '=' on: {'; '.join(told)}."
