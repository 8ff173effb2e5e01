"""The paper's tables and ours, in Markdown.

In: the shelves of runs by name. Out: the page `tables.md`: the loss by number of digits over all
runs, then for each run the tables of its report that the paper has too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from carryscope.core.words import loss
from carryscope.report.markdown import as_text, markdown
from carryscope.report.paper import paper_cell
from carryscope.report.parts import Note, Section, Table, flat
from carryscope.report.sections.dissection import dissection_sections
from carryscope.report.sections.training import training_section
from carryscope.report.shelf import Shelf
from carryscope.training.summary import LAST_STEPS

TABLES_PAGE = "tables.md"

TABLES = (
    "final-loss",
    "mix",
    "rows",
    "row-patterns",
    "heads",
    "roles",
)
"""Tables of a report: Tab. 2, the mix, Tab. 4, 5, 3 and 6, and what each head reads."""


def tables_markdown(shelves: Mapping[str, Shelf], *, note: str = "") -> str:
    """The page."""
    parts = [
        "# The paper's tables and ours",
        note,
        "A column `paper` has the paper's values for models with as many digits. Those models have "
        "three heads, and their losses are those after 5,000 steps.",
        markdown([_by_digits(shelves)]),
        *(_of_run(name, shelf) for name, shelf in shelves.items()),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _by_digits(shelves: Mapping[str, Shelf]) -> Table:
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
    last = f"last {LAST_STEPS} steps"
    head = ["run", "digits", "heads", "steps", "held-out loss", last, "paper"]
    note = "Teacher-forced. Paper: Tab. 1, a final training loss after 5,000 steps of 64 questions."
    return Table("loss-by-digits", "Final loss by number of digits", head, rows, note)


def _of_run(name: str, shelf: Shelf) -> str:
    shown = [
        part
        for part in flat(_sections(shelf))
        if (isinstance(part, Table) and part.name in TABLES)
        or (isinstance(part, Note) and part.title)
    ]
    return f"## {as_text(name)}\n\n{markdown(shown, level=3)}" if shown else ""


def _sections(shelf: Shelf) -> Iterator[Section]:
    """The sections of a report that have these tables."""
    found = [training_section(shelf)]
    if shelf.dissection is not None:
        found += dissection_sections(shelf.dissection)
    yield from (section for section in found if section is not None)
