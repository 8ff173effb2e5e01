"""What a finding is made of for a reader: a claim, a table, a figure, a fold. All of it is data.

`findings.parts_of` makes parts of a finding; `page`, `markdown` and `terminal` render them.

Every text is plain text, whoever wrote it, and the renderers escape it. What stands between
backticks is code: in a terminal it is grey.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from carryscope.report.tables import Table


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    lead: bool = False
    """Whether it is the claim that opens a section."""


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


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure that is no table; drawn when it is shown."""

    name: str
    """What its files are called when saved."""
    draw: Callable[[], Any]
    """Draws a `Figure`."""
    instead: Table | None = None
    """What stands for it where there are no pictures."""

    @cached_property
    def figure(self) -> Any:
        return self.draw()


@dataclass(frozen=True, eq=False)
class Folded:
    """Parts that are folded away until a reader opens them."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True, eq=False)
class Explorer:
    """The models that run in the page, one below the other."""

    subjects: Sequence[Any]


@dataclass(frozen=True, eq=False)
class Section:
    """Parts under a title, with a name for the table of contents."""

    id: str
    title: str
    short: str
    parts: Sequence[Part] = ()
    folded: bool = False
    """Whether a page folds it: its title then is its claim."""


def evidence(
    name: str, short: str, statement: str, parts: Iterable[Part], claim: str = ""
) -> Section:
    """A folded section whose title is its claim: by default the first words of its statement."""
    if not claim:
        found = re.match(r"(.*?)[.:](?: |$)(.*)", statement, flags=re.DOTALL)
        claim, statement = found.groups() if found else (statement, "")
    lead = [Text(f"{statement[:1].upper()}{statement[1:]}", lead=True)] if statement else []
    return Section(name, claim, short, [*lead, *parts], folded=True)


Fold = Folded | Section
"""Parts that hold others."""

Simple = Text | Facts | Commands | Table | Fold
"""Parts that every renderer knows how to write as text."""

Part = Simple | Sentences | Absent | Picture | Explorer


def lowered(part: Part) -> list[Simple]:
    """A part as simpler ones, for renderers of text. A picture without a table is left out."""
    simple: list[Simple] = []
    match part:
        case Sentences():
            numbered = {f"{i}.": sentence for i, sentence in enumerate(part.sentences, start=1)}
            simple += [Text(part.title, lead=True), Facts(numbered)]
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
