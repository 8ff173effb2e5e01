"""Markdown in which whatever a text holds is shown as text, unless it is said to be Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SPECIAL = "\\|*_`[]"
"""Signs that would otherwise be markup."""


class Markdown(str):
    """Text that is Markdown already, and stands as it is."""


def as_text(text: str) -> str:
    """Text that Markdown leaves as it is."""
    if isinstance(text, Markdown):
        return text
    for sign in SPECIAL:
        text = text.replace(sign, f"\\{sign}")
    return text.replace("<", "&lt;").replace("\n", " ")


def link(text: str, target: str) -> Markdown:
    """A link to a page of the same results, or to a place on one."""
    return Markdown(f"[{as_text(text)}]({target})")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; nothing without rows."""
    lines = [" | ".join(map(as_text, row)) for row in rows]
    if not lines:
        return ""
    ruled = [" | ".join(head), " | ".join(["---"] * len(head)), *lines]
    return "\n".join(f"| {line} |" for line in ruled)
