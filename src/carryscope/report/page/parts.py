"""What a section of the report is made of. All of it is data: nothing here knows HTML.

Every text is plain text, whoever wrote it; the template escapes it. Between backticks it is
shown as code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from carryscope.report.figure import Figure
from carryscope.report.hover import as_csv


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str
    lead: bool = False
    """Whether it opens a section and is set larger."""


@dataclass(frozen=True)
class Note:
    """A remark that a reader should not miss."""

    kind: ClassVar[str] = "note"
    text: str
    title: str = ""


@dataclass(frozen=True)
class Number:
    """A number to be seen from afar."""

    value: str
    label: str
    detail: str = ""


@dataclass(frozen=True)
class Numbers:
    """Some of them side by side."""

    kind: ClassVar[str] = "numbers"
    numbers: Sequence[Number]


@dataclass(frozen=True)
class Sentences:
    """A numbered list of sentences."""

    kind: ClassVar[str] = "sentences"
    title: str
    sentences: Sequence[str]


@dataclass(frozen=True)
class Facts:
    """Terms and what they are."""

    kind: ClassVar[str] = "facts"
    facts: Mapping[str, str]


@dataclass(frozen=True)
class Commands:
    """Lines for a shell."""

    kind: ClassVar[str] = "commands"
    lines: Sequence[str]


@dataclass(frozen=True)
class Missing:
    """What was not run, or not to its end, and the command that does it."""

    kind: ClassVar[str] = "missing"
    what: str
    command: str
    why: str = ""
    state: str = "not run"


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure, or several views of one thing to switch between."""

    kind: ClassVar[str] = "picture"
    name: str
    """What its files are called when saved."""
    views: Mapping[str, Figure]
    """By the label of the switch; the first is shown."""
    paper: str = ""
    """What the paper has in its place, and where."""

    @property
    def first(self) -> Figure:
        return next(iter(self.views.values()))


@dataclass(frozen=True)
class Table:
    """A table. Cells are text; columns that hold numbers are set flush right."""

    kind: ClassVar[str] = "table"
    name: str
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    numeric: frozenset[int] = frozenset()
    paper: frozenset[int] = frozenset()
    """Columns that hold the paper's own values."""
    prose: frozenset[int] = frozenset()
    """Columns that hold sentences, and keep some width on a narrow screen."""

    @property
    def csv(self) -> str:
        """The table for a spreadsheet."""
        return as_csv([dict(zip(self.head, row, strict=True)) for row in self.rows])


@dataclass(frozen=True, eq=False)
class Folded:
    """Parts that are folded away until one asks for them."""

    kind: ClassVar[str] = "folded"
    title: str
    parts: Sequence[Part]


@dataclass(frozen=True, eq=False)
class Explorer:
    """The place of the explorer, whose markup is its own."""

    kind: ClassVar[str] = "explorer"
    html: str


Part = (
    Text
    | Note
    | Numbers
    | Sentences
    | Facts
    | Commands
    | Missing
    | Picture
    | Table
    | Folded
    | Explorer
)


@dataclass(frozen=True, eq=False)
class Section:
    """A section: what it is called in the text and in the table of contents."""

    id: str
    title: str
    short: str
    parts: Sequence[Part] = field(default_factory=tuple)


def pictures(parts: Sequence[Part]) -> Iterator[Picture]:
    """All pictures in some parts, folded ones too."""
    for part in parts:
        if isinstance(part, Picture):
            yield part
        elif isinstance(part, Folded):
            yield from pictures(part.parts)
