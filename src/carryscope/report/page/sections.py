"""The report from top to bottom.

In: the shelf of a run. Out: its sections. A new section is one more line here.
"""

from __future__ import annotations

from collections.abc import Callable

from carryscope.report.page.carrying import carries_section, keys_section
from carryscope.report.page.how import how_section
from carryscope.report.page.inside import (
    attention_section,
    heads_section,
    nodes_section,
    rows_section,
)
from carryscope.report.page.method import method_section
from carryscope.report.page.outside import algorithms_section, failures_section
from carryscope.report.page.parts import Explorer, Section
from carryscope.report.page.proof import certificate_section
from carryscope.report.page.training import training_section
from carryscope.report.page.verdict import verdict_section
from carryscope.report.shelf import Shelf

ANSWERS: tuple[Callable[[Shelf], Section | None], ...] = (verdict_section, how_section)
"""What everybody reads: before the explorer."""

EVIDENCE: tuple[Callable[[Shelf], Section | None], ...] = (
    failures_section,
    algorithms_section,
    certificate_section,
    attention_section,
    rows_section,
    heads_section,
    nodes_section,
    keys_section,
    carries_section,
    training_section,
    method_section,
)
"""What it rests on. A section that has nothing to show is left out; `method` says why."""


def report_sections(shelf: Shelf, explorer: str = "") -> list[Section]:
    """All sections; `explorer` is the markup of the explorer, if there is to be one."""
    tried = [*(make(shelf) for make in ANSWERS), _explorer(explorer)]
    tried += [make(shelf) for make in EVIDENCE]
    return [section for section in tried if section is not None]


def _explorer(html: str) -> Section | None:
    if not html:
        return None
    return Section("try", "Try it: the model runs in this page", "Explorer", [Explorer(html)])
