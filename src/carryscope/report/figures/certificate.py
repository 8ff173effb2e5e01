"""What is proved, token by token. In: a certificate. Out: a figure.

Shares of all questions are drawn twice: as they are, and those that are wrong or undecided once
more on a logarithmic axis, where one in a million can still be seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt

from carryscope.certificate.finding import Certificate, DigitProof
from carryscope.core.words import counted_share
from carryscope.report.figures.drawing import (
    BLACK,
    BLUE,
    SAYS,
    Record,
    aside,
    data,
    names_down,
    series,
)
from carryscope.report.figures.figure import AnyChart, Figure
from carryscope.report.figures.hover import TIP
from carryscope.report.sections.certificate import by_token

RIGHT, UNDECIDED, WRONG = "proved right", "undecided", "proved wrong"

LIGHT = "#c6dbef"
"""For what is right: light, middle and black can be told apart without any colour."""

LEAST_SHARE = 1e-8
"""Where the logarithmic axis begins at the latest; what is below is drawn there."""

MOST_TICKS = 6
"""Powers of ten that fit under it."""

ROW, WIDTH = 26, 285
"""Height of a row and width of each of the two charts, in pixels."""


def proved_tokens(found: Certificate) -> Figure:
    """Questions in which each token is proved right, proved wrong, or neither."""
    rows, questions = by_token(found), int(found.questions)
    records = [record for row in rows for record in _records(row, questions)]
    y = names_down("token", [row.digit for row in rows], padding=0.3, labelLimit=110)
    size = {"width": WIDTH, "height": ROW * len(rows)}
    charts = [_shares(records, y), _rare(records, y.copy().axis(None))]
    return Figure(
        alt.hconcat(*(chart.properties(**size) for chart in charts), spacing=24).resolve_scale(
            color="independent", shape="independent"
        ),
        "What is proved, token by token",
        "Two charts, a row for each answer token and one for the whole answer: the share of all "
        f"questions in which it is proved right, proved wrong, or undecided. {found.statement}",
        "Share of all questions. Left: all of them. Right: those that are not proved right, on a "
        "logarithmic axis. A token is judged on the true tokens before it.",
    )


def _records(row: DigitProof, questions: int) -> list[Record]:
    counts = {RIGHT: row.proved_right, UNDECIDED: row.undecided, WRONG: row.proved_wrong}
    return [
        {
            "token": row.digit,
            "kind": kind,
            "questions": count,
            "share": int(count) / questions,
            "_drawn": max(LEAST_SHARE, int(count) / questions),
            "_order": order,
            "_none": f"none {kind.removeprefix('proved ')}",
            TIP: f"{row.digit}: {kind} in {int(count):,} questions, "
            f"{counted_share(int(count), questions, at_most=kind == UNDECIDED)}",
        }
        for order, (kind, count) in enumerate(counts.items())
    ]


def _shares(records: Sequence[Record], y: alt.Y) -> AnyChart:
    """All questions, as parts of a whole."""
    scale = alt.Scale(domain=[RIGHT, UNDECIDED, WRONG], range=[LIGHT, BLUE, BLACK])
    legend = alt.Legend(title=None, orient="bottom", columns=3)
    axis = alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1])
    x = alt.X("share:Q", stack="zero", scale=alt.Scale(domain=[0, 1]), title="all questions")
    chart: AnyChart = (
        alt.Chart(data(records))
        .mark_bar()
        .encode(
            x=x.axis(axis),
            y=y,
            order="_order:Q",
            color=alt.Color("kind:N", scale=scale, legend=legend),
            description=SAYS,
        )
    )
    return chart


def _rare(records: Sequence[Record], y: alt.Y) -> AnyChart:
    """What is not proved right, however rare."""
    kinds = [WRONG, UNDECIDED]
    seen = [record for record in records if record["kind"] in kinds and int(record["questions"])]
    none = [record for record in records if record["kind"] in kinds and record not in seen]
    least = min([0.1, *(record["_drawn"] for record in seen)])
    lowest = math.floor(math.log10(least) + 1e-9)
    step = -(lowest // MOST_TICKS)
    ticks = [10.0**power for power in range(0, lowest - 1, -step)]
    x = alt.X(
        "_drawn:Q",
        title="not proved right",
        scale=alt.Scale(type="log", domain=[10.0**lowest, 1.0], nice=False, clamp=True),
        axis=alt.Axis(values=ticks, format=".10~%", grid=True, labelFlush=True),
    )
    place = {"y": y, "yOffset": aside("kind", kinds), "description": SAYS}
    marks = alt.Chart(data(seen)).mark_point(filled=True, size=60, opacity=1)
    words = alt.Chart(data(none)).mark_text(align="left", dx=4, fontSize=9, color="#555555")
    chart: AnyChart = alt.layer(
        marks.encode(x=x, **place, **series("kind", kinds, by="shape")),
        words.encode(x=alt.value(0), text="_none:N", **place),
    )
    return chart
