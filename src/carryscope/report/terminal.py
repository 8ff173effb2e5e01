"""Parts in a terminal. In: parts and a console of rich. Out: nothing; they are printed.

What it means comes first; codes stand behind, in grey. What a page folds away is left out, unless
`verbose`. A table that is too wide is split: each piece repeats the first column.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text as Line

from carryscope.core.words import visible
from carryscope.report.parts import Commands, Facts, Part, Section, Text, lowered
from carryscope.report.tables import Table

STYLES = {"wrong": "bold dark_orange3", "faint": "bright_black"}
"""Orange is for what is wrong, and for nothing else."""

HEAD_WIDTH, PROSE_WIDTH = 14, 24
"""Columns that the words above a column, and the sentences in one, get at least."""

GAP = 2
"""Columns between two columns of a table."""


def show(parts: Iterable[Part], console: Console, *, verbose: bool = False) -> None:
    """Print parts; with `verbose` also what a page folds away."""
    for part in (simple for one in parts for simple in lowered(one)):
        if isinstance(part, Text):
            claim, stop, rest = part.text.partition(". ") if part.lead else ("", "", part.text)
            console.print(_styled(claim + stop, "bold") + _styled(rest), end="\n\n")
        elif isinstance(part, Facts):
            _facts(part.facts, console)
        elif isinstance(part, Commands):
            for line in part.lines:
                console.print(f"  {line}", markup=False, soft_wrap=True)
            console.print()
        elif isinstance(part, Table):
            _table(part, console)
        elif verbose or isinstance(part, Section):
            console.print(_styled(part.title, "bold underline"), end="\n\n")
            show(part.parts, console, verbose=verbose)


def _styled(text: str, style: str = "") -> Line:
    """Text that is never taken for markup; what stands between backticks is grey."""
    line = Line(style=style)
    for i, piece in enumerate(re.split(r"`([^`]+)`", visible(text))):
        line.append(piece, STYLES["faint"] if i % 2 else style or None)
    return line


def _facts(facts: Mapping[str, str], console: Console) -> None:
    """Short terms on the left, what they are on the right."""
    grid = Grid.grid(padding=(0, GAP, 0, 0))
    grid.add_column(no_wrap=max(map(len, facts), default=0) < console.width // 3)
    grid.add_column(ratio=1)
    for term, text in facts.items():
        grid.add_row(_styled(term, "bold"), _styled(text))
    console.print(Padding(grid, (0, 0, 1, 0)))


def _table(table: Table, console: Console) -> None:
    if not table.rows:
        return
    if table.title:
        console.print(_styled(table.title, "bold"))
    for columns in _pieces(table, console.width):
        grid = Grid(box=SIMPLE_HEAD, padding=(0, GAP - 1, 0, 0), pad_edge=False, show_edge=False)
        heads = {i: _head(table, i) for i in columns}
        lines = max(map(len, heads.values()))
        for i, head in heads.items():
            words = "\n".join([""] * (lines - len(head)) + head)
            grid.add_column(
                Line(words),
                justify="right" if i in table.numeric else "left",
                no_wrap=i not in table.prose,
            )
        for row in table.rows:
            tones = [STYLES.get(getattr(row[i], "tone", ""), "") for i in columns]
            grid.add_row(*(_styled(row[i], tone) for i, tone in zip(columns, tones, strict=True)))
        console.print(grid)
    if table.caption:
        console.print(_styled(table.caption, STYLES["faint"]))
    console.print()


def _head(table: Table, column: int) -> list[str]:
    """The words above a column, in lines no wider than they must be."""
    return textwrap.wrap(table.head[column], max(HEAD_WIDTH, _cells_width(table, column)))


def _cells_width(table: Table, column: int) -> int:
    widest = max(len(row[column].replace("`", "")) for row in table.rows)
    return min(widest, PROSE_WIDTH) if column in table.prose else widest


def _pieces(table: Table, width: int) -> Iterator[list[int]]:
    """Columns that fit side by side, each piece with the first column."""
    widths = [
        max([_cells_width(table, i), *map(len, _head(table, i))]) + GAP
        for i in range(len(table.head))
    ]
    piece, used = [0], widths[0]
    for i in range(1, len(widths)):
        if used + widths[i] > width and len(piece) > 1:
            yield piece
            piece, used = [0], widths[0]
        piece.append(i)
        used += widths[i]
    yield piece
