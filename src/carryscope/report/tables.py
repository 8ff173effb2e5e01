"""Tables. In: records, and what each column or cell shows of them. Out: `Table`.

A table is also a figure: its cells may be shaded, and say more on hover. A page
shows that, a terminal and Markdown show the text, and `figures/grids.py` draws it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


class Cell(str):
    """The text of a cell, and how it looks."""

    tone: str
    """`wrong`, or `faint` for what most readers pass over."""
    shade: float | None
    """How dark it is, from 0 to 1."""
    tip: str
    """What it says on hover."""
    link: str
    """What it opens: a page, as a relative address, or a place in the explorer."""

    def __new__(
        cls,
        text: str,
        *,
        tone: str = "",
        shade: float | None = None,
        tip: str = "",
        link: str = "",
    ) -> Cell:
        cell = super().__new__(cls, text)
        cell.tone, cell.shade, cell.tip, cell.link = tone, shade, tip, link
        return cell


Wrong, Faint = partial(Cell, tone="wrong"), partial(Cell, tone="faint")


@dataclass(frozen=True)
class Table:
    """A table. Cells are text; columns that hold numbers are set flush right."""

    name: str
    """What its file is called when saved."""
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    numeric: frozenset[int] = frozenset()
    prose: frozenset[int] = frozenset()
    """Columns that hold sentences, and keep some width on a narrow screen."""

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        items: Iterable[T],
        columns: Mapping[str, Callable[[T], str]],
        caption: str = "",
        *,
        text: Iterable[str] = (),
        prose: Iterable[str] = (),
    ) -> Table:
        """A row for each item. Columns hold numbers, but the first one and those in `text`."""
        head, words = list(columns), {*text, *prose}
        return cls(
            name,
            title,
            head,
            [[cell(item) for cell in columns.values()] for item in items],
            caption,
            frozenset(i for i, column in enumerate(head) if i and column not in words),
            frozenset(head.index(column) for column in prose),
        )

    @classmethod
    def crossed(
        cls,
        name: str,
        title: str,
        items: Iterable[T],
        corner: str,
        *,
        row: Callable[[T], str],
        column: Callable[[T], str],
        cell: Callable[[T], str],
        caption: str = "",
        order: Iterable[str] = (),
    ) -> Table:
        """A cell for each item, at the row and the column that it names, columns in some order."""
        cells = {(row(item), column(item)): cell(item) for item in items}
        rows = dict.fromkeys(place[0] for place in cells)
        columns = dict.fromkeys((*order, *(place[1] for place in cells)))
        filled = [[name, *(cells.get((name, one), "") for one in columns)] for name in rows]
        numeric = frozenset(range(1, 1 + len(columns)))
        return cls(name, title, [corner, *columns], filled, caption, numeric)

    @property
    def csv(self) -> str:
        """The table for a spreadsheet."""
        return as_csv([dict(zip(self.head, row, strict=True)) for row in self.rows])


_FORMULA = re.compile(r"[=+\-@].*[(|!]")


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Records as CSV; what a record does not have stays empty."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows([{name: _cell(value) for name, value in row.items()} for row in rows])
    return text.getvalue()


def _cell(value: Any) -> Any:
    """A quote before text that a spreadsheet would run as a formula.

    Our own names, such as "=" and "445+555", are none.
    """
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
