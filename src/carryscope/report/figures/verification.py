"""Figures of what was verified: failures by look-ahead, the learned table, algorithms, proofs.

In: the findings of `risk`, `faithful` and `certify`. Out: figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from carryscope.certificate.finding import Certificate, DigitProof
from carryscope.core.words import brief, counted_share, percent, with_interval
from carryscope.report.figures.drawing import (
    BLACK,
    BLUE,
    SAYS,
    TIP,
    Record,
    aside,
    cells,
    data,
    interval,
    names_across,
    names_down,
    series,
)
from carryscope.report.figures.drawing import with_interval as points
from carryscope.report.figures.figure import AnyChart, Figure
from carryscope.report.sections.certificate import by_token
from carryscope.report.words import LETTERS, above, carry, control_name, nines
from carryscope.task.operation import State
from carryscope.verification.agreement import AlgorithmAgreement
from carryscope.verification.cases import CaseRisk, by_look_ahead
from carryscope.verification.faithfulness import FaithfulnessFinding
from carryscope.verification.risk import RiskFinding
from carryscope.verification.table import LearnedDigit, TableEntry

ROW, COLUMN = 26.0, 84.0
"""Height and width of a cell of the failures by look-ahead, in pixels."""

KEY_CELL = 17.0
"""Side of a cell of the learned table, in pixels."""

ALIKE, WRONG = "whole answers alike", ["fails too", "fails with the same answer"]

RIGHT, UNDECIDED, FAILED = "proved right", "undecided", "proved wrong"

LIGHT = "#c6dbef"
"""For what is right: light, middle and black can be told apart without any colour."""

LEAST_SHARE = 1e-8
"""Where the logarithmic axis begins at the latest; what is below is drawn there."""

MOST_TICKS = 6
"""Powers of ten that fit under it."""

WIDTH = 285
"""Width of each of the two charts of the certificate, in pixels."""


def failures_by_depth(risk: RiskFinding) -> Figure:
    """Wrong digits by how many nines lie below: the paper's central finding, measured."""
    digits = list(dict.fromkeys(case.digit for case in risk.cases))
    names = [_kind(depth, carrying) for depth, carrying in by_look_ahead(risk.cases)]
    x = names_across("digit", digits, orient="top", labelAngle=0, domain=False)
    y = names_down("kind", names, domain=False)
    title = "digits that are wrong"
    chart = alt.layer(*cells([_case(case) for case in risk.cases], x, y, title, strokeWidth=1))
    worst = max(risk.cases, key=lambda case: case.wrong.estimate)
    return Figure(
        chart.properties(width=COLUMN * len(digits), height=ROW * len(names)),
        "How often a digit is wrong, by the nines below it",
        "A table, a column for each answer digit, a row for each number of nines directly below "
        f"it. The worst is {above(worst)}: wrong in {brief(worst.wrong.estimate)}.",
        "Share of uniform questions of the kind in which the digit is wrong, teacher-forced. "
        "A carry: one comes through the nines. '<': none failed, so it is below this.",
    )


def _kind(depth: int, carrying: bool) -> str:
    return f"{nines(depth)}, {carry(carrying)}"


def _case(case: CaseRisk) -> Record:
    rate, kind = case.wrong, _kind(case.depth, case.carrying)
    known = rate.estimate or not rate.high
    return {
        "digit": case.digit,
        "kind": kind,
        "share": rate.estimate,
        "low": rate.low,
        "high": rate.high,
        "asked": case.asked,
        "_text": brief(rate.estimate) if known else f"<{brief(rate.high)}",
        TIP: f"{case.digit}, {kind}: {with_interval(rate)} wrong, {case.asked:,} asked; "
        f"{percent(case.probability)} of all questions",
    }


def learned_table(finding: FaithfulnessFinding) -> Figure:
    """The digit that the model gives for each of its keys, and how surely."""
    panels = [_key_panel(digit) for digit in finding.table]
    entries = [entry for digit in finding.table for entry in digit.entries]
    differing = sum(entry.differs for entry in entries)
    return Figure(
        alt.concat(*panels, columns=3, spacing=16),
        "The learned table: the digit for each key",
        f"Tables, one for each answer digit, of {len(entries)} keys in all: the digit that the "
        f"model gives most often. In {differing} it is not Algorithm 1's.",
        "Columns: the base sum of the digit's own column. Rows: the state one column below "
        f"({LETTERS.partition(': ')[2]}), and + where the column two below makes a carry. Shade: "
        "how often the model gives another digit. * not Algorithm 1's digit.",
    )


