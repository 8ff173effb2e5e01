"""Charts of interventions: rows and heads ablated, keys swapped, carries changed.

In: a dissection. Out: figures. Every mean and every share has its 95 % interval drawn.
"""

from __future__ import annotations

from typing import Any

import altair as alt

from carryscope.core.words import loss
from carryscope.dissection.findings import Dissection
from carryscope.dissection.first_digits import CarryEffect, FirstDigitsFinding
from carryscope.dissection.heads import HeadEffect, HeadsFinding
from carryscope.dissection.keys import MlpFinding
from carryscope.dissection.rows import RowEffect, RowsFinding
from carryscope.report.figures.drawing import (
    BLACK,
    BLUE,
    LEAST_LOSS,
    PAGE,
    SAYS,
    TIP,
    TWO_LINES,
    Record,
    aside,
    data,
    interval,
    loss_axis,
    names_across,
    names_down,
    needed,
    series,
    with_interval,
)
from carryscope.report.figures.figure import AnyChart, Figure
from carryscope.report.words import PASSES, head_titles, nines

WAYS = {"zero": "set to zero", "mean": "set to its mean"}
"""The ways of ablating, in words."""

MOST_UPRIGHT = 20
"""Up to this many labels stand upright below the bars of a page; more are turned."""

WHOLE, NOTHING = "whole model", "nothing ablated"

SWAPS = ["same key: answer stays", "other key: answer follows"]
GROUPS = ["all pairs", "told apart before the MLP", "after it"]

CHANGES = ["columns changed", "own 9: columns", "own 9: token", "own 9: both"]
"""What is taken from the other question."""

ASIDE = 0.09
"""How far series stand apart, so that equal shares do not hide each other."""


def rows_table_figure(dissection: Dissection) -> Figure:
    """The paper's table of rows: the loss when the residual stream of one row is ablated."""
    finding: RowsFinding = needed(dissection, "rows")
    panels = [_rows_panel(finding, layer) for layer in range(dissection.model.layers)]
    important = list(dict.fromkeys(r.token for r in finding.rows if r.important and r.forced))
    return Figure(
        alt.vconcat(*panels, spacing=18),
        "Loss without each row",
        "Bars, two for each row of the residual stream after a block: the loss with the row set "
        "to zero and to its mean. After the last block it rises by more than "
        f"{finding.threshold} at rows {' '.join(important) or 'none'}. {finding.remark}",
        f"Mean loss over {finding.questions:,} questions. Dashed line: {finding.threshold} above "
        f"the loss of the whole model, which is {finding.clean_loss.estimate:.3f}. * forced: after "
        "the last block a row reaches its own answer token alone, whatever the model has learnt.",
    )


def _rows_panel(finding: RowsFinding, layer: int) -> AnyChart:
    effects = [effect for effect in finding.rows if effect.layer == layer]
    names = list(dict.fromkeys(map(_row_name, effects)))
    records = [
        {
            "row": _row_name(effect),
            "way": WAYS[effect.how],
            "loss": effect.loss.estimate,
            "low": effect.loss.low,
            "high": effect.loss.high,
            TIP: f"P{effect.row} {effect.token} {WAYS[effect.how]}: loss {loss(effect.loss)}",
        }
        for effect in effects
    ]
    ways = list(WAYS.values())
    fill = alt.Color("way:N", scale=alt.Scale(domain=ways, range=[BLUE, "#bfdcef"]), title=None)
    labels: dict[str, Any] = {"labelAngle": 0, "labelExpr": TWO_LINES}
    if len(names) > MOST_UPRIGHT:
        labels = {"labelAngle": -90, "labelExpr": "replace(datum.label, '|', ' ')"}
    bars = alt.Chart(data(records)).encode(
        x=names_across("row", names, **labels),
        xOffset=alt.XOffset("way:N", scale=alt.Scale(domain=ways)),
    )
    limit = finding.clean_loss.estimate + finding.threshold
    return alt.layer(
        bars.mark_bar(stroke=BLACK, strokeWidth=0.5).encode(
            y=alt.Y("loss:Q", title="loss"),
            color=fill.legend(orient="bottom"),
            description=SAYS,
        ),
        bars.mark_rule(color=BLACK).encode(y="low:Q", y2="high:Q"),
        alt.Chart(data([{"limit": limit}])).mark_rule(strokeDash=[4, 3]).encode(y="limit:Q"),
    ).properties(width=PAGE - 60, height=150, title=f"after block {layer}")


