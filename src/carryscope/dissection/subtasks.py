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

import re
from collections.abc import Sequence
from itertools import combinations

import msgspec

from carryscope.core.evidence import Share
from carryscope.core.progress import Advance, unheard
from carryscope.core.words import listed, spanned
from carryscope.dissection.attention import column_at
from carryscope.dissection.engine import Engine
from carryscope.dissection.hypotheses import (
    CARRY_IN,
    DIGIT,
    STATE,
    Hypothesis,
    Pairs,
    in_words,
)
from carryscope.dissection.interchange import MAJORITY, Interchange
from carryscope.dissection.interventions import Node, all_nodes
from carryscope.dissection.samples import Samples
from carryscope.model.config import ModelConfig
from carryscope.task.columns import ALGORITHM_1_REACH

CODE = re.compile(r" \([^)]*\)")
"""What stands in brackets behind the words: the paper's name."""


class Purpose(msgspec.Struct, frozen=True, kw_only=True):
    """What a node, or a set of heads, is found to carry for one answer digit."""

    node: str
    row: int
    layer: int
    heads: list[int]
    """Empty for an MLP."""
    digit: str
    variable: str
    kind: str
    column: int
    follows: Share
    """Pairs that land on the predicted digit."""
    control_node: str | None
    control_node_follows: Share | None
    """The best of the control nodes on the same pairs; none for an MLP, or an only head."""
    control_variable: str
    """The hypothesis that comes nearest, on the pairs where the two differ:"""
    follows_this: Share
    """pairs that land on this one's digit,"""
    follows_control: Share
    """and on the control's. `nothing` predicts the base's own digit."""


class SubtasksFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The purpose map."""

    pairs: int
    purposes: list[Purpose]
    tests: int
    """Hypotheses tested, over all parts and digits."""
    missing: list[str]
    """Sub-tasks of Algorithm 1 that no part was found to carry, such as `A3: MC1(1)`."""
    statement: str

    def purpose_of(self, node: str) -> str:
        """A cell of the purpose map: what a node carries, alone or with others; else `??`."""
        alone = [f"{p.digit}.{p.variable}" for p in self.purposes if p.node == node]
        if alone:
            return " ".join(alone)
        place, _, part = node.rpartition(".")
        shared = [
            f"{p.digit}.{p.variable} with {'+'.join(f'H{h}' for h in p.heads if f'H{h}' != part)}"
            for p in self.purposes
            if p.node.startswith(f"{place}.") and part in [f"H{head}" for head in p.heads]
        ]
        return " ".join(shared) or "??"


SEARCH_PAIRS = 2000
"""Pairs of questions, each with its own share of nines: the rarest hypotheses get over 100."""


def study_subtasks(engine: Engine, samples: Samples, advance: Advance = unheard) -> SubtasksFinding:
    """Test every hypothesis at every node, and at sets of heads where single ones do not do."""
    base, source = (samples.nines_rich(name, SEARCH_PAIRS) for name in ("base", "source"))
    search = _Search(engine, Pairs(base, source), advance)
    search.everywhere()
    missing = search.missing()
    return SubtasksFinding(
        pairs=SEARCH_PAIRS,
        purposes=search.purposes,
        tests=search.tests,
        missing=missing,
        statement=_statement(search.purposes, missing, engine.config),
    )


class _Search:
    """The search in progress."""

    def __init__(self, engine: Engine, pairs: Pairs, advance: Advance) -> None:
        self._engine, self._pairs = engine, pairs
        self._layout, self._digits = engine.layout, engine.config.digits
        self._swaps: Interchange[Node] = Interchange(engine, pairs, advance)
        self.purposes: list[Purpose] = []

    @property
    def tests(self) -> int:
        """Hypotheses tested so far."""
        return self._swaps.tests

    def everywhere(self) -> None:
        """Single nodes first; then sets of heads, for the digits that still miss something."""
        every, heads = self._swaps.places, tuple(range(self._engine.config.heads))
        nodes = sorted(all_nodes(self._engine.config), key=lambda node: node.layer)
        self._judge(self._run(nodes, every), every)
        wanting = [k for k in every if self.missing_at(k)]
        places = dict.fromkeys((node.row, node.layer) for node in nodes)
        whole = [Node(*place, heads) for place in places if len(heads) > 1]
        whole = [
            row for row in self._run(whole, wanting) if self._swaps.does_anything(row, wanting)
        ]
        pairs = [row._replace(heads=pair) for row in whole for pair in combinations(heads, 2)]
        self._judge(self._run([pair for pair in pairs if pair not in whole], wanting), wanting)
        self._judge(whole, wanting)

    def _run(self, parts: Sequence[Node], digits: Sequence[int]) -> list[Node]:
        """Answer the base questions with each part that reaches a digit taken from the source."""
        parts = [part for part in parts if set(self._swaps.reached(part)) & set(digits)]
        self._swaps.run({part: part.patched(self._pairs.source) for part in parts})
        return parts

    def _judge(self, parts: Sequence[Node], digits: Sequence[int]) -> None:
        for part in parts:
            for k in self._swaps.reached(part):
                if k in digits:
                    self._judge_one(part, k)

    def _judge_one(self, part: Node, k: int) -> None:
        """Score every hypothesis about one digit; keep the best that beats all its controls."""
        strong = self._swaps.strong(part, k)
        passed = [purpose for h in strong if (purpose := self._purpose(part, h))]
        found = max(passed, key=lambda purpose: purpose.follows.estimate, default=None)
        if found and not self._carried_by_fewer(found):
            self.purposes.append(found)

    def _carried_by_fewer(self, found: Purpose) -> bool:
        """Whether one head of a set was found to carry a variable of the same column before."""
        return any(
            p.heads
            and set(p.heads) < set(found.heads)
            and (p.row, p.layer, p.digit, p.column)
            == (found.row, found.layer, found.digit, found.column)
            for p in self.purposes
        )

    def _purpose(self, part: Node, hypothesis: Hypothesis) -> Purpose | None:
        """The purpose, if the hypothesis beats its controls."""
        follows = self._swaps.follows(part, hypothesis)
        control = self._best_control(part, hypothesis)
        nearest = self._swaps.nearest_rival(part, hypothesis)
        if nearest.margin <= 0 or (control and follows.low <= control[1].high):
            return None
        return Purpose(
            node=str(part),
            row=part.row,
            layer=part.layer,
            heads=list(part.heads),
            digit=f"A{hypothesis.digit}",
            variable=str(hypothesis),
            kind=hypothesis.kind,
            column=hypothesis.column,
            follows=follows,
            control_node=str(control[0]) if control else None,
            control_node_follows=control[1] if control else None,
            control_variable=nearest.name,
            follows_this=nearest.follows_this,
            follows_control=nearest.follows_rival,
        )

    def _best_control(self, part: Node, hypothesis: Hypothesis) -> tuple[Node, Share] | None:
        """The control node that does best on the same pairs.

        For a head: another head of the same row. For several: also each of them alone, or the
        set would say nothing new. An MLP and the only head of a model have no control node.
        """
        here = (part.row, part.layer)
        singles = [p for p in self._swaps.said if len(p.heads) == 1 and (p.row, p.layer) == here]
        return self._swaps.best(hypothesis, [p for p in singles if part.heads and p != part])

    def missing_at(self, k: int) -> list[str]:
        """What Algorithm 1 needs for a digit and no head, or set of heads, was found to carry."""
        found = [p for p in self.purposes if p.digit == f"A{k}" and p.heads]
        carried = {(p.kind, p.column) for p in found}
        missing, names = [], self._layout.operation.subtasks
        if not self._swaps.predictions[k]:
            return []
        if k < self._digits and not {(names.base, k), (DIGIT, k)} & carried:
            missing.append(f"{names.base}({k})")
        place = min(k, self._digits)
        for column in range(place - 1, max(-1, place - 1 - ALGORITHM_1_REACH), -1):
            alone = {(names.makes, column), (STATE, column)} & carried
            if not alone and not any(self._brings_carry(p, column) for p in found):
                lowest = column in (place - ALGORITHM_1_REACH, 0)
                missing.append(f"{names.makes if lowest else STATE}({column})")
        return missing

    def _brings_carry(self, purpose: Purpose, column: int) -> bool:
        """Whether a part carries the arriving carry, or the digit, also where this column decides.

        One that only knows a higher column is right in most pairs, but not in these: there it
        brings either every carry or none.
        """
        if purpose.kind not in (CARRY_IN, DIGIT):
            return False
        k = int(purpose.digit[1:])
        prediction = self._swaps.predictions[k][Hypothesis(purpose.kind, purpose.column, k)]
        part = Node(purpose.row, purpose.layer, tuple(purpose.heads))
        lands = self._swaps.said[part][:, k] == prediction.value
        both = (self._pairs.decided_in(k, column, carrying=carry) for carry in (False, True))
        return all(Share.of_hits(lands[prediction.telling & here]).low > MAJORITY for here in both)

    def missing(self) -> list[str]:
        """All that is missing, highest digit first."""
        return [
            f"A{k}: {name}" for k in reversed(self._swaps.places) for name in self.missing_at(k)
        ]


def _statement(purposes: list[Purpose], missing: list[str], config: ModelConfig) -> str:
    """What each part carries, grouping digits for which it does the same."""
    if not purposes:
        return "No part of the model was found to carry any sub-task."
    said = [
        f"{name} carries {listed([f'{what}, for {spanned(at)}' for what, at in given.items()])}."
        for name, given in _by_part(purposes, config)
    ]
    said += [f"Not found: {', '.join(missing)}."] if missing else []
    return " ".join(said)


def in_short(found: SubtasksFinding, config: ModelConfig) -> str:
    """What single parts of a layer carry for most digits, without the paper's codes.

    The whole statement, if there is none, or there are several layers.
    """
    known = set(config.layout.answer_names)
    alone = [one for one in found.purposes if len(one.heads) < 2 and one.digit in known]
    if not alone or config.layers > 1:
        return found.statement
    said = []
    for name, given in _by_part(alone, config):
        mostly = max(given, key=lambda what: len(given[what]))
        said.append(f"{name} carries {CODE.sub('', mostly)}")
    return f"For most digits {listed(said)}."


def _by_part(
    purposes: list[Purpose], config: ModelConfig
) -> list[tuple[str, dict[str, list[str]]]]:
    """What each part carries, in words, and for which digits."""
    parts: dict[str, dict[str, list[str]]] = {}
    words, tokens = in_words(config.layout.operation), config.layout.position_names
    for p in purposes:
        place, _, part = p.node.partition(".")[2].partition(".")
        column = column_at(min(int(p.digit[1:]), config.digits) - p.column)
        name = part if config.layers == 1 else f"{place}.{part}"
        if p.row < config.layout.first_row:
            name, column = f"{name} at {tokens[p.row]}", f"column {p.column}"
        what = words[p.kind].format(column)
        parts.setdefault(name, {}).setdefault(what, []).append(p.digit)
    return sorted(parts.items())
