"""How a digit is made and a carry followed: the MLP's keys, and the first digits.

In: a dissection. Out: sections on what the paper claims without a test, or leaves open.
"""

from __future__ import annotations

from carryscope.core.words import with_interval
from carryscope.dissection.findings import Dissection
from carryscope.dissection.first_digits import FirstDigitsFinding
from carryscope.dissection.keys import MlpFinding
from carryscope.report.figures import picture
from carryscope.report.paper import paper_text
from carryscope.report.parts import Folded, Part, Section, Table, Text
from carryscope.report.words import PASSES
from carryscope.verification.faithfulness import FaithfulnessFinding


def keys_section(
    found: Dissection | None, faithfulness: FaithfulnessFinding | None
) -> Section | None:
    """The 60 keys: what swaps do, and the learned table."""
    parts: list[Part] = []
    if found is not None and found.mlp is not None:
        paper = paper_text("keys", found.model)
        parts += [
            Text(found.mlp.statement, lead=True),
            picture("keys", found, f"{paper} keys, untested" if paper else ""),
            _key_table(found.mlp),
            Folded("What single neurons follow", [_neurons(found.mlp)]),
        ]
    parts += [picture("table", faithfulness)] if faithfulness is not None else []
    return Section("keys", "The MLP's 60 keys", "60 keys", parts) if parts else None


def _key_table(finding: MlpFinding) -> Table:
    return Table.of(
        "key-table",
        "Does the key decide the digit?",
        finding.digits,
        {
            "digit": lambda test: test.digit,
            "keys": lambda test: f"{test.keys}",
            "same key: stays": lambda test: with_interval(test.kept),
            "other key: follows": lambda test: with_interval(test.follows),
            "alike pairs told apart before / after the MLP": lambda test: (
                f"{test.apart_in} / {test.apart_out} of {test.alike}"
            ),
            "right without the MLP": lambda test: (
                with_interval(test.without_mlp["mean"]) if "mean" in test.without_mlp else ""
            ),
        },
        f"The whole attention output at the digit's row, exchanged between {finding.questions:,} "
        "questions. Alike pairs are keys with the same answer: an adder that keeps only the "
        "answer would not tell them apart.",
    )


def _neurons(finding: MlpFinding) -> Table:
    parts = list(dict.fromkeys(part for test in finding.digits for part in test.neurons.part))
    alone = {
        f"{part} alone": lambda test, part=part: f"{test.neurons.part.get(part, 0):,}"
        for part in parts
    }
    return Table.of(
        "neurons",
        "Neurons by what they follow",
        finding.digits,
        {
            "digit": lambda test: test.digit,
            **alone,
            "the whole key": lambda test: f"{test.neurons.combined:,}",
            "neither": lambda test: f"{test.neurons.other:,}",
            "silent": lambda test: f"{test.neurons.silent:,}",
        },
        "A neuron follows what explains more than half of its variance.",
    )


def carries_section(found: Dissection) -> Section | None:
    """How deep a digit looks for its carry."""
    finding = found.first_digits
    if finding is None:
        return None
    paper = "it has not worked out A5 and A4" if found.model.digits == 5 else ""
    parts: list[Part] = [
        Text(finding.statement, lead=True),
        picture("carries", found, paper),
        _rules(finding),
    ]
    return Section("carries", "How the first digits find their carry", "First digits", parts)


def _rules(finding: FirstDigitsFinding) -> Table:
    return Table.of(
        "rules",
        "The rule of each digit, on fresh questions",
        finding.rules,
        {
            "digit": lambda rule: rule.digit,
            "columns it looks down": lambda rule: f"{rule.reach}",
            "reads the token before": lambda rule: "yes" if rule.reads_token else "no",
            "as the rule says, within reach": lambda rule: with_interval(rule.within),
            f"right where its own column {PASSES}": lambda rule: (
                with_interval(rule.own_nine) if rule.own_nine.of else ""
            ),
            "right beyond reach": lambda rule: with_interval(rule.beyond) if rule.beyond.of else "",
        },
        "Teacher-forced, on fresh questions rich in nines, with 95 % intervals.",
        text=["reads the token before"],
    )
