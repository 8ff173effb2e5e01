"""Charts of the ablations and swaps: rows, heads, keys, carries.

In: findings. Out: figures. Every share and mean has its 95 % interval drawn.
"""

from __future__ import annotations

import altair as alt

from carryscope.dissection.findings import Dissection
from carryscope.dissection.first_digits import CarryEffect, FirstDigitsFinding
from carryscope.dissection.heads import HeadEffect, HeadsFinding
from carryscope.dissection.keys import MlpFinding
from carryscope.dissection.rows import RowEffect, RowsFinding
from carryscope.evidence import Mean, Share
from carryscope.report.drawing import (
    BLACK,
    BLUE,
    PAGE,
    Record,
    data,
    head_name,
    head_titles,
    needed,
    percent,
    series,
    sorted_axis,
)
from carryscope.report.figure import Figure

LEAST_LOSS = 1e-5
"""Where a logarithmic axis of losses begins; what is below is drawn there."""

WAYS = {"zero": "set to zero", "mean": "set to the mean"}


def rows_table_figure(dissection: Dissection) -> Figure:
    """The paper's table of rows: the loss when the residual stream of one row is ablated."""
    finding: RowsFinding = needed(dissection, "rows")
    layers = dissection.model.layers
    panels = [_rows_panel(finding, layer, dissection) for layer in range(layers)]
    important = list(dict.fromkeys(r.token for r in finding.rows if r.important and r.forced))
    return Figure(
        alt.vconcat(*panels, spacing=18),
        "Loss without each row",
        "Bars, two for each row of the residual stream after a block: the loss with the row set "
        f"to zero and to its mean. After the last block the loss rises by more than "
        f"{finding.threshold} at rows {' '.join(important) or 'none'}. {finding.remark}",
        f"Mean loss over {finding.questions:,} questions. Dashed line: {finding.threshold} above "
        f"the loss of the whole model, {finding.clean_loss.estimate:.3f}. * forced: after the "
        "last block a row reaches its own answer token only, whatever the model has learnt.",
    )


def _rows_panel(finding: RowsFinding, layer: int, dissection: Dissection) -> alt.LayerChart:
    effects = [effect for effect in finding.rows if effect.layer == layer]
    names = list(dict.fromkeys(map(_row_name, effects)))
    records = [
        {
            "row": _row_name(effect),
            "way": WAYS[effect.how],
            "loss": effect.loss.estimate,
            **_ends(effect.loss),
        }
        for effect in effects
    ]
    x = sorted_axis(alt.X, "row", names, labelAngle=0, labelOverlap=False, labelExpr=_TWO_LINES)
    side = alt.XOffset("way:N", scale=alt.Scale(domain=list(WAYS.values())))
    bars = alt.Chart(data(records)).encode(x=x, xOffset=side)
    colours = alt.Scale(domain=list(WAYS.values()), range=[BLUE, "#bfdcef"])
    limit = finding.clean_loss.estimate + finding.threshold
    return alt.layer(
        bars.mark_bar(stroke=BLACK, strokeWidth=0.5).encode(
            y=alt.Y("loss:Q", title="loss"),
            color=alt.Color("way:N", scale=colours, title=None, legend=alt.Legend(orient="bottom")),
        ),
        bars.mark_rule(color=BLACK).encode(y="low:Q", y2="high:Q"),
        alt.Chart(data([{"limit": limit}])).mark_rule(strokeDash=[4, 3]).encode(y="limit:Q"),
    ).properties(width=max(PAGE - 60, 28 * len(names)), height=150, title=f"after block {layer}")


_TWO_LINES = "split(datum.label, '|')"


def _row_name(effect: RowEffect) -> str:
    """Two lines, parted by a bar; a star for what is forced."""
    return f"P{effect.row}|{effect.token}{'*' if effect.forced else ''}"


def heads_by_class(dissection: Dissection) -> Figure:
    """The loss without each head, class by class."""
    finding: HeadsFinding = needed(dissection, "heads")
    roles = head_titles(needed(dissection, "attention"), dissection.model.layers)
    names = ["whole model", *roles.values()]
    kinds = list(dict.fromkeys(effect.question_class for effect in finding.effects))
    losses = [max(e.loss.estimate, LEAST_LOSS) for e in finding.effects]
    span = (min(losses) / 2, max(losses) * 2)
    panels = [_class_panel(finding, kind, names, roles, span) for kind in kinds]
    return Figure(
        alt.concat(*panels, columns=2, spacing=18),
        "Loss without each head, by question class",
        "Four charts, one for each question class, of the loss without each head, on a "
        f"logarithmic axis. {finding.statement}",
        f"Each head ablated at all rows; {finding.questions:,} questions. Dashed line: "
        f"{finding.threshold} above the loss of the whole model, the paper's cut-off.",
    )


def _class_panel(
    finding: HeadsFinding,
    kind: str,
    names: list[str],
    roles: dict[tuple[int, int], str],
    span: tuple[float, float],
) -> alt.LayerChart:
    effects = [effect for effect in finding.effects if effect.question_class == kind]
    whole = next(effect for effect in effects if effect.head is None)
    records = [_head_record(effect, roles) for effect in effects]
    ways = ["nothing ablated", *WAYS.values()]
    scale = alt.Scale(type="log", domain=list(span), clamp=True)
    x = alt.X("loss:Q", scale=scale, title="loss", axis=alt.Axis(tickCount=5, grid=True))
    y = sorted_axis(alt.Y, "head", names, labelLimit=200)
    points = alt.Chart(data(records)).encode(y=y)
    limit = whole.loss.estimate + finding.threshold
    return alt.layer(
        alt.Chart(data([{"limit": limit}])).mark_rule(strokeDash=[4, 3]).encode(x="limit:Q"),
        points.mark_rule().encode(
            x=alt.X("low:Q", scale=scale), x2="high:Q", color=series("way", ways, by="shape")["color"]
        ),
        points.mark_point(filled=True, size=60, opacity=1).encode(
            x=x, **series("way", ways, by="shape")
        ),
    ).properties(width=205, height=24 * len(names), title=kind)


