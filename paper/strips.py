"""A strip of dots for each claim: one dot per draw, coloured by the circuit it ended with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import altair as alt

from carryscope.report.figures.drawing import BLACK, BLUE, GREEN, Record, data
from carryscope.report.figures.figure import Figure
from paper.claims import Claim, Judged, Value

WIDTH, DOT = 560, 9
"""Width of a strip, and the room of a dot, in pixels."""

LIMIT = "#888888"
"""The colour of the line at the limit of the rule."""

CIRCUITS = {"three columns read": GREEN, "two": BLUE, "one or none": BLACK}
"""What the heads of a draw read."""


def strip(judged: Judged) -> Figure:
    """The numbers of all draws of a claim, with the limit of its rule."""
    claim, share = judged.claim, judged.share
    low, high = _ends(claim, [*judged.fresh, *judged.authors])
    records = _stacked(judged, low, high)
    scale = alt.Scale(domain=[low, high], nice=False)
    axis = alt.Axis(tickCount=8, labelOverlap=True)
    x = alt.X("value:Q", scale=scale, axis=axis, title=claim.estimand.replace("_", " "))
    height = DOT * (1 + max((record["level"] for record in records), default=0))
    y = alt.Y("level:Q", scale=alt.Scale(domain=[-0.5, height / DOT - 0.5]), axis=None)
    colours = alt.Scale(domain=list(CIRCUITS), range=list(CIRCUITS.values()))
    shapes = alt.Scale(domain=["fresh draw", "authors' draw"], range=["circle", "diamond"])
    legend = alt.Legend(title=None, orient="right")
    dots = alt.Chart(data(records)).mark_point(filled=True, opacity=0.85)
    limit = alt.Chart(data([{"value": claim.limit}])).mark_rule(color=LIMIT, strokeWidth=2)
    chart = alt.layer(
        limit.encode(x=x),
        dots.encode(
            x=x,
            y=y,
            size=alt.Size("size:Q", scale=None),
            color=alt.Color("circuit:N", scale=colours, legend=legend),
            shape=alt.Shape("kind:N", scale=shapes, legend=legend),
        ),
    )
    return Figure(
        chart.properties(width=WIDTH, height=max(2 * DOT, height)),
        claim.title,
        f"A dot for each draw. It holds in {share.count} of {share.of} fresh draws.",
        f"Holds if {claim.rule} {claim.limit:g} (grey line).",
    )


def _ends(claim: Claim, values: Sequence[Value]) -> tuple[float, float]:
    """The ends of the axis: all values and the limit, with a margin."""
    known = [claim.limit, *(value.value for value in values if value.value is not None)]
    room = (max(known) - min(known) or 1.0) / 12
    return min(known) - room, max(known) + room


def _stacked(judged: Judged, low: float, high: float) -> list[Record]:
    """A record for each dot; dots that would hide each other are stacked.

    A draw without a value stands at the end of the axis where the claim fails.
    """
    fails_at = high if judged.claim.rule in ("below", "at most") else low
    heights: Counter[int] = Counter()
    records: list[Record] = []
    both = {"fresh draw": judged.fresh, "authors' draw": judged.authors}
    for kind, value in [(kind, value) for kind, values in both.items() for value in values]:
        at = fails_at if value.value is None else value.value
        cell = round((at - low) / (high - low) * WIDTH / DOT)
        records.append(
            {
                "value": at,
                "level": heights[cell],
                "circuit": list(CIRCUITS)[min(2, 3 - value.columns)],
                "kind": kind,
                "size": 45 if kind == "fresh draw" else 90,
                "draw": f"{value.recipe}, seed {value.seed}",
            }
        )
        heights[cell] += 1
    return records
