"""Inside the model: where heads look, which edges count, what breaks without a part.

In: a dissection. Out: tables, and a section for each experiment that was made.
"""

from __future__ import annotations

import math
from functools import partial

from carryscope.core.words import brief, loss, percent, with_interval
from carryscope.dissection.ablations import HeadEffect, NodeEffect
from carryscope.dissection.dissect import Dissection
from carryscope.report.figures.grids import edges, staircase
from carryscope.report.nodes import NodeWords, node_words
from carryscope.report.parts import Part, Picture, Section, Text, evidence
from carryscope.report.sections.carrying import carries_parts, keys_parts
from carryscope.report.tables import Cell, Faint, Table
from carryscope.report.words import head_name, head_roles, head_titles, row_names
from carryscope.task.operation import BASE

STAIRCASE = {
    "present": "The heads step down the columns: a double staircase",
    "partial": "Some heads step down the columns: part of a staircase",
    "absent": "The heads do not step down the columns: there is no staircase",
}
"""What is claimed of attention."""

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
            claim=STAIRCASE[finding.staircase] if name == "attention" else "",
        )
        for name, (short, make) in SECTIONS.items()
        if (finding := getattr(found, name)) is not None
    ]


def _attention(found: Dissection) -> list[Part]:
    model, finding = found.model, found.attention
    assert finding is not None
    roles = head_roles(finding)
    reads = Table.of(
        "roles",
        "What each head reads",
        finding.heads,
        {
            "head": lambda head: head_name(head.layer, head.head, model.layers),
            "reads": lambda head: roles[head.layer, head.head],
            "rows at which it does": lambda head: f"{head.rows} of {head.of}",
            "attention the column gets": lambda head: percent(head.sharpness),
        },
        "Heads are named by what they read, because their numbers mean nothing between seeds. "
        "A head has a staircase if one column gets more than half of its attention in at least "
        f"two thirds of its rows. Means over {finding.questions:,} questions.",
        text=["reads"],
    )
    return [Picture("staircase", partial(staircase, found)), reads]


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
    told = [Text(found.subtasks.statement)] if found.subtasks else []
    return [*told, node_table(found)]


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


SECTIONS = {
    "attention": ("Attention", _attention),
    "edges": ("Edges", _edges),
    "heads": ("Heads", _heads),
    "nodes": ("Nodes", _nodes),
    "mlp": ("Keys", keys_parts),
    "first_digits": ("First digits", carries_parts),
}
"""The experiments of a dissection: the name in the contents, and how parts are made of it."""
