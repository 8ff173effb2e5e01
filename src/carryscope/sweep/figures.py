"""Small multiples of a sweep: a staircase for each seed, a strip for each number, failures.

In: a `Sweep` with at least one seed. Out: figures.
"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from carryscope.dissection.attention import role_name
from carryscope.report.figures.drawing import (
    BLACK,
    BLUE,
    LEAST_LOSS,
    SAYS,
    Record,
    data,
    loss_axis,
    names_across,
    names_down,
    series,
    with_interval,
)
from carryscope.report.figures.figure import AnyChart, Figure
from carryscope.report.figures.hover import TIP
from carryscope.sweep.finding import Spread, Sweep, depth_text
from carryscope.sweep.properties import LOSSES, NUMBERS
from carryscope.sweep.seeds import SeedFinding

ACROSS = 660
"""Width that the panels share, in pixels."""

STEP = 14.0
"""Width and height of a step of a small staircase, in pixels."""

PANEL_EDGE = 36.0
"""Width of a small panel's labels and of the space beside it, in pixels."""

LEAST_SPAN = 0.01
"""The least part of an axis of shares that a strip shows, lest noise look like spread."""

ROLES = [role_name(offset) for offset in range(3)]
OTHER = "another, or no staircase"
"""What heads are told apart by."""

RARE = frozenset({"wrong answers"})
"""Shares that are drawn on a logarithmic axis, as losses are."""


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
        f"question digits, and a mark where each head looks most. The double staircase is there "
        f"in {present} of {len(found.results)} seeds.",
        "A mark for each head and answer row, at the column that gets most of its attention; the "
        "larger, the more. Heads are told apart by what they read, not by their number.",
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
                f"{reading.share:.0%} of its attention",
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


def strips(found: Sweep) -> Figure:
    """Each number over the seeds."""
    charts = [_strip(found, spread, log=spread.name in LOSSES | RARE) for spread in found.numbers]
    told = "; ".join(
        f"{s.name} {s.median:.4g} ({s.least:.4g} to {s.most:.4g})" for s in found.numbers
    )
    return Figure(
        alt.vconcat(*charts, spacing=14),
        "The numbers of all seeds",
        f"Strips, one for each number, with a mark for each seed. Medians and ranges: {told}.",
        "A mark for each seed. The bar is the 95 % interval of the median over seeds, where there "
        "are six or more; the line in it is the median.",
    )


def _strip(found: Sweep, spread: Spread, *, log: bool) -> AnyChart:
    take = NUMBERS[spread.name]
    records = [
        {
            "number": spread.name,
            "seed": seed.seed,
            "value": value,
            TIP: f"seed {seed.seed}: {spread.name} {value:.4g}",
        }
        for seed in found.results
        if (value := take(seed)) is not None
    ]
    x = loss_axis(alt.X, spread.least, spread.most) if log else _share_axis(spread)
    x = x.title(spread.name)
    middle = data([{"value": spread.median, "low": spread.low, "high": spread.high}])
    layers: list[alt.Chart] = [
        alt.Chart(middle).mark_tick(color=BLACK, thickness=2, size=26).encode(x=x)
    ]
    if spread.low is not None:
        low = x.copy()
        low.shorthand = "low:Q"
        bar = alt.Chart(middle).mark_bar(height=16, color=BLUE, opacity=0.2, clip=True)
        layers.insert(0, bar.encode(x=low, x2="high:Q"))
    marks = alt.Chart(data(records)).mark_point(color=BLACK, size=45, opacity=0.7)
    drawn: AnyChart = alt.layer(*layers, marks.encode(x=x, description=SAYS)).properties(
        width=ACROSS - 60, height=34
    )
    return drawn


def _share_axis(spread: Spread) -> alt.X:
    """A linear axis that shows all values, with some room beside them."""
    room = max(LEAST_SPAN, spread.most - spread.least) / 10
    ends = [max(0.0, spread.least - room), min(1.0, spread.most + room)]
    axis = alt.Axis(format=".3~%", grid=True, tickCount=6)
    return alt.X("value:Q", scale=alt.Scale(domain=ends, nice=False), axis=axis)


