"""The paper's tables and ours, in Markdown.

In: the shelves of runs by name. Out: `tables.md`: the loss by number of digits over all runs, then
for each run the tables of its report that the paper has too.
"""

from __future__ import annotations

from collections.abc import Mapping

from carryscope.core.words import loss
from carryscope.report.markdown import as_text, table
from carryscope.report.paper import paper_cell
from carryscope.report.parts import Note, Table, flat
from carryscope.report.sections.how import dissection_sections
from carryscope.report.sections.training import training_section
from carryscope.report.shelf import Shelf
from carryscope.training.summary import LAST_STEPS

TABLES_PAGE = "tables.md"

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


def tables_markdown(shelves: Mapping[str, Shelf], *, note: str = "") -> str:
    """The page."""
    parts = [
        "# The paper's tables and ours",
        note,
        "A column `paper` has the paper's values for models with as many digits. Those models have "
        "three heads, and their losses are those after 5,000 steps.",
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
    note = "Teacher-forced. Paper: Tab. 1, a final training loss after 5,000 steps of 64 questions."
    return f"## Final loss by number of digits\n\n{table(head, rows)}\n\n{note}"


def _of_run(name: str, shelf: Shelf) -> str:
    training = training_section(shelf)
    sections = [*([training] if training else []), *dissection_sections(shelf.dissection)]
    shown = [f"## {as_text(name)}"]
    for part in flat(sections):
        if isinstance(part, Table) and part.name in TABLES:
            shown.append(_table(part))
        elif isinstance(part, Note) and part.title:
            shown.append(f"**{as_text(part.title)}.** {as_text(part.text)}")
    return "\n\n".join(shown) if len(shown) > 1 else ""


def _table(part: Table) -> str:
    caption = f"\n\n{as_text(part.caption)}" if part.caption else ""
    return f"### {as_text(part.title)}\n\n{table(part.head, part.rows)}{caption}"
