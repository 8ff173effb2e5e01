"""Parts as Markdown. In: parts. Out: text.

Whatever a text holds is shown as text, unless it is a `Markdown` string. Code between backticks
stays code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from carryscope.report.parts import Commands, Facts, Part, Simple, Text, lowered
from carryscope.report.tables import Table

SPECIAL = "\\|*_`[]"
"""Signs that would otherwise be markup."""


class Markdown(str):
    """Text that is Markdown already."""


def as_text(text: str) -> str:
    """Text in which nothing is markup."""
    if isinstance(text, Markdown):
        return text
    for sign in SPECIAL:
        text = text.replace(sign, f"\\{sign}")
    return text.replace("<", "&lt;").replace("\n", " ")


def with_code(text: str) -> str:
    """The same, with what stands between backticks as code."""
    if isinstance(text, Markdown):
        return text
    pieces = re.split(r"`([^`|<\n]+)`", text)
    return "".join(f"`{piece}`" if i % 2 else as_text(piece) for i, piece in enumerate(pieces))


def link(text: str, target: str) -> Markdown:
    """A link to a page of the same results, or to a place on one."""
    return Markdown(f"[{as_text(text)}]({target})")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; nothing without rows."""
    lines = [" | ".join(map(with_code, row)) for row in rows]
    if not lines:
        return ""
    ruled = [" | ".join(map(as_text, head)), " | ".join(["---"] * len(head)), *lines]
    return "\n".join(f"| {line} |" for line in ruled)


def markdown(parts: Iterable[Part], *, level: int = 2) -> str:
    """Parts as a text of Markdown; headings are of this level. Pictures are left out."""
    simple = [part for one in parts for part in lowered(one)]
    written = [_written(part, level) for part in simple]
    return "\n\n".join(text for text in written if text)


def _written(part: Simple, level: int) -> str:
    if isinstance(part, Text):
        claim, stop, rest = part.text.partition(". ") if part.lead else ("", "", part.text)
        return (f"**{with_code(claim)}{stop.strip()}** " if claim else "") + with_code(rest)
    if isinstance(part, Facts):
        return "\n".join(f"- **{as_text(k)}** {with_code(v)}" for k, v in part.facts.items())
    if isinstance(part, Commands):
        return "\n".join(["```", *part.lines, "```"])
    if isinstance(part, Table):
        title = f"{'#' * level} {as_text(part.title)}" if part.title else ""
        pieces = [title, table(part.head, part.rows), with_code(part.caption)]
        return "\n\n".join(filter(None, pieces))
    return f"{'#' * level} {as_text(part.title)}\n\n{markdown(part.parts, level=level + 1)}"
