"""The sub-task search: which part of the model carries which variable, by interchange.

In: an engine and questions. Out: `SubtasksFinding`, the purpose map and the evidence for it.

A part is run with its output taken from another question. A hypothesis predicts the answer
digit. Its score is the share of pairs that land on it, over pairs where it predicts another
digit than the base's own. A purpose is reported only if

- the score is above one half, Wilson interval included,
- it beats the control nodes: the best of the other heads of the row, on the same pairs (an MLP
  and a model's only head have none),
- it beats every control hypothesis, on the pairs where the two predict different digits, and
  the hypothesis that nothing happens at all.

Heads that carry nothing alone are tested together, in pairs and all at once. In the shipped
model P13.L0.H1 carries the state of column 2 for A3.
"""

from __future__ import annotations

from carryscope.core.progress import Advance, unheard
from carryscope.core.words import listed, spanned
from carryscope.dissection.attention import column_at
from carryscope.dissection.engine import Engine
from carryscope.dissection.hypotheses import Pairs
from carryscope.dissection.purposes import Purpose, SubtasksFinding
from carryscope.dissection.samples import Samples
from carryscope.dissection.search import SubtaskSearch
from carryscope.task.operation import ADD, State

SEARCH_PAIRS = 2000
"""Pairs of questions, each with its own share of nines: the rarest hypotheses get over 100."""

IN_WORDS: dict[str, str] = {
    "BA": "the base sum (BA) of {}",
    "MC1": "the carry made (MC1) in {}",
    "MS9": f"whether {{}} {ADD.words.column[State.PROPAGATE]} (MS9)",
    "state": "the state of {}",
    "carry_in": "the arriving carry",
    "digit": "the finished digit",
}
"""Each kind of variable in a sentence, with the column it is about."""


def study_subtasks(engine: Engine, samples: Samples, advance: Advance = unheard) -> SubtasksFinding:
    """Test every hypothesis at every node, and at sets of heads where single ones do not do."""
    base, source = (samples.nines_rich(name, SEARCH_PAIRS) for name in ("base", "source"))
    search = SubtaskSearch(engine, Pairs(base, source), advance)
    search.everywhere()
    missing = search.missing()
    return SubtasksFinding(
        pairs=SEARCH_PAIRS,
        purposes=search.purposes,
        scores=search.scores,
        tests=sum(len(score.follows) for score in search.scores),
        missing=missing,
        statement=_statement(search.purposes, missing, engine.config.layers),
    )


def _statement(purposes: list[Purpose], missing: list[str], layers: int) -> str:
    """What each part gives, grouping digits for which it does the same."""
    if not purposes:
        return "No part of the model was found to carry any sub-task."
    parts: dict[str, dict[str, list[str]]] = {}
    for p in purposes:
        place, _, part = p.node.partition(".")[2].partition(".")
        what = IN_WORDS[p.kind].format(column_at(int(p.digit[1:]) - p.column))
        name = part if layers == 1 else f"{place}.{part}"
        parts.setdefault(name, {}).setdefault(what, []).append(p.digit)
    said = [
        f"{name} gives {listed([f'{what} (for {spanned(at)})' for what, at in given.items()])}."
        for name, given in sorted(parts.items())
    ]
    said += [f"Not found: {', '.join(missing)}."] if missing else []
    return " ".join(said)
