"""Inside the model: where heads look, which edges count, what breaks without a part, what decides a
digit, how far a carry is followed.

In: a dissection. Out: tables, and a section for each experiment that was made.
"""

from __future__ import annotations

import math
from functools import partial

from carryscope.core.words import brief, loss, percent, with_interval
from carryscope.dissection.ablations import HeadEffect, NodeEffect
from carryscope.dissection.dissect import Dissection
from carryscope.dissection.first_digits import CarryEffect, FirstDigitsFinding
from carryscope.dissection.interventions import head_name
from carryscope.dissection.paths import PathEffect
from carryscope.report.figures.grids import edges, staircase
from carryscope.report.nodes import NodeWords, node_words
from carryscope.report.parts import Part, Picture, Section, Text, evidence
from carryscope.report.tables import Cell, Faint, Table
from carryscope.report.words import STAIRCASE, head_titles, nines, row_names
from carryscope.task.operation import BASE, State, Words

GUESSING = math.log(BASE)
"""The loss of guessing a digit: as dark as a cell gets."""


def dissection_sections(found: Dissection) -> list[Section]:
    """A section for each experiment that was made; its title is what it found."""
    return [
        evidence(
            name.replace("_", "-"),
            short,
            finding.statement,
            make(found),
            claim=f"Row by row, attention makes {STAIRCASE[finding.staircase]}"
            if name == "attention"
            else "",
        )
        for name, (short, make) in SECTIONS.items()
        if (finding := getattr(found, name)) is not None
    ]


def _attention(found: Dissection) -> list[Part]:
    return [Picture("staircase", partial(staircase, found))]


def _edges(found: Dissection) -> list[Part]:
    return [Picture("edges", partial(edges, found))]


def _heads(found: Dissection) -> list[Part]:
    """The loss without each head, by question class."""
    finding, model = found.heads, found.model
    assert finding is not None
    titles = head_titles(found.attention, model.layers) if found.attention else {}

    def name(effect: HeadEffect) -> str:
        if effect.layer is None or effect.head is None:
            return "nothing"
        place = (effect.layer, effect.head)
        return titles.get(place) or head_name(*place, model.layers)

    table = Table.crossed(
        "heads",
        "Loss without each head, by question class",
        finding.effects,
        "without",
        row=name,
        column=lambda effect: effect.question_class,
        cell=_head_cell,
        caption=f"The loss, and whole answers right. Each head set to its mean at all rows; "
        f"{finding.questions:,} questions, teacher-forced.",
    )
    return [table]


def _head_cell(effect: HeadEffect) -> Cell:
    right = percent(effect.correct.estimate) if effect.correct.count else "none"
    return Cell(
        f"{effect.loss.estimate:.4f}, {right}",
        shade=min(1.0, effect.loss.estimate / GUESSING),
        tip=f"loss {loss(effect.loss)}; {with_interval(effect.correct)} right",
    )


def _nodes(found: Dissection) -> list[Part]:
    carried = [Text(found.subtasks.statement)] if found.subtasks else []
    return [*carried, node_table(found)]


def node_table(found: Dissection) -> Table:
    """A line for each answer row: what each part carries there, and what fails without it."""
    assert found.nodes is not None
    layout = found.model.layout
    names = dict(zip(layout.answer_rows, row_names(layout), strict=True))
    words = node_words(found)
    shown = {*names, *(node.row for node in found.nodes.nodes if node.useful)}
    nodes = [node for node in found.nodes.nodes if node.row in shown]

    def part(node: NodeEffect) -> str:
        layer = f"L{node.layer} " if found.model.layers > 1 else ""
        return f"{layer}{'MLP' if node.head is None else f'H{node.head}'}"

    return Table.crossed(
        "nodes",
        "What each node carries, and how many questions fail without it",
        sorted(nodes, key=lambda n: (n.row, n.layer, n.head is None, n.head or 0)),
        "row",
        row=lambda node: names.get(node.row, layout.position_names[node.row]),
        column=part,
        cell=lambda node: _node_cell(node.node, words[node.node]),
        caption="A row reads the token before the arrow and predicts the one after. state(4): "
        "whether column 4 makes a carry, passes one on or neither. BA(3): the base sum of column "
        "3. ??: useful, but nothing was found.",
    )


def _node_cell(node: str, known: NodeWords) -> str:
    tip = f"{node}: {known.sentence}"
    if known.fails is None:
        return Faint(known.carries, tip=tip)
    return Cell(f"{known.carries} {brief(known.fails)}".strip(), shade=known.fails, tip=tip)


def _keys(found: Dissection) -> list[Part]:
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


def _first_digits(found: Dissection) -> list[Part]:
    """How deep a digit looks for its carry, and the rule that follows."""
    assert found.first_digits is not None
    words = found.model.layout.operation.words
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
        f"Teacher-forced, on fresh questions rich in {words.passing_plural}, with 95 % intervals.",
        text=["reads the token before"],
    )
    return [_carries(found.first_digits, words), rules]


def _carries(found: FirstDigitsFinding, words: Words) -> Table:
    """How often the answer follows a carry, by the nines that it came through."""

    def changed(effect: CarryEffect) -> str:
        own = f"own {words.passing}, {effect.changed} changed"
        kind = own if effect.own_nine else "columns changed"
        return f"{effect.digit}, {kind}"

    return Table.crossed(
        "carries",
        f"How deep a digit looks for its {words.carry}",
        [effect for effect in found.effects if effect.follows.of],
        "",
        row=changed,
        column=lambda effect: nines(effect.depth, words),
        cell=lambda effect: Cell(
            percent(effect.follows.estimate),
            shade=effect.follows.estimate,
            tip=f"{changed(effect)}, {nines(effect.depth, words)} on the way: "
            f"{with_interval(effect.follows)} of the answers follow",
        ),
        caption=f"Pairs of questions that differ in one {words.carry}: how often the answer "
        f"becomes the other question's digit, by the {words.passing_plural} that the {words.carry} "
        f"came through. Own {words.passing}: the digit's own column "
        f"{words.column[State.PROPAGATE]}, so the answer token before it shows the {words.carry}.",
    )


def _paths(found: Dissection) -> list[Part]:
    """What one row computes and another reads."""
    assert found.paths is not None

    def through(path: PathEffect) -> str:
        shares = path.into or path.senders
        best = max(shares, key=lambda name: shares[name].estimate)
        return f"{best} alone {percent(shares[best].estimate)}"

    table = Table.of(
        "paths",
        "What is computed at one row and fetched at another",
        [path for path in found.paths.paths if path.fetched],
        {
            "computed at": lambda path: f"{path.token}, layer {path.layer}",
            "what": lambda path: path.variable,
            "fetched by": lambda path: path.reader,
            "for": lambda path: path.digit,
            "pairs that follow": lambda path: with_interval(path.follows),
            "the best other row": lambda path: (
                percent(path.control_follows.estimate) if path.control_follows else ""
            ),
            "through": through,
        },
        f"What a layer writes at one row comes from another question, but only as heads of a later "
        f"layer read it at one answer row. {found.paths.pairs:,} pairs of questions.",
        text=["what", "fetched by", "for", "through"],
    )
    return [table]


SECTIONS = {
    "attention": ("Attention", _attention),
    "edges": ("Edges", _edges),
    "heads": ("Heads", _heads),
    "nodes": ("Nodes", _nodes),
    "paths": ("Paths", _paths),
    "mlp": ("Keys", _keys),
    "first_digits": ("First digits", _first_digits),
}
"""The experiments of a dissection: the name in the contents, and how parts are made of it."""
