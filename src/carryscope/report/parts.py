"""What a finding is made of for a reader: a claim, a table, a figure, a fold. All of it is data.

`findings.parts_of` makes parts of a finding; `page`, `markdown` and `terminal` render them.

Every text is plain text, whoever wrote it, and the renderers escape it. What stands between
backticks is code: in a terminal it is grey.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Cell(str):
    """The text of a cell, and how it looks."""

    tone: str
    """`wrong`, or `faint` for what most readers pass over."""
    shade: float | None
    """How dark it is, from 0 to 1."""
    tip: str
    """What it says to those who point at it."""

    def __new__(
        cls, text: str, *, tone: str = "", shade: float | None = None, tip: str = ""
    ) -> Cell:
        cell = super().__new__(cls, text)
        cell.tone, cell.shade, cell.tip = tone, shade, tip
        return cell


Wrong, Faint = partial(Cell, tone="wrong"), partial(Cell, tone="faint")


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    lead: bool = False
    """Whether it is the claim that opens a section."""


@dataclass(frozen=True)
class Note:
    """A remark that a reader should not miss."""

    text: str
    title: str = ""


class KeyNumber(NamedTuple):
    """A large number with its label."""

    value: str
    label: str
    detail: str = ""


@dataclass(frozen=True)
class Numbers:
    """Some of them side by side."""

    numbers: Sequence[KeyNumber]


@dataclass(frozen=True)
class Sentences:
    """A numbered list of sentences."""

    title: str
    sentences: Sequence[str]


@dataclass(frozen=True)
class Facts:
    """Terms and what they are."""

    facts: Mapping[str, str]


@dataclass(frozen=True)
class Commands:
    """Lines for a shell."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Absent:
    """A stage without a usable finding, and the command that makes one."""

    what: str
    """What is missing: "the measured risk"."""
    command: str = ""
    why: str = ""
    """Why what is there cannot be used."""
    state: str = "not run"

    @property
    def title(self) -> str:
        return f"{self.what[:1].upper()}{self.what[1:]}: {self.state}."


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
    paper: frozenset[int] = frozenset()
    """Columns that hold the paper's own values."""
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
            frozenset(i for i, column in enumerate(head) if column.startswith("paper")),
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
    ) -> Table:
        """A cell for each item, at the row and the column that it names."""
        cells = {(row(item), column(item)): cell(item) for item in items}
        rows = dict.fromkeys(place[0] for place in cells)
        columns = dict.fromkeys(place[1] for place in cells)
        filled = [[name, *(cells.get((name, one), "") for one in columns)] for name in rows]
        numeric = frozenset(range(1, 1 + len(columns)))
        return cls(name, title, [corner, *columns], filled, caption, numeric)

    @property
    def csv(self) -> str:
        """The table for a spreadsheet."""
        return as_csv([dict(zip(self.head, row, strict=True)) for row in self.rows])


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure that is no table; drawn when it is shown."""

    name: str
    """What its files are called when saved."""
    draw: Callable[[], Any]
    """Draws a `Figure`."""
    paper: str = ""
    """What the paper has in its place, and where."""
    instead: Table | None = None
    """What stands for it where there are no pictures."""

    @cached_property
    def figure(self) -> Any:
        return self.draw()


@dataclass(frozen=True, eq=False)
class More:
    """Evidence that a page shows at once, and a terminal or a notebook on demand."""

    parts: Sequence[Part]


@dataclass(frozen=True, eq=False)
class Folded:
    """Parts that are folded away until a reader opens them."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True, eq=False)
class Explorer:
    """The place of the explorer, whose markup is its own."""

    html: str


@dataclass(frozen=True, eq=False)
class Section:
    """Parts under a title, with a name for the table of contents."""

    id: str
    title: str
    short: str
    parts: Sequence[Part] = ()


Fold = More | Folded | Section
"""Parts that hold others."""

Simple = Text | Facts | Commands | Table | Fold
"""Parts that every renderer knows how to write as text."""

Part = Simple | Note | Numbers | Sentences | Absent | Picture | Explorer


def lowered(part: Part) -> list[Simple]:
    """A part as simpler ones, for renderers of text. A picture without a table is left out."""
    simple: list[Simple] = []
    match part:
        case Note():
            title = f"{part.title}. " if part.title else ""
            simple.append(Text(f"{title}{part.text}", lead=bool(title)))
        case Numbers():
            simple.append(Facts({n.value: f"{n.label} `({n.detail})`" for n in part.numbers}))
        case Sentences():
            told = {f"{i}.": sentence for i, sentence in enumerate(part.sentences, start=1)}
            simple += [Text(part.title, lead=True), Facts(told)]
        case Absent():
            simple.append(Text(f"{part.title} {part.why}".strip(), lead=True))
            simple += [Commands([part.command])] if part.command else []
        case Picture():
            simple += [part.instead] if part.instead is not None else []
        case Explorer():
            pass
        case _:
            simple.append(part)
    return simple


def flat(parts: Iterable[Part]) -> Iterator[Part]:
    """All parts, those inside others too."""
    for part in parts:
        yield part
        if isinstance(part, Fold):
            yield from flat(part.parts)


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

    Our own row names, such as "= → A5", are none.
    """
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
