"""Inside the model: where heads look, which edges count, what breaks without a part, what decides a
digit.

In: a dissection. Out: tables, and a section for each experiment that was made.
"""

from __future__ import annotations

from functools import partial

from carryscope.core.words import brief, counted, percent, with_interval
from carryscope.dissection.ablations import NodeEffect
from carryscope.dissection.dissect import Dissection
from carryscope.dissection.paths import PathEffect
from carryscope.report.figures.grids import edges, staircase
from carryscope.report.nodes import NodeWords, node_words
from carryscope.report.parts import Part, Picture, Section, evidence
from carryscope.report.tables import Cell, Faint, Table
from carryscope.report.words import STAIRCASE


def dissection_sections(found: Dissection) -> list[Section]:
    """A section for each experiment that was made; its title is what it found.

    Statements that say how it adds stand above all of them.
    """
    claims = claims_of(found)
    return [
        evidence(
            name,
            short,
            "" if name in claims else finding.statement,
            make(found),
            claims.get(name, ""),
        )
        for name, (short, make) in SECTIONS.items()
        if (finding := getattr(found, name)) is not None
    ]


def claims_of(found: Dissection) -> dict[str, str]:
    """The titles of experiments whose statements stand elsewhere."""
    claims = {}
    if found.attention is not None:
        claims["attention"] = f"Row by row, attention makes {STAIRCASE[found.attention.staircase]}"
    if found.paths is not None:
        fetched = sum(path.fetched for path in found.paths.paths)
        claims["paths"] = f"{counted(fetched, 'path')} to heads of later layers".capitalize()
    if found.mlp is not None:
        decided = sum(test.decided for test in found.mlp.digits)
        claims["mlp"] = f"A key decides {decided} of {len(found.mlp.digits)} answer digits"
    return claims


def _attention(found: Dissection) -> list[Part]:
    return [Picture("staircase", partial(staircase, found))]


def _edges(found: Dissection) -> list[Part]:
    return [Picture("edges", partial(edges, found))]


def _nodes(found: Dissection) -> list[Part]:
    return [node_table(found)]


def node_table(found: Dissection) -> Table:
    """A line for each answer row: what each part carries there, and what fails without it."""
    assert found.nodes is not None
    layout, carry = found.model.layout, found.model.layout.operation.words.carry
    words = node_words(found)
    shown = {*layout.answer_rows, *(node.row for node in found.nodes.nodes if node.useful)}
    nodes = [node for node in found.nodes.nodes if node.row in shown]

    def part(node: NodeEffect) -> str:
        layer = f"L{node.layer} " if found.model.layers > 1 else ""
        return f"{layer}{'MLP' if node.head is None else f'H{node.head}'}"

    return Table.crossed(
        "nodes",
        "What each node carries, and how many questions fail without it",
        sorted(nodes, key=lambda n: (n.row, n.layer, n.head is None, n.head or 0)),
        "row",
        row=lambda node: layout.row_names[node.row],
        column=part,
        cell=lambda node: _node_cell(node.node, words[node.node]),
        caption="A row is named by the digit that it writes. State: whether a column makes a "
        f"{carry}, passes one on or neither. ??: useful, but nothing was found.",
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
    "nodes": ("Nodes", _nodes),
    "paths": ("Paths", _paths),
    "mlp": ("MLP", _keys),
}
"""The experiments of a dissection: the name in the contents, and how parts are made of it."""
