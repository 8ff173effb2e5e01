"""What is proved, token by token. In: a certificate. Out: a figure.

Shares of all questions stand beside each other twice: as they are, and those that are wrong or
undecided once more on a logarithmic axis, where one in a million can still be seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt

from carryscope.certificate.finding import Certificate, DigitProof
from carryscope.core.words import counted_share
from carryscope.report.drawing import BLACK, BLUE, SAYS, Record, data, names_down, series
from carryscope.report.figure import AnyChart, Figure
from carryscope.report.hover import TIP

RIGHT, UNDECIDED, WRONG = "proved right", "undecided", "proved wrong"

LIGHT = "#c6dbef"
"""For what is right, so that light, middle and black are told apart without any colour."""

LEAST_SHARE = 1e-8
"""Where the logarithmic axis begins at the latest; what is below is drawn there."""

MOST_TICKS = 6
"""Powers of ten that fit under it."""

ROW = 26
WIDTH = 285
"""Height of a row and width of each of the two charts, in pixels."""

WHOLE = "whole answer"


def proved_tokens(found: Certificate) -> Figure:
    """Questions in which each token is proved right, proved wrong, or neither."""
    records = [record for row in _rows(found) for record in _records(row, int(found.questions))]
    names = list(dict.fromkeys(record["token"] for record in records))
    y = names_down("token", names, padding=0.3, labelLimit=110)
    size = {"width": WIDTH, "height": ROW * len(names)}
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


def _rows(found: Certificate) -> list[DigitProof]:
    """The tokens, and the whole answer as one more."""
    whole = DigitProof(
        digit=WHOLE,
        proved_right=found.proved_right,
        proved_wrong=found.proved_wrong,
        undecided=found.undecided,
        boxes=sum(digit.boxes for digit in found.per_digit),
    )
    return [*found.per_digit, whole]


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
    axis = alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1])
    x = alt.X("share:Q", stack="zero", scale=alt.Scale(domain=[0, 1]), title="all questions")
    chart: AnyChart = (
        alt.Chart(data(records))
        .mark_bar()
        .encode(
            x=x.axis(axis),
            y=y,
            order="_order:Q",
            color=alt.Color(
                "kind:N", scale=scale, legend=alt.Legend(title=None, orient="bottom", columns=3)
            ),
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
    x = alt.X(
        "_drawn:Q",
        title="not proved right",
        scale=alt.Scale(type="log", domain=[10.0**lowest, 1.0], nice=False, clamp=True),
        axis=alt.Axis(
            values=[10.0**power for power in range(0, lowest - 1, -step)],
            format=".10~%",
            grid=True,
            labelFlush=True,
        ),
    )
    aside = alt.YOffset("kind:N", scale=alt.Scale(domain=kinds))
    marks = alt.Chart(data(seen)).mark_point(filled=True, size=60, opacity=1)
    words = alt.Chart(data(none)).mark_text(align="left", dx=4, fontSize=9, color="#555555")
    layers = [
        marks.encode(
            x=x, y=y, yOffset=aside, description=SAYS, **series("kind", kinds, by="shape")
        ),
        words.encode(x=alt.value(0), y=y, yOffset=aside, text="_none:N", description=SAYS),
    ]
    chart: AnyChart = alt.layer(*layers)
    return chart
