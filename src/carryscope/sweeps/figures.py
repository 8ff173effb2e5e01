"""Small multiples of a sweep: a staircase and a line of failures for each seed.

In: a `Sweep` with at least one seed. Out: figures.
"""

from __future__ import annotations

import altair as alt

from carryscope.core.words import brief, with_interval
from carryscope.dissection.attention import role_name
from carryscope.report.figures.chart import AnyChart
from carryscope.report.figures.drawing import (
    BLACK,
    BLUE,
    LEAST_LOSS,
    SAYS,
    TIP,
    Record,
    data,
    loss_axis,
    names_across,
    names_down,
    series,
)
from carryscope.report.figures.figure import Figure
from carryscope.sweeps.finding import Sweep
from carryscope.sweeps.seeds import DepthFailure, SeedFinding

ACROSS = 660
"""Width that the panels share, in pixels."""

STEP = 14.0
"""Width and height of a step of a small staircase, in pixels."""

PANEL_EDGE = 36.0
"""Width of a small panel's labels and margin, in pixels."""

ROLES = [role_name(offset) for offset in range(3)]
OTHER = "another, or no staircase"
"""The groups of heads, by what they read."""


def staircases(found: Sweep) -> Figure:
    """What each head reads at each answer row, seed by seed."""
    layout = found.recipe.model.layout
    columns = [f"D{k}" for k in reversed(range(layout.digits))]
    width, height = STEP * len(columns), STEP * layout.answer_length
    panels = [
        _staircase(seed, layout.answer_names, columns).properties(
            width=width, height=height, title=f"seed {seed.seed}"
        )
        for seed in found.results
    ]
    present = sum(seed.staircase == "present" for seed in found.results)
    return Figure(
        alt.concat(*panels, columns=max(1, int(ACROSS // (width + PANEL_EDGE))), spacing=10),
        "The staircase of every seed",
        f"Small panels, one for each seed: a row for each answer digit, a column for each pair of "
        f"question digits, and a mark where each head looks most. The double staircase is "
        f"present in {present} of {len(found.results)} seeds.",
        "A mark for each head and answer row, at the column that gets most of its attention; the "
        "larger, the more. Heads are named by what they read, because their numbers are arbitrary.",
    )


def _staircase(seed: SeedFinding, answers: list[str], columns: list[str]) -> alt.Chart:
    role = {(head.layer, head.head): head.role for head in seed.heads}
    records: list[Record] = []
    for reading in seed.readings:
        name = role[reading.layer, reading.head]
        head = f"L{reading.layer}H{reading.head}"
        records.append(
            {
                "seed": seed.seed,
                "head": head,
                "answer": reading.answer,
                "column": f"D{reading.column}",
                "share": reading.share,
                "reads": name if name in ROLES else OTHER,
                TIP: f"seed {seed.seed}, {head} at {reading.answer}: column {reading.column} gets "
                f"{brief(reading.share)} of its attention",
            }
        )
    size = alt.Size("share:Q", scale=alt.Scale(domain=[0, 1], range=[6, 80]), legend=None)
    drawn: alt.Chart = (
        alt.Chart(data(records))
        .mark_point(filled=True, opacity=0.8)
        .encode(
            x=names_across("column", columns, labelFontSize=8, labelAngle=0),
            y=names_down("answer", answers, labelFontSize=8),
            size=size,
            description=SAYS,
            **series("reads", [*ROLES, OTHER], by="shape"),
        )
    )
    return drawn


def failures(found: Sweep) -> Figure:
    """Wrong digits by the nines below them, a line for each seed."""
    records = [_failure(seed, one) for seed in found.results for one in seed.depths]
    values = [record["value"] for record in records]
    ends = min(values), max(values)
    panels = [
        _failure_panel([r for r in records if r["carrying"] is carrying], title, ends)
        for carrying, title in ((True, "carrying"), (False, "quiet"))
    ]
    return Figure(
        alt.hconcat(*panels, spacing=20),
        "Wrong digits by the nines below them",
        "Two charts, a line for each seed and a thick one for the median: the share of digits "
        "that are wrong by how many columns directly below sum to 9.",
        "Teacher-forced, answer digits at all places together. Carrying: a carry comes through the "
        "nines. Where no digit was wrong the line ends at the bottom.",
    )


def _failure(seed: SeedFinding, one: DepthFailure) -> Record:
    return {
        "seed": seed.seed,
        "nines": one.depth,
        "carrying": one.carrying,
        "wrong": one.wrong.estimate,
        "low": one.wrong.low,
        "high": one.wrong.high,
        "value": max(one.wrong.estimate, LEAST_LOSS),
        TIP: f"seed {seed.seed}, {one.text}: {with_interval(one.wrong)} wrong",
    }


def _failure_panel(records: list[Record], title: str, ends: tuple[float, float]) -> AnyChart:
    x = alt.X("nines:O", title="nines below", axis=alt.Axis(labelAngle=0))
    y = loss_axis(alt.Y, *ends).title("digits that are wrong")
    seeds = alt.Chart(data(records)).encode(x=x, y=y)
    middle = y.copy()
    middle.shorthand = "median(value):Q"
    drawn: AnyChart = alt.layer(
        seeds.mark_line(color=BLUE, opacity=0.5, strokeWidth=1).encode(detail="seed:N"),
        seeds.mark_point(color=BLUE, opacity=0.5, filled=True, size=22).encode(description=SAYS),
        seeds.mark_line(color=BLACK, strokeWidth=2.5).encode(y=middle),
    ).properties(width=ACROSS / 2 - 60, height=220, title=title)
    return drawn
