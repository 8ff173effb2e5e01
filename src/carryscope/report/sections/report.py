"""The report from top to bottom. In: the shelf of a run. Out: its sections.

Four screens that everybody reads: the verdict, how it adds, why it breaks, and the model to try.
Then the evidence, folded section by section; the title of each is its claim.
"""

from __future__ import annotations

from collections.abc import Sequence

from carryscope.core.errors import CallError
from carryscope.report.explorer import Live, live_model
from carryscope.report.figures.figure import Figure
from carryscope.report.figures.grids import table_figure
from carryscope.report.parts import Explorer, Picture, Section, flat
from carryscope.report.sections.certificate import certificate_section
from carryscope.report.sections.dissection import dissection_sections
from carryscope.report.sections.how import how_section
from carryscope.report.sections.method import method_section, missing
from carryscope.report.sections.training import training_section
from carryscope.report.sections.verdict import verdict_section
from carryscope.report.sections.verification import faithfulness_section, risk_section
from carryscope.report.sections.why import shown_sum, why_section
from carryscope.report.shelf import Shelf
from carryscope.report.tables import Table


def report_sections(shelf: Shelf, live: Sequence[Live] = ()) -> list[Section]:
    """All sections that have something to show; `method` says what is missing.

    The model of the run comes first in `live`, and next to it one that is proved.
    """
    risk, proof, why = shelf.risk, shelf.certificate, why_section(live)
    tried = [
        verdict_section(shelf, next((other for other, _ in live[1:]), None)),
        how_section(shelf),
        why,
        _try(live, shown_sum(why)) if live else None,
        risk_section(risk, told=True) if risk is not None else None,
        faithfulness_section(shelf.faithfulness) if shelf.faithfulness is not None else None,
        certificate_section(proof, risk, shelf.where) if proof is not None else None,
        *(dissection_sections(shelf.dissection) if shelf.dissection is not None else []),
        training_section(shelf),
        method_section(shelf),
    ]
    return [section for section in tried if section is not None]


def _try(live: Sequence[Live], question: str) -> Section:
    title = "Try it: the model runs in this page"
    if len(live) > 1:
        title = f"Try it, next to {live[1][0].name}: both models run in this page"
    subjects = [live_model(*one, question) for one in live]
    return Section("try", title, "Try it", [Explorer(subjects)])


def figures(shelf: Shelf, only: Sequence[str] = ()) -> dict[str, Figure]:
    """The pictures and tables of a report by name, drawn: all of them in its order, or some.

    An unknown name is an error that says how to make what is missing.
    """
    parts = flat(report_sections(shelf))
    there = {part.name: part for part in parts if isinstance(part, Picture | Table)}
    for name in only:
        if name not in there:
            lacking = [f"{one.title} Run: {one.command}" for one in missing(shelf) if one.command]
            notes = " ".join(filter(None, [*lacking, shelf.beyond_proof]))
            raise CallError(f"The figures are {', '.join(there)}. Got '{name}'. {notes}".strip())
    return {name: _drawn(there[name]) for name in only or there}


def _drawn(part: Picture | Table) -> Figure:
    figure: Figure = part.figure if isinstance(part, Picture) else table_figure(part)
    return figure


def figure(name: str, shelf: Shelf) -> Figure:
    """A figure of a run by its name."""
    return figures(shelf, [name])[name]
