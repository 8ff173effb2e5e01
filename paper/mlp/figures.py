"""Figures of the MLP study. In: an `MlpStudy`. Out: what each model can do, and how it learned."""

from __future__ import annotations

import altair as alt

from carryscope.report.figures.chart import AnyChart
from carryscope.report.figures.drawing import (
    COLOURS,
    DARK,
    DASHES,
    PAGE,
    SAYS,
    TIP,
    Record,
    data,
    loss_axis,
    names_across,
    names_down,
    shade,
)
from carryscope.report.figures.figure import Figure
from paper.mlp.finding import MlpStudy, Subject

CELL, ROW = 34.0, 20.0
"""Width and height of a cell, in pixels."""

SIDE_BY_SIDE = 2


def abilities(study: MlpStudy) -> Figure:
    """How often each answer digit is wrong in each case, model by model."""
    panels = [_panel(subject) for subject in study.subjects]
    return Figure(
        alt.concat(*panels, columns=SIDE_BY_SIDE, spacing=14),
        "Without the MLP, and with one part learned again",
        "Tables, one for each model: a column for each answer digit, a row for each case, and how "
        f"often the digit is wrong. {study.statement}",
        "Share of questions in which the digit is wrong, teacher-forced, the same questions for "
        "all. Above each table: the held-out loss.",
    )


def _panel(subject: Subject) -> AnyChart:
    records: list[Record] = [
        {
            "model": subject.name,
            "digit": cell.digit,
            "case": cell.case,
            "share": 1 - cell.right.estimate,
            "low": 1 - cell.right.high,
            "high": 1 - cell.right.low,
            "questions": cell.right.of,
            "_text": _brief(1 - cell.right.estimate),
            TIP: f"{subject.about}, {cell.digit}, {cell.case}: {1 - cell.right.estimate:.1%} wrong "
            f"({1 - cell.right.high:.1%} to {1 - cell.right.low:.1%}), {cell.right.of:,} questions",
        }
        for cell in subject.right
    ]
    digits = sorted({record["digit"] for record in records}, key=lambda name: -int(name[1:]))
    cases = list(subject.by_case())
    x = names_across("digit", digits, labelAngle=0, domain=False)
    y = names_down("case", cases, domain=False)
    cells = alt.Chart(data(records)).mark_rect(stroke="#dddddd", strokeWidth=1)
    layers = [
        cells.encode(x=x, y=y, color=shade("digits that are wrong"), description=SAYS),
        *_inked(records, x, y),
    ]
    title = [subject.about, f"held-out loss {subject.held_out_loss.estimate:.4f}"]
    size = {"width": CELL * len(digits), "height": ROW * len(cases)}
    drawn: AnyChart = alt.layer(*layers).properties(**size, title=title)
    return drawn


def _brief(share: float) -> str:
    """Whole percents; a rare error does not become 0."""
    return f"{100 * share:.0f}" if share == 0 or share >= 0.01 else "<1"


def _inked(records: list[Record], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """The text of each cell, white where the cell is dark."""
    inks = {"black": [r for r in records if r["share"] < DARK]}
    inks["white"] = [r for r in records if r["share"] >= DARK]
    return [
        alt.Chart(data(cells)).mark_text(color=ink, fontSize=9).encode(x=x, y=y, text="_text:N")
        for ink, cells in inks.items()
        if cells
    ]


def relearning(study: MlpStudy) -> Figure:
    """The training loss of base and variants, step by step."""
    shown = [subject for subject in study.subjects if subject.curve]
    records: list[Record] = [
        {
            "model": subject.about,
            "step": point.step,
            "value": point.loss,
            TIP: f"{subject.about}, up to step {point.step:,}: {point.loss:.4f}",
        }
        for subject in shown
        for point in subject.curve
    ]
    apart = max(subject.curve[0].step for subject in shown)
    losses = [record["value"] for record in records]
    names = [subject.about for subject in shown]
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(names))]
    dashes = [DASHES[(i + i // len(DASHES)) % len(DASHES)] for i in range(len(names))]
    legend = alt.Legend(title=None, orient="bottom", columns=2, symbolSize=250, labelLimit=330)
    colour = alt.Color("model:N", scale=alt.Scale(domain=names, range=colours), legend=legend)
    dash = alt.StrokeDash("model:N", scale=alt.Scale(domain=names, range=dashes), legend=legend)
    lines = alt.Chart(data(records)).encode(x=alt.X("step:Q", title="step"))
    y = loss_axis(alt.Y, min(losses), max(losses))
    chart = alt.layer(
        lines.mark_line(strokeWidth=1.6).encode(y=y, color=colour, strokeDash=dash),
        lines.mark_point(size=40, opacity=0).encode(y=y, description=SAYS),
    )
    return Figure(
        chart.properties(width=PAGE - 80, height=260),
        "How fast a part is learned again",
        "A line chart: the training loss of each model over its steps. "
        f"{' '.join(study.statements)}",
        f"Means over {apart:,} step{'s' * (apart != 1)} each, teacher-forced, on the recipe's own "
        "questions, which are of the same kind at the same step for every model.",
    )