def failures(found: Sweep) -> Figure:
    """Wrong digits by the nines below them, a line for each seed."""
    values = [one.wrong.estimate for seed in found.results for one in seed.depths]
    depths = sorted({one.depth for one in found.depths})
    panels = [
        _failure_panel(found, carrying, depths, (min(values), max(values)))
        for carrying in (True, False)
    ]
    worst = max(found.depths, key=lambda one: one.wrong.median)
    return Figure(
        alt.hconcat(*panels, spacing=20),
        "Wrong digits by the nines below them",
        "Two charts, a line for each seed and a thick one for the median: the share of digits "
        "that are wrong by how many columns directly below sum to 9. The worst median is at "
        f"{worst.wrong.name}: {worst.wrong.median:.2%} ({worst.wrong.least:.2%} to "
        f"{worst.wrong.most:.2%}).",
        "Teacher-forced, answer digits at all places together. Carrying: a carry comes through the "
        "nines. Where none was met wrong the line ends at the bottom.",
    )


def _failure_panel(
    found: Sweep, carrying: bool, depths: Sequence[int], ends: tuple[float, float]
) -> AnyChart:
    records = [
        {
            "seed": seed.seed,
            "nines": one.depth,
            "carrying": carrying,
            "wrong": one.wrong.estimate,
            "low": one.wrong.low,
            "high": one.wrong.high,
            "value": max(one.wrong.estimate, LEAST_LOSS),
            TIP: f"seed {seed.seed}, {depth_text(one.depth, carrying)}: "
            f"{one.wrong.estimate:.3%} wrong ({one.wrong.low:.3%} to {one.wrong.high:.3%})",
        }
        for seed in found.results
        for one in seed.depths
        if one.carrying is carrying
    ]
    medians = [
        {"nines": one.depth, "value": max(one.wrong.median, LEAST_LOSS)}
        for one in found.depths
        if one.carrying is carrying
    ]
    x = alt.X(
        "nines:O", title="nines below", scale=alt.Scale(domain=depths), axis=alt.Axis(labelAngle=0)
    )
    y = loss_axis(alt.Y, *ends).title("digits that are wrong" if carrying else None)
    seeds = alt.Chart(data(records))
    drawn: AnyChart = alt.layer(
        seeds.mark_line(color=BLUE, opacity=0.35, strokeWidth=1).encode(x=x, y=y, detail="seed:N"),
        seeds.mark_point(color=BLUE, filled=True, size=22, opacity=0.6).encode(
            x=x, y=y, description=SAYS
        ),
        alt.Chart(data(medians)).mark_line(color=BLACK, strokeWidth=2.5).encode(x=x, y=y),
    ).properties(width=ACROSS / 2 - 60, height=220, title="carrying" if carrying else "quiet")
    return drawn


def properties(found: Sweep) -> Figure:
    """In how many seeds each thing holds."""
    asked = [one for one in found.properties if one.holds.of]
    records = [
        {
            "property": one.name,
            "value": one.holds.estimate,
            "low": one.holds.low,
            "high": one.holds.high,
            TIP: f"{one.name}: {one.holds.count} of {one.holds.of} seeds "
            f"({one.holds.low:.0%} to {one.holds.high:.0%})",
        }
        for one in asked
    ]
    chart = alt.Chart(data(records)).encode(
        y=names_down("property", [one.name for one in asked], labelLimit=330)
    )
    x = alt.X("value:Q", title="share of seeds", scale=alt.Scale(domain=[0, 1]))
    shares = x.axis(format="%", values=[0, 0.25, 0.5, 0.75, 1], grid=True)
    return Figure(
        with_interval(chart, shares, {"color": alt.value(BLACK)}).properties(
            width=300, height=22 * len(asked)
        ),
        "What holds in how many seeds",
        "A chart, a row for each property: "
        + "; ".join(f"{one.name} in {one.holds.count} of {one.holds.of}" for one in asked)
        + ".",
        "With 95 % intervals: what to expect of a seed that was not tried, under this recipe.",
    )
