"""The report from top to bottom. In: the shelf of a run. Out: its sections.

Four screens that everybody reads: the verdict, how it adds, why it breaks, and the model to try.
Then the evidence, folded section by section; the title of each is its claim.
"""

from __future__ import annotations

from carryscope.dissection.asking import Answer
from carryscope.report.parts import Explorer, Section
from carryscope.report.sections.certificate import certificate_section
from carryscope.report.sections.dissection import dissection_sections
from carryscope.report.sections.how import how_section
from carryscope.report.sections.method import method_section
from carryscope.report.sections.training import training_section
from carryscope.report.sections.verdict import verdict_section
from carryscope.report.sections.verification import algorithms_section, failures_section
from carryscope.report.sections.why import why_section
from carryscope.report.shelf import Shelf


def report_sections(
    shelf: Shelf, explorer: str = "", example: Answer | None = None
) -> list[Section]:
    """All sections that have something to show.

    `explorer` is the markup of the explorer, `example` an answer that is wrong. `method` says what
    is missing.
    """
    tried = [
        verdict_section(shelf),
        how_section(shelf),
        why_section(example),
        _explorer(explorer),
        failures_section(shelf),
        algorithms_section(shelf),
        certificate_section(shelf),
        *(dissection_sections(shelf.dissection) if shelf.dissection is not None else []),
        training_section(shelf),
        method_section(shelf),
    ]
    return [section for section in tried if section is not None]


def _explorer(html: str) -> Section | None:
    if not html:
        return None
    return Section("try", "Try it: the model runs in this page", "Try it", [Explorer(html)])