def _key_panel(digit: LearnedDigit) -> AnyChart:
    records = [_key(digit.digit, entry) for entry in digit.entries]
    rows = sorted({record["below"] for record in records}, key=_below_order)
    columns = sorted({record["base add"] for record in records})
    x = names_across("base add", columns, labelAngle=0, domain=False)
    y = names_down("below", rows, domain=False)
    look: dict[str, Any] = {"stroke": "#cccccc", "strokeWidth": 0.5}
    size = {"width": KEY_CELL * max(2, len(columns)), "height": KEY_CELL * len(rows)}
    chart = alt.layer(*cells(records, x, y, "gives another digit", **look))
    drawn: AnyChart = chart.properties(**size, title=digit.digit)
    return drawn


def _below_order(name: str) -> tuple[int, str]:
    return "".join(state.letter for state in State).find(name[:1]), name


def _key(digit: str, entry: TableEntry) -> Record:
    below = (entry.state or "-") + ("" if not entry.carry else " +")
    base = "-" if entry.base_add is None else str(entry.base_add)
    other = "" if entry.next_token is None else f", else most often {entry.next_token}"
    return {
        "base add": base,
        "below": below,
        "digit": entry.token,
        "algorithm 1": entry.algorithm_1,
        "purity": entry.purity.estimate,
        "share": 1 - entry.purity.estimate,
        "_text": f"{entry.token}{'*' if entry.differs else ''}",
        TIP: f"{digit}, base sum {base}, below {below}: {entry.token} in "
        f"{percent(entry.purity.estimate)}{other}; Algorithm 1 has {entry.algorithm_1}",
    }


def agreement(finding: FaithfulnessFinding) -> Figure:
    """Every stated algorithm against the model: its answers, and its errors."""
    algorithms = [one for one in finding.agreement.algorithms if one.same_as is None]
    names = [control_name(one.name, one.control) for one in algorithms]
    y = names_down("algorithm", names, padding=0.4, labelLimit=230)
    answers = alt.Chart(data([_answers(one) for one in algorithms])).encode(y=y)
    errors = alt.Chart(data([error for one in algorithms for error in _errors(one)])).encode(
        y=y.copy().axis(None), yOffset=aside("kind", WRONG)
    )
    share = alt.X("value:Q", scale=alt.Scale(domain=[0, 1]))
    axis: dict[str, Any] = {"format": "%", "values": [0, 0.25, 0.5, 0.75, 1]}
    size = {"width": 210, "height": 34 * len(names)}
    plain: dict[str, Any] = {"color": alt.value(BLACK)}
    charts = [
        points(answers, share.title(ALIKE).axis(**axis), plain),
        points(
            errors,
            share.title("the model's errors").axis(**axis),
            series("kind", WRONG, by="shape"),
        ),
    ]
    return Figure(
        alt.hconcat(*(chart.properties(**size) for chart in charts), spacing=20),
        "Stated algorithms against the model",
        "Two charts, a row for each algorithm: how often it gives the model's whole answer, and "
        f"how many of the model's errors it makes too. {finding.verdict}",
        "Over all questions, teacher-forced, with 95 % intervals. An algorithm that is right "
        "wherever the model is right but makes none of its errors is not what the model runs.",
    )


def _answers(one: AlgorithmAgreement) -> Record:
    name = control_name(one.name, one.control)
    rate = one.answer.agreement
    return {"algorithm": name, "kind": ALIKE, **interval(rate, f"{name}, same whole answer")}


def _errors(one: AlgorithmAgreement) -> list[Record]:
    name = control_name(one.name, one.control)
    shares = dict(zip(WRONG, (one.answer.also_wrong, one.answer.same_wrong), strict=True))
    return [
        {
            "algorithm": name,
            "kind": kind,
            **interval(share, f"{name}, where the model fails it {kind}"),
        }
        for kind, share in shares.items()
        if share is not None
    ]


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
    counts = {RIGHT: row.proved_right, UNDECIDED: row.undecided, FAILED: row.proved_wrong}
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
    scale = alt.Scale(domain=[RIGHT, UNDECIDED, FAILED], range=[LIGHT, BLUE, BLACK])
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
    kinds = [FAILED, UNDECIDED]
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
