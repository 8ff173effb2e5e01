"""How the model adds: the main figure, and the algorithm in five sentences.

In: the shelf of a run. Out: a section.
"""

from __future__ import annotations

import shlex

from carryscope.report.catalogue import figure
from carryscope.report.page.algorithm import algorithm_sentences, algorithm_title
from carryscope.report.page.parts import Facts, Folded, Missing, Part, Picture, Section, Sentences
from carryscope.report.shelf import Shelf

WORDS = {
    "Column": "the pair of digits Dk and D'k, units first; the sum of column 0 makes A0.",
    "BA": "base add: the sum of the column modulo 10.",
    "MC1": "make carry 1: the column sums to 10 or more.",
    "MS9": "make sum 9: the column sums to 9, so a carry from below travels on.",
    "state": "MC1 and MS9 together: the column makes a carry, passes one on, or neither.",
    "carry_in": "the carry that truly arrives at the column.",
    "UC1, US9": "use carry 1: a carry arrives; use sum 9: it arrives at a column that sums to 9.",
    "Row": "a token position; it reads its own token and all before, and predicts the next one.",
    "Nines below": "columns that sum to 9 directly below a digit: a carry may come through them.",
    "BA(3)": "a variable with its column: the base sum of column 3.",
}


def how_section(shelf: Shelf) -> Section:
    """How it adds."""
    found = shelf.dissection
    parts: list[Part] = []
    if found is not None and found.attention is not None:
        main = Picture("circuit", {"": figure("circuit", shelf)}, "its Fig. 1 and Fig. 9")
        parts.append(main)
    else:
        command = f"carryscope dissect {shlex.quote(shelf.where)}"
        why = shelf.refused.get("dissection", "")
        parts.append(Missing("What each head reads and carries", command, why))
    sentences = algorithm_sentences(shelf)
    if sentences:
        parts.append(Sentences(algorithm_title(found), sentences))
    parts.append(Folded("The words", [Facts(WORDS)]))
    return Section("how", "How it adds", "How it adds", parts)