def _head_record(effect: HeadEffect, roles: dict[tuple[int, int], str]) -> Record:
    low, high = (max(end, LEAST_LOSS) for end in (effect.loss.low, effect.loss.high))
    named = {"head": "whole model", "way": "nothing ablated"}
    if effect.layer is not None and effect.head is not None and effect.how is not None:
        named = {"head": roles[effect.layer, effect.head], "way": WAYS[effect.how]}
    return {**named, "loss": max(effect.loss.estimate, LEAST_LOSS), "low": low, "high": high}


def key_swaps(dissection: Dissection) -> Figure:
    """The MLP's keys: what swaps do to the answer, and how many keys can be told apart."""
    finding: MlpFinding = needed(dissection, "mlp")
    digits = [test.digit for test in finding.digits]
    swaps = [
        {"digit": test.digit, "kind": kind, **_share(share)}
        for test in finding.digits
        for kind, share in zip(SWAPS, (test.kept, test.follows), strict=True)
    ]
    groups = [
        {"digit": test.digit, "kind": kind, "count": count}
        for test in finding.digits
        for kind, count in zip(
            GROUPS, (test.keys, test.groups_in, test.groups_out), strict=True
        )
    ]
    y, height = sorted_axis(alt.Y, "digit", digits, grid=True), 28 * len(digits)
    share = alt.X("share:Q", title="share of the answers", axis=alt.Axis(format="%"))
    share.scale = alt.Scale(domain=[min(0.5, *(s["low"] for s in swaps)), 1])
    left = alt.Chart(data(swaps)).encode(y=y, yOffset=alt.YOffset("kind:N", scale=alt.Scale(domain=SWAPS)))
    right = alt.Chart(data(groups)).encode(y=y)
    return Figure(
        alt.hconcat(
            _with_interval(left, share, series("kind", SWAPS, by="shape")).properties(
                width=270, height=height, title="attention output swapped in"
            ),
            right.mark_point(size=70, filled=False, strokeWidth=2, opacity=1)
            .encode(x=alt.X("count:Q", title="number"), **series("kind", GROUPS, by="shape"))
            .properties(width=270, height=height, title="keys that can be told apart"),
            spacing=24,
        ).resolve_scale(color="independent", shape="independent"),
        "Does the MLP look up a key?",
        "Two charts, a row for each answer digit: answers that stay or follow when attention "
        f"output is swapped between questions, and counts of keys. {finding.statement}",
        f"{finding.questions:,} questions. A key is base add, state one below, carry two below.",
    )


SWAPS = ["same key: answer stays", "other key: answer follows"]
GROUPS = ["keys there are", "told apart before the MLP", "told apart after it"]


def carry_depths(dissection: Dissection) -> Figure:
    """How deep the first digits look for a carry, and whether they read the token before."""
    finding: FirstDigitsFinding = needed(dissection, "first_digits")
    digits = list(dict.fromkeys(effect.digit for effect in finding.effects))
    panels = [_depth_panel(finding, digit) for digit in digits]
    return Figure(
        alt.hconcat(*panels, spacing=18),
        "How deep a digit looks for its carry",
        "Line charts, one for each of the first digits: the share of answers that follow a "
        f"carry, by the number of nines it came through. {finding.statement}",
        "Pairs of questions that differ in one carry: answers that become the other question's "
        "digit. 'Own 9': the digit's own column sums to 9, so the token before it shows the carry.",
    )


def _depth_panel(finding: FirstDigitsFinding, digit: str) -> alt.LayerChart:
    effects = [effect for effect in finding.effects if effect.digit == digit]
    records = [
        {"depth": e.depth, "kind": _change(e), **_share(e.follows)} for e in effects
    ]
    depths = sorted({effect.depth for effect in effects})
    x = alt.X("depth:O", title="nines between", axis=alt.Axis(labelAngle=0))
    x.scale = alt.Scale(domain=depths)
    y = alt.Y("share:Q", title="follows", axis=alt.Axis(format="%", grid=True))
    y.scale = alt.Scale(domain=[0, 1])
    lines = alt.Chart(data(records)).encode(x=x, y=y)
    look = series("kind", CHANGES, by="shape")
    return alt.layer(
        lines.mark_line().encode(color=look["color"]),
        lines.mark_rule().encode(y="low:Q", y2="high:Q", color=look["color"]),
        lines.mark_point(filled=True, size=60, opacity=1).encode(**look),
    ).properties(width=170, height=170, title=digit)


CHANGES = ["columns changed", "own 9: columns", "own 9: token", "own 9: both"]


def _change(effect: CarryEffect) -> str:
    return f"own 9: {effect.changed}" if effect.own_nine else CHANGES[0]


def _ends(value: Mean | Share) -> Record:
    return {"low": value.low, "high": value.high}


def _share(share: Share) -> Record:
    """A share with its interval; one with no questions behind it is not drawn."""
    return {"share": share.estimate if share.of else None, **_ends(share)}
