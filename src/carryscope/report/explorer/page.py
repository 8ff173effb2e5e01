"""The explorer as a page of its own, or as parts that another page embeds."""

from __future__ import annotations

from dataclasses import dataclass

from carryscope.dissection.findings import Dissection
from carryscope.model.transformer import Transformer


@dataclass(frozen=True)
class ExplorerParts:
    """What a page needs to hold an explorer; nothing in it reaches outside its root element."""

    css: str
    """Rules, all of them below `.carryscope-explorer`: for a style element."""
    html: str
    """One element, with the weights in it: for the body."""
    script: str
    """One function that calls itself: for a script element after the html."""


def explorer_parts(model: Transformer, name: str, dissection: Dissection | None) -> ExplorerParts:
    """The explorer of a model; `name` is text, and what the dissection says is too."""
    return ExplorerParts(css="", html='<div class="carryscope-explorer"></div>', script="")
