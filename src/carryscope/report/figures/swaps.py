"""Charts of the swaps: the MLP's keys, and the carry that the first digits follow.

In: a dissection. Out: figures. Every share has its 95 % interval drawn.
"""

from __future__ import annotations

import altair as alt

from carryscope.dissection.findings import Dissection
from carryscope.dissection.first_digits import CarryEffect, FirstDigitsFinding
from carryscope.dissection.keys import MlpFinding
from carryscope.report.figures.drawing import (
    PAGE,
    SAYS,
    aside,
    data,
    interval,
    names_down,
    needed,
    series,
    with_interval,
)
from carryscope.report.figures.figure import AnyChart, Figure
from carryscope.report.figures.hover import TIP
from carryscope.report.words import PASSES, nines

SWAPS = ["same key: answer stays", "other key: answer follows"]
GROUPS = ["all pairs", "told apart before the MLP", "after it"]

CHANGES = ["columns changed", "own 9: columns", "own 9: token", "own 9: both"]
"""What is taken from the other question."""

ASIDE = 0.09
"""How far series stand apart, so that equal shares do not hide each other."""


def key_swaps(dissection: Dissection) -> Figure:
    """The MLP's keys: what swaps do to the answer, and how many keys can be told apart."""
    finding: MlpFinding = needed(dissection, "mlp")
    digits = [test.digit for test in finding.digits]
    y, size = names_down("digit", digits, padding=0.4), {"width": 290, "height": 30 * len(digits)}
    left = "attention output from another question"
    right = "pairs of keys that have the same answer"
    return Figure(
        alt.hconcat(
            _swaps(finding, y).properties(**size, title=left),
            _groups(finding, y).properties(**size, title=right),
            spacing=24,
        ).resolve_scale(color="independent", shape="independent", yOffset="independent"),
        "Does the MLP look up a key?",
        "Two charts, a row for each answer digit: answers that stay or follow when attention "
        f"output is swapped between questions, and counts of pairs of keys. {finding.statement}",
        f"{finding.questions:,} questions. A key is the base sum of a column, the state of the "
        "column below and the carry of the one below that.",
    )


def _swaps(finding: MlpFinding, y: alt.Y) -> AnyChart:
    records = [
        {"digit": test.digit, "kind": kind, **interval(share, f"{test.digit}, {kind}")}
        for test in finding.digits
        for kind, share in zip(SWAPS, (test.kept, test.follows), strict=True)
        if share.of
    ]
    least = min([0.8, *(record["low"] for record in records)])
    share = alt.X("value:Q", title="share of the answers", scale=alt.Scale(domain=[least, 1]))
    chart = alt.Chart(data(records)).encode(y=y, yOffset=aside("kind", SWAPS))
    return with_interval(chart, share.axis(format="%"), series("kind", SWAPS, by="shape"))


def _groups(finding: MlpFinding, y: alt.Y) -> AnyChart:
    records = [
        {"digit": test.digit, "kind": kind, "count": count, TIP: f"{test.digit}, {kind}: {count}"}
        for test in finding.digits
        for kind, count in zip(GROUPS, (test.alike, test.apart_in, test.apart_out), strict=True)
    ]
    chart: AnyChart = (
        alt.Chart(data(records))
        .mark_point(filled=True, size=55, opacity=1)
        .encode(
            x=alt.X("count:Q", title="pairs of keys"),
            y=y,
            yOffset=aside("kind", GROUPS),
            description=SAYS,
            **series("kind", GROUPS, by="shape"),
        )
    )
    return chart


def carry_depths(dissection: Dissection) -> Figure:
    """How deep the first digits look for a carry, and whether they read the token before."""
    finding: FirstDigitsFinding = needed(dissection, "first_digits")
    digits = list(dict.fromkeys(effect.digit for effect in finding.effects))
    deepest = max(effect.depth for effect in finding.effects)
    width = max(160, 32 * (1 + deepest))
    panels = [
        _depth_panel([effect for effect in finding.effects if effect.digit == digit]).properties(
            width=width, height=170, title=digit
        )
        for digit in digits
    ]
    return Figure(
        alt.concat(*panels, columns=max(1, PAGE // (width + 60)), spacing=16),
        "How deep a digit looks for its carry",
        "Line charts, one for each of the first digits: the share of answers that follow a "
        f"carry, by the number of nines it came through. {finding.statement}",
        "Pairs of questions that differ in one carry: how often the answer becomes the other "
        f"question's digit. Own 9: the digit's own column {PASSES}, so that the answer token "
        "before it shows the carry.",
    )


def _depth_panel(effects: list[CarryEffect]) -> AnyChart:
    kinds = list(dict.fromkeys(map(_change, effects)))
    shift = {kind: ASIDE * (i - (len(kinds) - 1) / 2) for i, kind in enumerate(kinds)}
    records = [
        {
            "depth": e.depth,
            "place": e.depth + shift[_change(e)],
            "kind": _change(e),
            **interval(e.follows, f"{_change(e)}, {nines(e.depth)} on the way"),
        }
        for e in effects
        if e.follows.of
    ]
    depths = sorted({effect.depth for effect in effects})
    ends = alt.Scale(domain=[depths[0] - 0.3, depths[-1] + 0.3], nice=False)
    on_the_way = alt.X("place:Q", title="nines on the way", scale=ends)
    lines = alt.Chart(data(records)).encode(x=on_the_way.axis(values=depths, format="d"))
    share = alt.Y("value:Q", title="answers that follow", scale=alt.Scale(domain=[0, 1]))
    share = share.axis(format="%", grid=True)
    look, dashes = series("kind", CHANGES, by="shape"), series("kind", CHANGES, by="dash")
    chart: AnyChart = alt.layer(
        lines.mark_line(strokeWidth=1.2).encode(
            y=share, color=look["color"], strokeDash=dashes["strokeDash"].legend(None)
        ),
        lines.mark_rule().encode(y="low:Q", y2="high:Q", color=look["color"]),
        lines.mark_point(filled=True, size=45, opacity=1).encode(y=share, description=SAYS, **look),
    )
    return chart


def _change(effect: CarryEffect) -> str:
    return f"own 9: {effect.changed}" if effect.own_nine else CHANGES[0]
