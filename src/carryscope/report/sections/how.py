"""How the model adds: the main figure and the algorithm; and a dissection as parts.

In: a dissection. Out: parts, and the section that opens the report's story.
"""

from __future__ import annotations

import shlex
from functools import partial

from carryscope.dissection.dissect import Dissection
from carryscope.report.figures.circuit import circuit
from carryscope.report.parts import Absent, Facts, Folded, Part, Picture, Section, Sentences
from carryscope.report.sections.algorithm import algorithm_sentences, algorithm_title
from carryscope.report.sections.dissection import dissection_sections, node_table
from carryscope.report.shelf import Shelf
from carryscope.report.words import PASSES, TASK
from carryscope.task.operation import State

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


def dissection_parts(found: Dissection) -> list[Part]:
    """How the model adds, what each node carries, then each experiment."""
    sentences = algorithm_sentences(found)
    claim = (
        Sentences(algorithm_title(found), sentences)
        if sentences
        else Sentences("What was found", list(found.statements().values()))
    )
    main: list[Part] = []
    if found.attention is not None:
        main = [_circuit(found)]
    elif found.nodes is not None:
        main = [node_table(found)]
    folded = [Folded(section.title, section.parts) for section in dissection_sections(found)]
    return [claim, *main, *folded]


def _circuit(found: Dissection) -> Picture:
    instead = node_table(found) if found.nodes is not None else None
    return Picture("circuit", partial(circuit, found), instead=instead)
