"""Shaded grids: any table as a figure, the double staircase, one question's attention, edges.

In: a table, a dissection, or the attention pattern of one question. Out: figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from jaxtyping import Float

from carryscope.core.words import percent
from carryscope.dissection.attention import AttentionFinding
from carryscope.dissection.dissect import Dissection
from carryscope.report.figures.canvas import (
    BLACK,
    CHARACTER,
    DARK,
    GREY,
    HEADS,
    SHADES,
    TONES,
    Canvas,
    shaded,
)
from carryscope.report.figures.figure import Figure
from carryscope.report.tables import Cell, Table
from carryscope.report.words import STAIRCASE, head_titles
from carryscope.task.operation import Array

PAGE = 700.0
"""Width of a page, in pixels."""

ROW, TITLE, GAP = 16.0, 20.0, 14.0
"""Height of a row of cells and of a title, and the space between panels, in pixels."""

NARROW, WIDE = 9.5, 22.0
"""Widths between which the columns of a panel lie: the names above them stand upright."""

LINE = 24.0
"""Height of a row of texts, in pixels."""

RULED, GREYS = "#dddddd", ("#ffffff", "#333333")
"""Lines between cells; shades for all heads together."""


def table_figure(table: Table) -> Figure:
    """A table as a figure, its cells shaded as on a page."""
    canvas, words = Canvas(), [table.head, *table.rows]
    widths = [max(len(row[i]) for row in words) * CHARACTER + 14 for i in range(len(table.head))]
    _grid(canvas, 0.0, 0.0, table, widths, LINE)
    lines = []
    for name, *row in table.rows:
        cells = zip(table.head[1:], row, strict=True)
        lines.append(f"{name}: {', '.join(f'{head} {cell}' for head, cell in cells if cell)}.")
    return Figure(canvas, table.title, f"A table. {' '.join(lines)}", table.caption)


def _grid(
    canvas: Canvas,
    x: float,
    y: float,
    table: Table,
    widths: Sequence[float],
    height: float,
    *,
    upright: bool = False,
) -> None:
    """Cells with the names of their rows on the left and of their columns above; y is their top."""
    lefts = x + np.cumsum([0.0, *widths])
    above = _above(table, upright=upright)
    for i, name in enumerate(table.head[1:], start=1):
        middle = (lefts[i] + lefts[i + 1]) / 2
        if upright:
            canvas.text(middle, y + above - 4, name, anchor="start", size=9.0, turned=True)
        else:
            canvas.text(middle, y + above / 2, name, ink=GREY)
    for j, row in enumerate(table.rows):
        top = y + above + j * height
        if widths[0]:
            canvas.text(lefts[1] - 6, top + height / 2, row[0], anchor="end")
        for i, cell in enumerate(row[1:], start=1):
            shade = getattr(cell, "shade", None)
            if shade is None and not cell:
                continue
            shades = TONES.get(getattr(cell, "tone", ""), SHADES)
            fill = "#ffffff" if shade is None else shaded(shade, shades)
            tip = getattr(cell, "tip", "")
            canvas.box(lefts[i], top, widths[i], height, fill=fill, stroke=RULED, tip=tip)
            ink = "#ffffff" if (shade or 0.0) >= DARK and len(shades) > 2 else BLACK
            if cell:
                canvas.text((lefts[i] + lefts[i + 1]) / 2, top + height / 2, cell, ink=ink)


def _above(table: Table, *, upright: bool) -> float:
    """Room for the names of the columns."""
    return max(map(len, table.head)) * CHARACTER * 0.9 + 8 if upright else TITLE


def panelled(
    tables: Sequence[Table],
    legend: str = "",
    shades: Sequence[str] = SHADES,
    *,
    across: int | None = None,
) -> Canvas:
    """Grids side by side, by default as many as fit. Names that all rows share stand once."""
    canvas, columns = Canvas(), max(len(table.head) for table in tables) - 1
    names = max(len(row[0]) for table in tables for row in table.rows) * CHARACTER + 8

    def width(side_by_side: int) -> float:
        return (PAGE - names) / side_by_side / (columns + 1)

    fitting = next((n for n in range(len(tables), 1, -1) if width(n) >= NARROW), 1)
    cell = min(WIDE if len(tables) <= 2 else ROW, max(NARROW, width(across or fitting)))
    rows = [[row[0] for row in table.rows] for table in tables]
    line = across or len(tables)
    alike = all(rows[i] == rows[i - 1] for i in range(len(tables)) if i % line)
    titles = 0.0 if across else max(len(table.title) for table in tables) * CHARACTER * 1.1
    step = max(cell * columns, titles) + GAP + (0.0 if alike else names)
    across = across or max(1, min(fitting, int((PAGE - names + GAP) // step)))
    tall = TITLE + GAP
    tall += max(_above(table, upright=True) + ROW * len(table.rows) for table in tables)
    for i, table in enumerate(tables):
        down, right = divmod(i, across)
        x, y = names + right * step, down * tall
        canvas.text(x, y + TITLE / 2, table.title, anchor="start", size=11.0, weight="bold")
        first = names if right == 0 or not alike else 0.0
        sizes = [first, *([cell] * (len(table.head) - 1))]
        _grid(canvas, x - first, y + TITLE, table, sizes, ROW, upright=True)
        canvas.records += [
            {"panel": table.title, "row": row[0], "column": name, "share": round(shown.shade, 4)}
            for row in table.rows
            for name, shown in zip(table.head[1:], row[1:], strict=True)
            if isinstance(shown, Cell) and shown.shade is not None
        ]
    if legend:
        _legend(canvas, legend, shades)
    return canvas


def _legend(canvas: Canvas, legend: str, shades: Sequence[str]) -> None:
    y, x = canvas.height + 12, len(legend) * CHARACTER + 12
    canvas.text(0.0, y, legend, anchor="start")
    canvas.text(x + 14, y, "0%")
    for i in range(20):
        canvas.box(x + 28 + 8 * i, y - 5, 8.2, 10.0, fill=shaded((i + 0.5) / 20, shades))
    canvas.text(x + 28 + 8 * 20 + 18, y, "100%")


def staircase(dissection: Dissection) -> Figure:
    """The double staircase: where each head looks at each answer row, on average."""
    finding, layout = dissection.attention, dissection.model.layout
    assert finding is not None
    mean, rows = _mean_pattern(finding), layout.answer_names
    titles = head_titles(finding, dissection.model.layers)
    tables = [
        _pattern_table(
            titles[layer, head],
            head,
            mean[layer, head],
            rows,
            layout.position_names,
            layout.first_row,
        )
        for layer, head in product(range(dissection.model.layers), range(dissection.model.heads))
    ]
    return Figure(
        panelled(tables, "attention", GREYS),
        f"Where the heads look: {STAIRCASE[finding.staircase]}",
        "Heat maps, one for each head: a row for each answer row, a column for each token, the "
        f"darker the more attention. {finding.statement}",
        f"Mean attention over {finding.questions:,} questions. A row is named by the digit that it "
        "writes.",
    )


def _pattern_table(
    title: str,
    head: int,
    pattern: Float[Array, "row position"],
    rows: Sequence[str],
    tokens: Sequence[str],
    first_row: int,
) -> Table:
    """The attention of one head; a row sees nothing to the right of itself."""
    tokens = tokens[: pattern.shape[1]]  # nothing reads the last token of an answer

    def cell(row: int, place: int) -> str:
        if place > first_row + row:
            return ""
        share = float(pattern[row, place])
        tip = f"{rows[row]}: {tokens[place]} gets {percent(share)} of the attention"
        return Cell("", tone=f"head-{head % len(HEADS)}", shade=share, tip=tip)

    filled = [
        [name, *(cell(row, place) for place in range(len(tokens)))] for row, name in enumerate(rows)
    ]
    return Table("", title, ["row", *tokens], filled)


def _mean_pattern(finding: AttentionFinding) -> Float[Array, "layer head answer position"]:
    """The mean over all questions, of whatever class."""
    names = list(finding.patterns)
    weights = [finding.questions_by_class[name] for name in names]
    return np.average([np.array(finding.patterns[name]) for name in names], axis=0, weights=weights)


def edges(dissection: Dissection) -> Figure:
    """Which tokens each answer digit needs to see: answers that change when an edge is cut."""
    finding, model = dissection.edges, dissection.model
    assert finding is not None
    subjects = {"this model": finding.edges, "untrained, of the same shape": finding.untrained}
    tables = [
        Table.crossed(
            "",
            f"{f'block {layer}, ' if model.layers > 1 else ''}{name}",
            [edge for edge in found if edge.layer == layer],
            "row",
            row=lambda edge: edge.answer,
            column=lambda edge: edge.token,
            cell=lambda edge: Cell(
                "",
                shade=edge.flipped.estimate,
                tip=f"{edge.answer} without {edge.token}: {percent(edge.flipped.estimate)} of the "
                "answers change",
            ),
        )
        for layer, (name, found) in product(range(model.layers), subjects.items())
    ]
    return Figure(
        panelled(tables, "answers that change"),
        "Attention edges that matter",
        "Heat maps, a row for each answer digit and a column for each token: the darker, the "
        f"more answers change when the digit's row no longer sees the token. {finding.statement}",
        f"Share of {finding.questions} answers that change when an answer row no longer "
        "sees a token.",
    )