def _row_name(effect: RowEffect) -> str:
    """Two lines, parted by a bar; a star for what is forced."""
    return f"P{effect.row}|{effect.token}{' *' if effect.forced else ''}"


def heads_by_class(dissection: Dissection) -> Figure:
    """The loss without each head, class by class."""
    finding: HeadsFinding = needed(dissection, "heads")
    titles = head_titles(needed(dissection, "attention"), dissection.model.layers)
    kinds = list(dict.fromkeys(effect.question_class for effect in finding.effects))
    panels = [_class_panel(finding, kind, titles) for kind in kinds]
    return Figure(
        alt.concat(*panels, columns=2, spacing=18),
        "Loss without each head, by question class",
        "Charts, one for each question class, of the loss without each head, on a logarithmic "
        f"axis. {finding.statement} {_described(finding, titles)}",
        f"Each head ablated at all rows; {finding.questions:,} questions. Dashed line: "
        f"{finding.threshold} above the loss of the whole model.",
    )


def _class_panel(finding: HeadsFinding, kind: str, titles: dict[tuple[int, int], str]) -> AnyChart:
    effects = [effect for effect in finding.effects if effect.question_class == kind]
    whole = next(effect for effect in effects if effect.head is None)
    names, ways = [WHOLE, *titles.values()], [NOTHING, *WAYS.values()]
    least = min(effect.loss.estimate for effect in finding.effects) / 5
    most = max(effect.loss.high for effect in finding.effects)
    points = alt.Chart(data([_head_record(effect, titles) for effect in effects])).encode(
        y=names_down("head", names, padding=0.4, labelLimit=200),
        yOffset=aside("way", [WAYS["zero"], NOTHING, WAYS["mean"]]),
    )
    limit = {"limit": whole.loss.estimate + finding.threshold}
    return alt.layer(
        with_interval(points, loss_axis(alt.X, least, most), series("way", ways, by="shape")),
        alt.Chart(data([limit])).mark_rule(strokeDash=[4, 3]).encode(x="limit:Q"),
    ).properties(width=225, height=26 * len(names), title=kind)


def _named(effect: HeadEffect, titles: dict[tuple[int, int], str]) -> tuple[str, str]:
    """Which head is ablated, and how."""
    if effect.layer is None or effect.head is None or effect.how is None:
        return WHOLE, NOTHING
    return titles[effect.layer, effect.head], WAYS[effect.how]


def _head_record(effect: HeadEffect, titles: dict[tuple[int, int], str]) -> Record:
    head, way = _named(effect, titles)
    values = {"value": effect.loss.estimate, "low": effect.loss.low, "high": effect.loss.high}
    # The interval of a small mean may reach below zero, where a logarithm has no place for it.
    shown = {name: max(value, LEAST_LOSS) for name, value in values.items()}
    return {"head": head, "way": way, **shown, TIP: f"{head}, {way}: loss {loss(effect.loss)}"}


def _described(finding: HeadsFinding, titles: dict[tuple[int, int], str]) -> str:
    told: dict[str, list[str]] = {}
    for effect in finding.effects:
        if effect.how != "zero":
            said = f"{_named(effect, titles)[0]} {effect.loss.estimate:.3f}"
            told.setdefault(effect.question_class, []).append(said)
    return " ".join(f"{kind}: {'; '.join(losses)}." for kind, losses in told.items())


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
