"""Findings as parts. In: a finding, an answer, or the shelf of a run. Out: parts, claim first.

show(parts_of(run.risk()), console)
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from carryscope.report.parts import Facts, Part, Text

MAKERS = {
    "Answer": "answer.answer_parts",
    "TrainingSummary": "training.summary_section",
    "Dissection": "how.dissection_parts",
    "RiskFinding": "verification.risk_section",
    "FaithfulnessFinding": "verification.faithfulness_section",
    "Certificate": "certificate.certificate_section",
    "RepairFinding": "verification.repair_parts",
    "Shelf": "verdict.verdict_section",
}
"""What makes a section, or parts, of each record, in `sections`. It is loaded when it is needed:
`ask` answers before torch would be."""


def parts_of(finding: Any) -> list[Part]:
    """A finding, an answer or the shelf of a run as parts; the claim comes first."""
    maker = MAKERS.get(type(finding).__name__)
    if maker is None:
        return _unknown(finding)
    module, _, name = maker.partition(".")
    make = getattr(import_module(f"carryscope.report.sections.{module}"), name)
    made: Part | list[Part] = make(finding)
    return made if isinstance(made, list) else [made]


def _unknown(finding: Any) -> list[Part]:
    """A record of a user's own stage: what it says, then its plain fields."""
    fields = {name: getattr(finding, name) for name in finding.__struct_fields__}
    named = [name for name in ("verdict", "statement") if name in fields]
    claims = [Text(fields.pop(name), lead=True) for name in named]
    plain = {n: str(value) for n, value in fields.items() if isinstance(value, str | int | float)}
    return [*claims, Facts(plain)]
