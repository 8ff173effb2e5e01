"""How a digit is made and a carry followed: the MLP's keys, and the first digits.

In: a dissection. Out: tables and parts on what the paper claims without a test, or leaves open.
"""

from __future__ import annotations

from carryscope.core.words import percent, with_interval
from carryscope.dissection.dissect import Dissection
from carryscope.dissection.first_digits import CarryEffect, FirstDigitsFinding
from carryscope.report.parts import Part
from carryscope.report.tables import Cell, Table
from carryscope.report.words import PASSES, nines


def keys_parts(found: Dissection) -> list[Part]:
    """What happens to a digit when attention output is exchanged between questions."""
    assert found.mlp is not None
    table = Table.of(
        "keys",
        "Does the key decide the digit?",
        found.mlp.digits,
        {
            "digit": lambda test: test.digit,
            "columns below in its key": lambda test: f"{test.reach}",
            "keys": lambda test: f"{test.keys}",
            "exact addition needs": lambda test: f"{test.needed:,}",
            "same key: stays": lambda test: with_interval(test.kept),
            "other key: follows": lambda test: with_interval(test.follows),
            "decided below the key: follows": lambda test: (
                with_interval(test.beyond) if test.beyond.of else ""
            ),
            "alike pairs separable before / after the MLP": lambda test: (
                f"{test.apart_in} / {test.apart_out} of {test.alike}"
            ),
        },
        "A key is the base sum of the digit's column and the states of the columns below that "
        "its row reads; of the lowest only whether it makes a carry. The attention output at "
        f"the digit's row is exchanged between {found.mlp.questions:,} questions. Alike pairs "
        "are keys with the same answer: an adder that keeps only that need not separate them.",
    )
    return [table]


def carries_parts(found: Dissection) -> list[Part]:
    """How deep a digit looks for its carry, and the rule that follows."""
    assert found.first_digits is not None
    rules = Table.of(
        "rules",
        "The rule of each digit, on fresh questions",
        found.first_digits.rules,
        {
            "digit": lambda rule: rule.digit,
            "columns it looks down": lambda rule: f"{rule.reach}",
            "reads the token before": lambda rule: "yes" if rule.reads_token else "no",
            "as the rule says, within reach": lambda rule: with_interval(rule.within),
        },
        "Teacher-forced, on fresh questions rich in nines, with 95 % intervals.",
        text=["reads the token before"],
    )
    return [_carries(found.first_digits), rules]


def _carries(found: FirstDigitsFinding) -> Table:
    """How often the answer follows a carry, by the nines that it came through."""

    def changed(effect: CarryEffect) -> str:
        kind = f"own 9, {effect.changed} changed" if effect.own_nine else "columns changed"
        return f"{effect.digit}, {kind}"

    return Table.crossed(
        "carries",
        "How deep a digit looks for its carry",
        [effect for effect in found.effects if effect.follows.of],
        "",
        row=changed,
        column=lambda effect: nines(effect.depth),
        cell=lambda effect: Cell(
            percent(effect.follows.estimate),
            shade=effect.follows.estimate,
            tip=f"{changed(effect)}, {nines(effect.depth)} on the way: "
            f"{with_interval(effect.follows)} of the answers follow",
        ),
        caption="Pairs of questions that differ in one carry: how often the answer becomes the "
        "other question's digit, by the nines that the carry came through. Own 9: the digit's own "
        f"column {PASSES}, so the answer token before it shows the carry.",
    )
