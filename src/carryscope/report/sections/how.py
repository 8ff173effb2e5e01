"""How the model adds: the main figure and the algorithm; and a dissection as parts.

In: a dissection. Out: parts, and the section that opens the report's story.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from carryscope.core.words import brief
from carryscope.dissection.findings import Dissection
from carryscope.dissection.nodes import NodeEffect
from carryscope.report.figures import picture
from carryscope.report.parts import (
    Absent,
    Facts,
    Faint,
    Folded,
    Part,
    Picture,
    Section,
    Sentences,
    Table,
)
from carryscope.report.sections.algorithm import algorithm_sentences, algorithm_title
from carryscope.report.sections.carrying import carries_section, keys_section
from carryscope.report.sections.dissection import (
    attention_section,
    heads_section,
    nodes_section,
    rows_section,
)
from carryscope.report.shelf import Shelf
from carryscope.report.words import PASSES, TASK, row_names
from carryscope.task.operation import State
from carryscope.verification.faithfulness import FaithfulnessFinding

WORDS = {
    "Column": "the pair of digits Dk and D'k, units first; the sum of column 0 makes A0.",
    "BA": "base add: the sum of the column modulo 10.",
    "MC1": f"make carry 1: the column {TASK.column[State.GENERATE]}.",
    "MS9": f"make sum 9: the column {PASSES}, so a {TASK.carry} from below travels on.",
    "state": f"MC1 and MS9 together: the column makes a {TASK.carry}, passes one on, or neither.",
    "carry_in": f"the {TASK.carry} that truly arrives at the column.",
    "UC1, US9": f"use carry 1: a {TASK.carry} arrives; use sum 9: it arrives at a column that "
    f"{PASSES}.",
    "Row": "a token position; it reads its own token and all before it, and predicts the next one.",
    "Nines below": f"columns directly below a digit that {TASK.columns[State.PROPAGATE]}: a "
    f"{TASK.carry} may come through them.",
    "BA(3)": "a variable with its column: the base sum of column 3.",
}

MAKERS: tuple[Callable[[Dissection], Section | None], ...] = (
    attention_section,
    rows_section,
    heads_section,
    nodes_section,
)


def how_section(shelf: Shelf) -> Section:
    """How it adds."""
    found = shelf.dissection
    sentences = algorithm_sentences(found, shelf.risk)
    parts: list[Part] = []
    if found is not None and found.attention is not None:
        parts.append(_circuit(found))
    else:
        command = f"carryscope dissect {shlex.quote(shelf.where)}"
        unknown = Absent("What each head reads and carries", command)
        parts.append(shelf.absent.get("dissection", unknown))
    parts += [Sentences(algorithm_title(found), sentences)] if sentences else []
    return Section(
        "how", "How it adds", "How it adds", [*parts, Folded("The words", [Facts(WORDS)])]
    )


def dissection_sections(
    found: Dissection | None, faithfulness: FaithfulnessFinding | None = None
) -> list[Section]:
    """A section for each experiment that was made."""
    tried = [make(found) for make in MAKERS] if found is not None else []
    tried.append(keys_section(found, faithfulness))
    tried += [carries_section(found)] if found is not None else []
    return [section for section in tried if section is not None]


def dissection_parts(found: Dissection) -> list[Part]:
    """How the model adds, what each node carries, then each experiment."""
    sentences = algorithm_sentences(found)
    claim = (
        Sentences(algorithm_title(found), sentences)
        if sentences
        else Sentences("What was found", list(found.statements().values()))
    )
    main: list[Part] = [_circuit(found)] if found.attention is not None else []
    if found.attention is None and found.nodes is not None:
        main = [_node_table(found)]
    folded = [Folded(section.title, section.parts) for section in dissection_sections(found)]
    return [claim, *main, *folded]


def _circuit(found: Dissection) -> Picture:
    instead = _node_table(found) if found.nodes is not None else None
    return picture("circuit", found, "its Fig. 1 and Fig. 9", instead=instead)


def _node_table(found: Dissection) -> Table:
    """A line for each answer row: what each part carries there, and what fails without it."""
    assert found.nodes is not None
    layout, layers = found.model.layout, found.model.layers
    names = dict(zip(layout.answer_rows, row_names(layout), strict=True))
    parts = sorted({(n.layer, n.head is None, n.head or 0) for n in found.nodes.nodes})
    nodes = {(n.row, (n.layer, n.head is None, n.head or 0)): n for n in found.nodes.nodes}
    shown = sorted({n.row for n in found.nodes.nodes if n.useful or n.row in names})
    head = [
        f"{f'L{layer} ' if layers > 1 else ''}{'MLP' if is_mlp else f'H{number}'}"
        for layer, is_mlp, number in parts
    ]
    rows = [
        [
            names.get(row, layout.position_names[row]),
            *(_carried(found, nodes[row, part]) if (row, part) in nodes else "" for part in parts),
        ]
        for row in shown
    ]
    caption = (
        "A row reads the token before the arrow and predicts the one after. In per cent, the "
        "questions that fail without the node. state(4): whether column 4 makes a carry, passes "
        "one on or neither. BA(3): the base sum of column 3."
    )
    return Table("node-table", "What each node carries", ["row", *head], rows, caption)


def _carried(found: Dissection, node: NodeEffect) -> str:
    if not node.useful:
        return Faint("unused")
    purpose = found.subtasks.purpose_of(node.node) if found.subtasks else ""
    layout = found.model.layout
    if node.layer == found.model.layers - 1:  # its only digit stands at the start of the line
        purpose = purpose.replace(f"{layout.position_names[node.row + 1]}.", "")
    return f"{purpose} {brief(node.fails.estimate)}".strip()
