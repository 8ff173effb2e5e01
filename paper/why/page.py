"""The study of heads and data as one page and one figure.

In: a `WhyStudy`. Out: docs/why-it-fails.md and docs/why-it-fails.svg.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from statistics import fmean, median

import altair as alt

from carryscope.core.evidence import Share
from carryscope.core.words import percent, with_interval
from carryscope.report.figures.drawing import data
from carryscope.report.figures.figure import Figure
from carryscope.report.markdown import markdown
from carryscope.report.tables import Table
from carryscope.verification.sight import SightFinding
from paper.why.study import DATA, HEADS, RECIPE, SEEDS, Cell, WhyStudy

ORANGE = "#d55e00"
"""Wrong, here as everywhere."""

FAILS, BLIND = 0.01, 0.5
"""A digit fails at a look-ahead if more than 1 % of such digits are wrong. It is blind there if no
head reads the deciding column in more than half of them. Both were fixed before the training."""

Kind = tuple[str, int, str, int]
"""Data, heads, answer digit, nines below."""


def why_figure(found: WhyStudy) -> Figure:
    """Wrong digits by look-ahead, for every number of heads and kind of data."""
    rows = [
        {
            "data": kind,
            "heads": f"{heads} heads" if heads > 1 else "1 head",
            "digit": digit,
            "nines": depth,
            "wrong": fmean(wrong for wrong, _ in seen),
            "blind": fmean(blind for _, blind in seen) > BLIND,
        }
        for (kind, heads, digit, depth), seen in _by_kind(found).items()
    ]
    base = alt.Chart(data(rows)).encode(
        x=alt.X("digit:N", title=None, sort="descending", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("nines:O", title="nines below"),
    )
    colour = alt.Color(
        "wrong:Q",
        title="wrong",
        scale=alt.Scale(domain=[0, 0.5], range=["#ffffff", ORANGE], clamp=True),
        legend=alt.Legend(format="%"),
    )
    cells = base.mark_rect(stroke="#dddddd").encode(color=colour)
    dots = base.mark_point(color="black", filled=True, size=14).transform_filter("datum.blind")
    chart = alt.layer(cells, dots).properties(width=84, height=70)
    heads = [f"{h} heads" if h > 1 else "1 head" for h in HEADS]
    facets = chart.facet(
        column=alt.Column("heads:N", title=None, sort=heads),
        row=alt.Row("data:N", title=None, sort=list(DATA)),
    )
    return Figure(
        facets,
        "A digit fails where no head reads the column that decides it",
        "A grid: one to six heads across, three kinds of training data down. In each panel the "
        "answer digits A5 to A1 across and the nines below them down. Orange cells, wrong digits, "
        "lie where dots say that no head reads the deciding column.",
        "Colour: wrong answer digits, mean over three seeds. Dot: in most such questions no head "
        "reads the column in which the carry is decided.",
    )


def why_page(found: WhyStudy, figure: str) -> str:
    """The page: the claim, the figure, the tables, and the command."""
    cells = found.cells
    right = [cell for cell in cells if _none_wrong(cell)]
    lines = [
        "# Why it fails: heads, not data",
        "",
        _claim(found),
        "",
        f"![Wrong digits by heads, data and nines below]({figure})",
        "",
        "A *nine* is a column that sums to 9: it passes a carry on. The *deciding* column of a "
        "digit is the first one below it that is no nine. A head *reads* a column if the "
        "column's two digits get more than half of its attention.",
        "",
        markdown([_wrong_table(cells), _prediction_table(cells)]),
        "",
        f"Of {len(cells)} models, {len(right)} got no tested question wrong: "
        f"{_listed_cells(right)}.",
        "",
        "## How this was measured",
        "",
        f"`python -m paper.why` trains {len(HEADS)} by {len(DATA)} by {len(SEEDS)} models of one "
        f"layer ({RECIPE.steps:,} steps of {RECIPE.batch} questions), measures them, and writes "
        "this page from `paper/results/why.json`. The prediction and its two thresholds were "
        f"committed before the models were trained. Machine: {found.machine}.",
        "",
    ]
    return "\n".join(lines)


def _by_kind(found: WhyStudy) -> dict[Kind, list[tuple[float, float]]]:
    """The wrong share and the blind share of every kind of digit, seed by seed."""
    kinds: dict[Kind, list[tuple[float, float]]] = defaultdict(list)
    for cell in found.cells:
        for one in cell.sight.cells:
            seen = (one.wrong.estimate, 1 - one.read.estimate)
            kinds[cell.data, cell.heads, one.digit, one.depth].append(seen)
    return kinds


def agreement(cells: Iterable[Cell]) -> dict[tuple[bool, bool], int]:
    """How many (digit, look-ahead) are (blind, failing), over all models."""
    counts: dict[tuple[bool, bool], int] = defaultdict(int)
    for cell in cells:
        for one in cell.sight.cells:
            counts[1 - one.read.estimate > BLIND, one.wrong.estimate > FAILS] += 1
    return counts


def _claim(found: WhyStudy) -> str:
    counts = agreement(found.cells)
    failing = Share.measured(counts[True, True], counts[True, True] + counts[False, True])
    blind = Share.measured(counts[True, True], counts[True, True] + counts[True, False])
    return (
        "We trained models with one to six heads on three kinds of data and looked at every "
        "answer digit at every look-ahead. **Where a digit fails, no head reads the column that "
        f"decides it in {with_interval(failing)} of cases ({failing.count} of {failing.of}). "
        f"Where no head reads it, the digit fails in {with_interval(blind)} of cases "
        f"({blind.count} of {blind.of}).** More cascades in the data change what the heads read, "
        "but they cannot make three heads read five columns."
    )


def _wrong_table(cells: list[Cell]) -> Table:
    def at(heads: int, data: str) -> str:
        rates = [c.wrong.estimate for c in cells if (c.heads, c.data) == (heads, data)]
        return percent(median(rates)) if rates else ""

    columns: dict[str, Callable[[int], str]] = {"heads": str}
    columns |= {kind: partial(at, data=kind) for kind in DATA}
    return Table.of(
        "why-wrong",
        "Wrong answers over all questions, median of three seeds",
        HEADS,
        columns,
    )


def _prediction_table(cells: list[Cell]) -> Table:
    def column(read: Callable[[SightFinding], object]) -> Callable[[str], str]:
        def shown(data: str) -> str:
            shares = [read(c.sight) for c in cells if c.data == data]
            known = [share.estimate for share in shares if share is not None]  # type: ignore[attr-defined]
            return percent(median(known)) if known else "none"

        return shown

    return Table.of(
        "why-prediction",
        "Question by question: blind digits and wrong ones, median over the models",
        list(DATA),
        {
            "data": str,
            "wrong digits that are blind": column(lambda s: s.blind_if_wrong),
            "blind digits that are wrong": column(lambda s: s.wrong_if_blind),
            "read digits that are wrong": column(lambda s: s.wrong_if_read),
        },
        "A blind digit is right whenever the carry it assumes is the true one.",
    )


def _none_wrong(cell: Cell) -> bool:
    return cell.wrong.estimate == 0


def _listed_cells(cells: list[Cell]) -> str:
    counted: dict[tuple[int, str], int] = defaultdict(int)
    for cell in cells:
        counted[cell.heads, cell.data] += 1
    words = [f"{heads} heads, {data}: {n}" for (heads, data), n in sorted(counted.items())]
    return "; ".join(words) or "none"
