"""Figures of what was verified: failures by look-ahead, the learned table, stated algorithms.

In: the findings of `risk` and `faithful`. Out: figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from carryscope.report.drawing import (
    BLACK,
    DARK,
    SAYS,
    Record,
    data,
    names_across,
    names_down,
    series,
    shade,
    with_interval,
)
from carryscope.report.figure import AnyChart, Figure
from carryscope.report.hover import TIP
from carryscope.verification.agreement import AlgorithmAgreement
from carryscope.verification.faithfulness import FaithfulnessFinding
from carryscope.verification.risk_finding import CaseRisk, RiskFinding
from carryscope.verification.stratified import WeightedShare
from carryscope.verification.table import LearnedDigit, TableEntry

ROW, COLUMN = 26.0, 84.0
"""Height and width of a cell of the failures by look-ahead, in pixels."""

KEY_CELL = 17.0
"""Side of a cell of the learned table, in pixels."""

WRONG = ["fails too", "fails with the same answer"]


def failures_by_depth(risk: RiskFinding) -> Figure:
    """Wrong digits by how many nines stand below: the paper's central finding, measured."""
    digits = list(dict.fromkeys(case.digit for case in risk.cases))
    kinds = sorted({(c.depth, not c.carrying) for c in risk.cases})
    names = [_kind(depth, not quiet) for depth, quiet in kinds]
    records = [_case(case) for case in risk.cases]
    x = names_across("digit", digits, orient="top", labelAngle=0, domain=False)
    y = names_down("kind", names, domain=False)
    cells = alt.Chart(data(records)).mark_rect(stroke="#dddddd", strokeWidth=1)
    chart = alt.layer(
        cells.encode(x=x, y=y, color=shade("digits that are wrong"), description=SAYS),
        *_inked(records, x, y),
    )
    worst = max(risk.cases, key=lambda case: case.wrong.estimate)
    return Figure(
        chart.properties(width=COLUMN * len(digits), height=ROW * len(names)),
        "How often a digit is wrong, by the nines below it",
        "A table, a column for each answer digit, a row for each number of nines directly below "
        f"it. The worst is {worst.digit} above {_kind(worst.depth, worst.carrying)}: wrong in "
        f"{_brief(worst.wrong.estimate)}.",
        "Share of uniform questions of the kind in which the digit is wrong, teacher-forced. "
        "Carrying: a carry comes through the nines. '<': none failed, so it is below this.",
    )


def _kind(depth: int, carrying: bool) -> str:
    nines = {0: "no nine", 1: "1 nine"}.get(depth, f"{depth} nines")
    return f"{nines}, {'carrying' if carrying else 'quiet'}"


def _case(case: CaseRisk) -> Record:
    rate, kind = case.wrong, _kind(case.depth, case.carrying)
    known = rate.estimate or not rate.high
    text = _brief(rate.estimate) if known else f"<{_brief(rate.high)}"
    return {
        "digit": case.digit,
        "kind": kind,
        "share": rate.estimate,
        "low": rate.low,
        "high": rate.high,
        "asked": case.asked,
        "_text": text,
        TIP: f"{case.digit}, {kind}: {rate.estimate:.3%} wrong ({rate.low:.3%} to "
        f"{rate.high:.3%}), {case.asked:,} asked; {case.probability:.3%} of all questions",
    }


def _brief(share: float) -> str:
    """Two digits that count, so that what is rare can be told from what is rarer."""
    return f"{100 * share:.2g}%" if share < 0.0995 else f"{share:.0%}"


def _inked(records: list[Record], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """The text of each cell, white where the cell is dark."""
    inks = {"black": [r for r in records if r["share"] < DARK]}
    inks["white"] = [r for r in records if r["share"] >= DARK]
    return [
        alt.Chart(data(cells)).mark_text(color=ink, fontSize=10).encode(x=x, y=y, text="_text:N")
        for ink, cells in inks.items()
        if cells
    ]


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
        "Columns: the base sum of the digit's own column. Rows: the state one column below (K "
        "kills a carry, P passes it on, G makes one), and + where the column two below makes a "
        "carry. Shade: how often the model gives another digit. * not Algorithm 1's digit.",
    )


def _key_panel(digit: LearnedDigit) -> AnyChart:
    records = [_key(digit.digit, entry) for entry in digit.entries]
    rows = sorted({record["below"] for record in records}, key=_below_order)
    columns = sorted({record["base add"] for record in records})
    x = names_across("base add", columns, labelAngle=0, domain=False)
    y = names_down("below", rows, domain=False)
    cells = alt.Chart(data(records)).mark_rect(stroke="#cccccc", strokeWidth=0.5)
    layers = [
        cells.encode(x=x, y=y, color=shade("gives another digit"), description=SAYS),
        *_inked(records, x, y),
    ]
    size = {"width": KEY_CELL * max(2, len(columns)), "height": KEY_CELL * len(rows)}
    drawn: AnyChart = alt.layer(*layers).properties(**size, title=digit.digit)
    return drawn


def _below_order(name: str) -> tuple[int, str]:
    return "KPG".find(name[:1]), name


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
        f"{entry.purity.estimate:.2%}{other}; Algorithm 1 has {entry.algorithm_1}",
    }


def agreement(finding: FaithfulnessFinding) -> Figure:
    """Every stated algorithm against the model: its answers, and its errors."""
    algorithms = [a for a in finding.agreement.algorithms if a.same_as is None]
    names = [_name(algorithm) for algorithm in algorithms]
    y = names_down("algorithm", names, padding=0.4, labelLimit=230)
    answers = alt.Chart(data([_answers(a) for a in algorithms])).encode(y=y)
    errors = alt.Chart(data([e for a in algorithms for e in _errors(a)])).encode(
        y=y.copy().axis(None), yOffset=alt.YOffset("kind:N", scale=alt.Scale(domain=WRONG))
    )
    share = alt.X("value:Q", scale=alt.Scale(domain=[0, 1]))
    shares: dict[str, Any] = {"format": "%", "values": [0, 0.25, 0.5, 0.75, 1]}
    size = {"width": 210, "height": 34 * len(names)}
    plain: dict[str, Any] = {"color": alt.value(BLACK)}
    charts = [
        with_interval(answers, share.title("whole answers alike").axis(**shares), plain),
        with_interval(
            errors,
            share.title("the model's errors").axis(**shares),
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


def _name(algorithm: AlgorithmAgreement) -> str:
    return f"{algorithm.name} (control)" if algorithm.control else algorithm.name


def _answers(algorithm: AlgorithmAgreement) -> Record:
    rate = algorithm.answer.agreement
    return {
        "algorithm": _name(algorithm),
        "kind": "whole answers alike",
        "value": rate.estimate,
        "low": rate.low,
        "high": rate.high,
        TIP: f"{_name(algorithm)}: same whole answer in {rate.estimate:.3%} ({rate.low:.3%} to "
        f"{rate.high:.3%})",
    }


def _errors(algorithm: AlgorithmAgreement) -> list[Record]:
    shares: Sequence[WeightedShare | None] = (
        algorithm.answer.also_wrong,
        algorithm.answer.same_wrong,
    )
    return [
        {
            "algorithm": _name(algorithm),
            "kind": kind,
            "value": share.estimate,
            "low": share.low,
            "high": share.high,
            TIP: f"{_name(algorithm)}: where the model fails it {kind} in {share.estimate:.1%} "
            f"({share.low:.1%} to {share.high:.1%})",
        }
        for kind, share in zip(WRONG, shares, strict=True)
        if share is not None
    ]
