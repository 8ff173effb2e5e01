"""How a digit is made and a carry followed: the MLP's keys, and the first digits.

In: the shelf of a run. Out: sections on what the paper claims without test, or leaves open.
"""

from __future__ import annotations

from carryscope.core.words import with_interval
from carryscope.dissection.first_digits import FirstDigitsFinding
from carryscope.dissection.keys import MlpFinding
from carryscope.report.catalogue import figure
from carryscope.report.page.parts import Folded, Part, Picture, Section, Table, Text
from carryscope.report.page.words import paper_text
from carryscope.report.shelf import Shelf


def keys_section(shelf: Shelf) -> Section | None:
    """The 60 keys: what swaps do, and the table that was learnt."""
    finding = shelf.dissection.mlp if shelf.dissection else None
    parts: list[Part] = []
    paper = paper_text("keys", shelf.config.model)
    if finding is not None:
        parts += [
            Text(finding.statement, lead=True),
            Picture(
                "keys", {"": figure("keys", shelf)}, f"{paper} keys, untested" if paper else ""
            ),
            _key_table(finding),
            Folded("What single neurons follow", [_neurons(finding)]),
        ]
    if shelf.faithfulness is not None:
        parts.append(Picture("table", {"": figure("table", shelf)}))
    return Section("keys", "The MLP's 60 keys", "60 keys", parts) if parts else None


def _key_table(finding: MlpFinding) -> Table:
    rows = [
        [
            test.digit,
            f"{test.keys}",
            with_interval(test.kept),
            with_interval(test.follows),
            f"{test.apart_in} / {test.apart_out} of {test.alike}",
            with_interval(test.without_mlp["mean"]) if "mean" in test.without_mlp else "",
        ]
        for test in finding.digits
    ]
    return Table(
        "key-table",
        "The key decides, or it does not",
        [
            "digit",
            "keys",
            "same key: stays",
            "other key: follows",
            "alike pairs told apart before / after the MLP",
            "right without the MLP",
        ],
        rows,
        f"The whole attention output at the digit's row, exchanged between {finding.questions:,} "
        "questions. Alike pairs: keys with the same answer, which an adder that keeps only the "
        "answer would not tell apart.",
        frozenset({1, 2, 3, 4, 5}),
    )


def _neurons(finding: MlpFinding) -> Table:
    parts = list(dict.fromkeys(part for test in finding.digits for part in test.neurons.part))
    rows = [
        [
            test.digit,
            *(f"{test.neurons.part.get(part, 0):,}" for part in parts),
            f"{test.neurons.combined:,}",
            f"{test.neurons.other:,}",
            f"{test.neurons.silent:,}",
        ]
        for test in finding.digits
    ]
    head = ["digit", *(f"{part} alone" for part in parts), "the whole key", "neither", "silent"]
    caption = "A neuron follows what explains more than half of its variance."
    numeric = frozenset(range(1, len(head)))
    return Table("neurons", "Neurons by what they follow", head, rows, caption, numeric)


def carries_section(shelf: Shelf) -> Section | None:
    """How deep a digit looks for its carry."""
    finding = shelf.dissection.first_digits if shelf.dissection else None
    if finding is None:
        return None
    paper = "it has not worked out A5 and A4" if shelf.config.model.digits == 5 else ""
    parts: list[Part] = [
        Text(finding.statement, lead=True),
        Picture("carries", {"": figure("carries", shelf)}, paper),
        _rules(finding),
    ]
    return Section("carries", "How the first digits find their carry", "First digits", parts)


def _rules(finding: FirstDigitsFinding) -> Table:
    rows = [
        [
            rule.digit,
            f"{rule.reach}",
            "yes" if rule.reads_token else "no",
            with_interval(rule.within),
            with_interval(rule.own_nine) if rule.own_nine.of else "",
            with_interval(rule.beyond) if rule.beyond.of else "",
        ]
        for rule in finding.rules
    ]
    return Table(
        "rules",
        "The rule of each digit, on fresh questions",
        [
            "digit",
            "columns it looks down",
            "reads the token before",
            "as the rule says, within reach",
            "right where its own column is 9",
            "right beyond reach",
        ],
        rows,
        "Teacher-forced, on fresh questions rich in nines, with 95 % intervals.",
        frozenset({1, 3, 4, 5}),
    )
