"""The study of heads and data as one page and one figure.

In: the records of the study. Out: docs/why-it-fails.md and docs/why-it-fails.svg.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean, median

from carryscope.core.evidence import Mean, Share
from carryscope.core.storage import write_bytes
from carryscope.core.words import Interval, counted, percent, with_interval
from carryscope.report.figures.figure import Figure
from carryscope.report.figures.grids import panelled
from carryscope.report.markdown import markdown
from carryscope.report.tables import Cell, Table
from carryscope.verification.estimate import Rate
from carryscope.verification.sight import SightCell, SightFinding
from paper.study import page
from paper.why import DATA, HEADS, RECIPE, SHIPPED, WhyRecord

PAGE = "why-it-fails"

DARKEST = 0.5
"""The share of wrong digits from which on a cell is as dark as it gets."""

PAPERS = "the paper's"

FAILS, BLIND = 0.01, 0.5
"""A digit fails at a look-ahead if more than 1 % of such digits are wrong. It is blind there if no
head reads the deciding column in more than half of them. Both were fixed before the training."""

QUESTIONS: dict[str, Callable[[SightFinding], Interval | None]] = {
    "wrong digits that are blind": lambda sight: sight.blind_if_wrong,
    "blind digits that are wrong": lambda sight: sight.wrong_if_blind,
    "read digits that are wrong": lambda sight: sight.wrong_if_read,
}
"""The prediction, tested question by question."""


def is_blind(cell: SightCell) -> bool:
    """Whether no head reads the deciding column of most such digits."""
    return 1 - cell.read.estimate > BLIND


def write_why(records: Sequence[WhyRecord], directory: Path) -> Path:
    """Write the page and its figure."""
    figure = why_figure(records).save(directory / f"{PAGE}.svg")
    file = directory / f"{PAGE}.md"
    write_bytes(file, why_page(records, figure.name).encode())
    return file


def why_figure(records: Sequence[WhyRecord]) -> Figure:
    """Wrong digits by look-ahead, for every number of heads and kind of data."""
    kinds = defaultdict(list)
    for one in crossed(records):
        for cell in one.sight.cells:
            kinds[one.data, one.heads, cell.digit, cell.depth].append(cell)

    def shown(digit: str, depth: int, kind: str, heads: int) -> str:
        cells = kinds.get((kind, heads, digit, depth), [])
        if not cells:
            return ""
        wrong = fmean(cell.wrong.estimate for cell in cells)
        dot = "•" if 2 * sum(map(is_blind, cells)) > len(cells) else ""
        return Cell(dot, tone="wrong", shade=min(1.0, wrong / DARKEST), tip=percent(wrong))

    digits = sorted({digit for _, _, digit, _ in kinds}, reverse=True)
    depths = sorted({depth for *_, depth in kinds})
    panels = [
        Table(
            "",
            _heads(heads),
            ["nines", *digits],
            [[_nines(n, kind), *(shown(d, n, kind, heads) for d in digits)] for n in depths],
        )
        for kind, heads in product(DATA, HEADS)
    ]
    return Figure(
        panelled(panels, across=len(HEADS)),
        "A digit fails where no head reads the column that decides it",
        "A grid: one to six heads across, three kinds of training data down. In each panel the "
        "answer digits A5 to A1 across and the nines below them down. Orange cells, wrong digits, "
        "lie where dots say that no head reads the deciding column.",
        "Across: answer digits, for one to six heads. Down: nines below the digit, for each kind "
        "of training data. Orange: wrong digits, mean over three seeds. Dot: in most seeds no "
        "head reads the column that decides the carry.",
    )


def _nines(depth: int, kind: str) -> str:
    """The name of a row of a panel. The first also names the data."""
    return f"{kind}: 0 nines" if depth == 0 else counted(depth, "nine")


def why_page(records: Sequence[WhyRecord], figure: str) -> str:
    """The page: the claim, the figure, the tables, and the command."""
    cells = crossed(records)
    tables = [
        _by_heads("Wrong answers, median of three seeds", cells, _wrong),
        _by_heads("Pairs of digit and look-ahead that are read, median", cells, _read),
    ]
    return page(
        f"{PAGE}.md",
        claim=_claim(cells),
        data_or_heads=_data_or_heads(cells),
        figure=figure,
        by_heads=markdown(tables),
        right=_none_wrong(cells),
        tested=markdown([_tested(records)]),
        recipe=RECIPE,
        machine=cells[0].machine,
    )


def _none_wrong(records: Sequence[WhyRecord]) -> str:
    right = Counter((one.heads, one.data) for one in records if one.wrong.estimate == 0)
    where = [f"{_heads(heads)}, {kind}: {n}" for (heads, kind), n in sorted(right.items())]
    found = f"Of {len(records)} models, {right.total()} got no tested question wrong"
    return f"{found}{': ' if where else ''}{'; '.join(where)}."


def crossed(records: Sequence[WhyRecord]) -> list[WhyRecord]:
    """The models that cross heads and data."""
    return [one for one in records if one.data in DATA]


def agreement(records: Sequence[WhyRecord]) -> Counter[tuple[bool, bool]]:
    """How many pairs of digit and look-ahead are (blind, failing), over all models."""
    cells = [cell for one in records for cell in one.sight.cells]
    return Counter((is_blind(cell), cell.wrong.estimate > FAILS) for cell in cells)


def _heads(heads: int) -> str:
    return f"{heads} heads" if heads > 1 else "1 head"


def _claim(records: Sequence[WhyRecord]) -> str:
    counts = agreement(records)
    both = counts[True, True]
    failing = Share.measured(both, both + counts[False, True])
    blind = Share.measured(both, both + counts[True, False])
    return (
        "We trained models with one to six heads on three kinds of data and looked at every "
        "answer digit at every look-ahead. **Where a digit fails, no head reads the column that "
        f"decides it in {with_interval(failing)} of cases ({failing.count} of {failing.of}). "
        f"Where no head reads it, the digit fails in {with_interval(blind)} of cases "
        f"({blind.count} of {blind.of}).**"
    )


def _data_or_heads(records: Sequence[WhyRecord]) -> str:
    """Where heads help and where data do, from the table of wrong answers."""
    at = {pair: _wrong(some) for pair, some in _groups(records).items()}
    return (
        f"Up to four heads, more heads help and more cascades do not: on uniform data wrong "
        f"answers fall from {at[1, 'uniform']} to {at[4, 'uniform']}, and models trained on "
        f"cascades are worse. With five and six heads the data decide. On uniform data the fifth "
        f"and sixth head change nothing ({at[6, 'uniform']} with six), and no head reads "
        f"further columns: such carries are rare there. On cascades they remove almost all errors "
        f"({at[5, 'cascades']} with five heads, {at[6, 'cascades']} with six). On the paper's data "
        f"six heads read every deciding column and still fail ({at[6, PAPERS]}): reading "
        f"the column is needed, and enough training on such questions too."
    )


def _groups(records: Sequence[WhyRecord]) -> dict[tuple[int, str], list[WhyRecord]]:
    """The seeds of every number of heads and kind of data."""
    pairs = product(HEADS, DATA)
    return {(h, kind): [r for r in records if (r.heads, r.data) == (h, kind)] for h, kind in pairs}


def _by_heads(
    title: str, records: Sequence[WhyRecord], cell: Callable[[list[WhyRecord]], str]
) -> Table:
    """A row for each number of heads, a column for each kind of data."""
    groups = _groups(records)
    rows = [[str(heads), *(cell(groups[heads, kind]) for kind in DATA)] for heads in HEADS]
    return Table("by-heads", title, ["heads", *DATA], rows)


def _wrong(seeds: Sequence[WhyRecord]) -> str:
    share = median(one.wrong.estimate for one in seeds)
    return percent(share) if share else "none found"


def _read(seeds: Sequence[WhyRecord]) -> str:
    pairs = len(seeds[0].sight.cells)
    return f"{median(pairs - sum(map(is_blind, one.sight.cells)) for one in seeds)} of {pairs}"


def _tested(records: Sequence[WhyRecord]) -> Table:
    """The prediction question by question: a row for each kind of data, and each known model."""
    groups: dict[str, list[WhyRecord]] = defaultdict(list)
    for one in sorted(records, key=lambda one: [*DATA, *SHIPPED, "paper-5"].index(one.data)):
        groups[f"paper-5, seed {one.seed}" if one.data == "paper-5" else one.data].append(one)
    rows = [
        [name, str(len(some)), *(_share(some, read) for read in QUESTIONS.values())]
        for name, some in groups.items()
    ]
    return Table("tested", "Question by question", ["data or model", "models", *QUESTIONS], rows)


def _share(records: Sequence[WhyRecord], read: Callable[[SightFinding], Interval | None]) -> str:
    """The share in one model, or the mean over models that have it."""
    found = [share for one in records if (share := read(one.sight)) is not None]
    if len(found) < 2:
        return with_interval(found[0]) if found else "none"
    mean = Mean.measured([share.estimate for share in found])
    return with_interval(Rate(mean.estimate, max(0.0, mean.low), min(1.0, mean.high)))
