"""The sub-task search: which part of the model carries which variable, by interchange.

In: an engine and questions. Out: `SubtasksFinding`, the purpose map and the evidence for it.

A part is run with its output taken from another question. A hypothesis predicts the answer
digit; its score is the share of pairs that land on it, over pairs where it predicts something
other than the base's own digit. A purpose is reported only if

- the score is above one half, Wilson interval included,
- it beats the control nodes: the best of the other heads of the row, on the same pairs (an MLP
  and a model's only head have none),
- it beats every control hypothesis, on the pairs where the two predict different digits, and
  the hypothesis that nothing happens at all.

Heads that carry nothing alone are tested together, in pairs and all at once.
"""

from __future__ import annotations

from collections.abc import Callable

from carryscope.dissection.attention import role_name
from carryscope.dissection.engine import Engine
from carryscope.dissection.hypotheses import Pairs
from carryscope.dissection.purposes import Purpose, SubtasksFinding
from carryscope.dissection.samples import Samples
from carryscope.dissection.search import Search

PAIRS = 2000
"""Pairs of questions, each with its own share of nines: the rarest hypotheses get over 100."""


def study_subtasks(
    engine: Engine,
    samples: Samples,
    on_progress: Callable[[int], object] = lambda _: None,
    *,
    pairs: int = PAIRS,
) -> SubtasksFinding:
    """Test every hypothesis at every node, and at sets of heads where single ones do not do."""
    drawn = Pairs(samples.nines_rich("base", pairs), samples.nines_rich("source", pairs))
    search = Search(engine, drawn, on_progress)
    search.everywhere()
    missing = search.missing()
    return SubtasksFinding(
        seed=samples.seed,
        pairs=pairs,
        purposes=search.purposes,
        scores=search.scores,
        tests=sum(len(score.follows) for score in search.scores),
        missing=missing,
        statement=_statement(search.purposes, missing),
    )


def _statement(purposes: list[Purpose], missing: list[str]) -> str:
    """What each part carries, digits together that it does the same for."""
    if not purposes:
        return "No part of the model was found to carry any sub-task."
    parts: dict[str, dict[str, list[str]]] = {}
    for p in purposes:
        part = p.node.partition(".")[2]
        below = int(p.digit[1:]) - p.column
        parts.setdefault(part, {}).setdefault(f"{p.kind} {_place(below)}", []).append(p.digit)
    told = [
        f"{part}: " + ", ".join(f"{what} for {' '.join(at)}" for what, at in carried.items())
        for part, carried in sorted(parts.items())
    ]
    rest = f" Not found: {'; '.join(missing)}." if missing else ""
    return f"{'. '.join(told)}.{rest}"


def _place(below: int) -> str:
    return "of its own column" if below == 0 else role_name(below)
