"""How many boxes a certificate takes, against the number of digits, as a figure.

In: estimates for several numbers of digits. Out: `Figure`. The axis is logarithmic, because the
answer digits of one model already differ by powers of ten.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import altair as alt

from benchmarks.boxes import Boxes
from carryscope.core.evidence import Mean
from carryscope.report.figures.drawing import BLACK, BLUE, PAGE, SAYS, Record, data
from carryscope.report.figures.figure import Figure
from carryscope.report.figures.hover import TIP

TOTAL, ROW = "all answer digits, with its 95 % interval", "one answer digit"

APART = 0.07
"""By how many digits the points of neighbouring answer digits are drawn apart."""


def boxes_by_digits(found: Sequence[Boxes]) -> Figure:
    """Boxes in all, and for each answer digit, at each number of digits."""
    if not found:
        raise ValueError("There must be something to draw. Got no estimates.")
    records = [record for boxes in found for record in _records(boxes)]
    digits = [boxes.digits for boxes in found]
    x = alt.X(
        "_x:Q",
        title="digits of the numbers that are added",
        scale=alt.Scale(domain=[min(digits) - 0.7, max(digits) + 1.4], nice=False),
        axis=alt.Axis(values=digits, format="d"),
    )
    y = alt.Y(
        "boxes:Q",
        title="boxes",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(format="~s", grid=True, tickCount=6),
    )
    small = found[0].small
    return Figure(
        _chart(records, x, y).properties(width=PAGE - 120, height=280),
        "Boxes that a certificate takes, by the number of digits",
        f"A scatter plot with a logarithmic axis. {' '.join(_told(boxes) for boxes in found)}",
        f"Estimated for models of one recipe. Boxes are split until decided, or below {small:.0e} "
        "of all questions. Answer digits from left to right, the highest first; beside each total, "
        "the share that is then decided of a digit, on average.",
    )


def _chart(records: Sequence[Record], x: alt.X, y: alt.Y) -> alt.LayerChart | alt.FacetChart:
    """Points for answer digits, and points with intervals and a label for the totals."""
    key = alt.Legend(title=None, orient="bottom", labelLimit=0)
    names = [TOTAL, ROW]
    colour = alt.Color("what:N", scale=alt.Scale(domain=names, range=[BLACK, BLUE]), legend=key)
    shape = alt.Shape(
        "what:N", scale=alt.Scale(domain=names, range=["diamond", "circle"]), legend=key
    )
    size = alt.Size("what:N", scale=alt.Scale(domain=names, range=[40, 22]), legend=key)
    chart = alt.Chart(data(records))
    low = y.copy()
    low.shorthand = "low:Q"
    total = chart.transform_filter(alt.datum.what == TOTAL)
    return alt.layer(
        total.mark_errorbar(ticks=True, size=12).encode(x=x, y=low, y2="high:Q", color=colour),
        chart.mark_point(filled=True, opacity=1).encode(
            x=x, y=y, color=colour, shape=shape, size=size, description=SAYS
        ),
        total.mark_text(align="left", dx=11, fontSize=10).encode(x=x, y=y, text="_label:N"),
    )


def _records(boxes: Boxes) -> list[Record]:
    """The total of one model, and its answer digits side by side to the left of it."""
    decided = fmean(row.decided.estimate for row in boxes.rows)
    total = _record(boxes, boxes.total, TOTAL, "all", decided, float(boxes.digits))
    total["_label"] = f"{_share(decided)} decided"
    left = boxes.digits - APART * (len(boxes.rows) + 1)
    return [total] + [
        _record(boxes, row.boxes, ROW, row.digit, row.decided.estimate, left + APART * i)
        for i, row in enumerate(boxes.rows)
        if row.boxes.estimate
    ]


def _record(boxes: Boxes, count: Mean, what: str, digit: str, decided: float, x: float) -> Record:
    return {
        "what": what,
        "digits": boxes.digits,
        "answer digit": digit,
        "boxes": round(count.estimate),
        "low": round(max(1.0, count.low)),
        "high": round(count.high),
        "decided": round(decided, 5),
        "_x": x,
        TIP: f"{digit} at {boxes.digits} digits: {_interval(count)} boxes, "
        f"{_share(decided)} decided",
    }


def _told(boxes: Boxes) -> str:
    rows = ", ".join(f"{row.digit} {row.boxes.estimate:,.0f}" for row in boxes.rows)
    return f"At {boxes.digits} digits {_interval(boxes.total)} boxes in all: {rows}."


def _interval(count: Mean) -> str:
    return f"{count.estimate:,.0f} ({max(1.0, count.low):,.0f} to {count.high:,.0f})"


def _share(share: float) -> str:
    """In per cent, to a tenth; a sample never shows that all is decided."""
    return "over 99.9 %" if share > 0.999 else f"{share:.1%}".replace("%", " %")
