"""The paper's tables beside ours, in Markdown.

In: the shelves of runs by name. Out: `tables.md`: the loss by number of digits over all runs, then
for each run the tables of its report that stand beside one of the paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from carryscope.report.page.inside import attention_section, heads_section, rows_section

from carryscope.core.storage import write_bytes
from carryscope.core.words import loss
from carryscope.report.markdown import as_text, table
from carryscope.report.paper import paper_cell
from carryscope.report.parts import Note, Section, Table
from carryscope.report.sections.training import training_section
from carryscope.report.shelf import Shelf
from carryscope.training.summary import LAST_STEPS

TABLES_PAGE = "tables.md"

SECTIONS: tuple[Callable[[Shelf], Section | None], ...] = (
    training_section,
    rows_section,
    heads_section,
    attention_section,
)
"""The sections of a report whose tables stand beside the paper's."""

TABLES = (
    "final-loss",
    "mix",
    "row-table",
    "row-patterns",
    "head-table",
    "class-table",
    "roles",
)
"""Those tables: Tab. 2, the mix, Tab. 4, 5, 6, 3, and what each head reads."""


def write_tables(shelves: Mapping[str, Shelf], directory: Path, *, note: str = "") -> Path:
    """Write the tables of all runs; a note stands above them."""
    path = directory / TABLES_PAGE
    write_bytes(path, tables_markdown(shelves, note=note).encode())
    return path


def tables_markdown(shelves: Mapping[str, Shelf], *, note: str = "") -> str:
    """The page."""
    parts = [
        "# The paper's tables beside ours",
        note,
        "Where a table has a column `paper`, its values are the paper's, shown beside models with "
        "as many digits; the paper's have three heads, and its losses are those after 5,000 steps.",
        _by_digits(shelves),
        *(_of_run(name, shelf) for name, shelf in shelves.items()),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _by_digits(shelves: Mapping[str, Shelf]) -> str:
    """Tab. 1: the final loss by the number of digits."""
    rows = [
        [
            name,
            f"{shelf.config.model.digits}",
            f"{shelf.config.model.heads}",
            f"{shelf.training.steps:,}",
            loss(shelf.training.held_out_loss),
            f"{shelf.training.last_steps_loss:.4f}",
            paper_cell(f"loss.{shelf.config.model.digits}-digits", shelf.config.model),
        ]
        for name, shelf in shelves.items()
        if shelf.training is not None
    ]
    if not rows:
        return ""
    last = f"last {LAST_STEPS} steps"
    head = ["run", "digits", "heads", "steps", "held-out loss", last, "paper"]
    told = "Teacher-forced. Paper: Tab. 1, a final training loss after 5,000 steps of 64 questions."
    return f"## Final loss by number of digits\n\n{table(head, rows)}\n\n{told}"


def _of_run(name: str, shelf: Shelf) -> str:
    found = [section for make in SECTIONS if (section := make(shelf)) is not None]
    parts = [part for section in found for part in section.parts]
    told = [f"## {as_text(name)}"]
    for part in parts:
        if isinstance(part, Table) and part.name in TABLES:
            told.append(_table(part))
        elif isinstance(part, Note) and part.title:
            told.append(f"**{as_text(part.title)}.** {as_text(part.text)}")
    return "\n\n".join(told) if len(told) > 1 else ""


def _table(part: Table) -> str:
    caption = f"\n\n{as_text(part.caption)}" if part.caption else ""
    return f"### {as_text(part.title)}\n\n{table(part.head, part.rows)}{caption}"
