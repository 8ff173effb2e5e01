"""The search for sub-tasks in progress: parts patched, hypotheses scored, controls beaten or not.

In: an engine and pairs of questions. Out: the purposes and scores gathered on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

from carryscope.core.evidence import Share
from carryscope.dissection.engine import Engine
from carryscope.dissection.hypotheses import Hypothesis, Pairs, Prediction, hypotheses_for
from carryscope.dissection.interventions import NodeSet, parts_at, rows_that_matter
from carryscope.dissection.purposes import Purpose, Scores
from carryscope.task.operation import Array

LEAST_PAIRS = 30
"""With fewer pairs a hypothesis is not tested, and two count as not told apart."""

MAJORITY = 0.5
"""A part that decides a variable decides it more often than not."""


class Rival(NamedTuple):
    """A control hypothesis, on the pairs where it and the one tested predict different digits."""

    name: str
    follows_this: Share
    follows_rival: Share

    @property
    def margin(self) -> float:
        """How far the intervals are apart; negative if they overlap."""
        return self.follows_this.low - self.follows_rival.high


class Search:
    """The search in progress."""

    def __init__(self, engine: Engine, pairs: Pairs, on_progress: Callable[[int], object]) -> None:
        self._engine, self._pairs, self._on_progress = engine, pairs, on_progress
        self._digits = engine.config.digits
        self._said: dict[NodeSet, Array] = {}
        self._clean = engine.answers(pairs.base).predicted[0][:, ::-1]
        self._predictions: dict[int, dict[Hypothesis, Prediction]] = {
            k: {
                h: pairs.predict(h, right=self._clean[:, k] == pairs.own_digit(k))
                for h in hypotheses_for(k, self._digits)
            }
            for k in range(self._digits + 1)
        }
        self.purposes: list[Purpose] = []
        self.scores: list[Scores] = []

    def everywhere(self) -> None:
        """Single nodes first; then sets of heads, for the digits that still want something."""
        places = [
            (row, layer)
            for layer in range(self._engine.config.layers)
            for row in rows_that_matter(self._engine.config, layer)
        ]
        nodes = [node for place in places for node in parts_at(self._engine.config, *place)]
        self._try([NodeSet((node,)) for node in nodes], range(self._digits + 1))
        wanting = [k for k in range(self._digits + 1) if self.missing_at(k)]
        heads = [
            tuple(node for node in nodes if node[:2] == place and node.head is not None)
            for place in places
        ]
        whole = [NodeSet(row) for row in heads if len(row) > 1]
        whole = [row for row in self._run(whole, wanting) if self._does_anything(row, wanting)]
        pairs = [NodeSet(pair) for row in whole for pair in combinations(row.nodes, 2)]
        self._try([pair for pair in pairs if pair not in whole], wanting)
        self._judge(whole, wanting)

    def _does_anything(self, part: NodeSet, digits: Sequence[int]) -> bool:
        """Whether patching a part changes answers enough for a hypothesis to be tested."""
        changed = (self._said[part] != self._clean)[:, digits].any(1)
        return bool(changed.sum() >= LEAST_PAIRS)

    def _digits_reached(self, part: NodeSet) -> list[int]:
        """The answer digits that a change of this part can reach."""
        layout = self._engine.layout
        last = part.layer == self._engine.config.layers - 1
        rows = (
            [part.row] if last else range(max(part.row, layout.first_row), layout.answer_rows.stop)
        )
        digits = [layout.answer_rows.stop - 1 - p for p in rows]
        return [k for k in digits if k <= self._digits]

    def _try(self, parts: Sequence[NodeSet], digits: Sequence[int]) -> None:
        self._judge(self._run(parts, digits), digits)

    def _run(self, parts: Sequence[NodeSet], digits: Sequence[int]) -> list[NodeSet]:
        """Answer the base questions with each part that reaches a digit taken from the source."""
        parts = [part for part in parts if set(self._digits_reached(part)) & set(digits)]
        changes = [part.patched(self._pairs.source) for part in parts]
        if parts:
            outcomes = self._engine.answers(
                self._pairs.base, changes, on_progress=self._on_progress
            )
            self._said |= dict(zip(parts, outcomes.predicted[:, :, ::-1], strict=True))
        return parts

    def _judge(self, parts: Sequence[NodeSet], digits: Sequence[int]) -> None:
        for part in parts:
            for k in self._digits_reached(part):
                if k in digits:
                    self._judge_one(part, k)

    def _judge_one(self, part: NodeSet, k: int) -> None:
        """Score every hypothesis about one digit; keep the best that beats all its controls."""
        scores = {
            h: self._follows(part, h)
            for h, prediction in self._predictions[k].items()
            if prediction.telling.sum() >= LEAST_PAIRS
        }
        named = {str(h): share for h, share in scores.items()}
        self.scores.append(Scores(node=str(part), digit=f"A{k}", follows=named))
        strong = [h for h, share in scores.items() if share.low > MAJORITY]
        passed = [purpose for h in strong if (purpose := self._purpose(part, h))]
        found = max(passed, key=lambda purpose: purpose.follows.estimate, default=None)
        if found and not self._carried_by_fewer(found):
            self.purposes.append(found)

    def _follows(self, part: NodeSet, hypothesis: Hypothesis) -> Share:
        """The share of telling pairs that land on the predicted digit."""
        prediction = self._predictions[hypothesis.digit][hypothesis]
        said = self._said[part][:, hypothesis.digit]
        return Share.of_hits((said == prediction.value)[prediction.telling])

    def _carried_by_fewer(self, found: Purpose) -> bool:
        """Whether one head of a set was found to carry a variable of the same column before."""
        return any(
            p.heads
            and set(p.heads) < set(found.heads)
            and (p.row, p.layer, p.digit, p.column)
            == (found.row, found.layer, found.digit, found.column)
            for p in self.purposes
        )

    def _purpose(self, part: NodeSet, hypothesis: Hypothesis) -> Purpose | None:
        """The purpose, if the hypothesis beats its controls."""
        follows = self._follows(part, hypothesis)
        control = self._best_control(part, hypothesis)
        rivals, same = self._rivals(part, hypothesis)
        nearest = min(rivals, key=lambda rival: rival.margin)
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
            same_as=same,
            follows=follows,
            control_node=str(control[0]) if control else None,
            control_node_follows=control[1] if control else None,
            control_variable=nearest.name,
            follows_this=nearest.follows_this,
            follows_control=nearest.follows_rival,
        )

    def _best_control(self, part: NodeSet, hypothesis: Hypothesis) -> tuple[NodeSet, Share] | None:
        """The control node that does best on the same pairs.

        For a head: another head of the same row. For several: also each of them alone, or the
        set would say nothing new. An MLP, and the only head of a model, have nothing beside
        them, so they have no control node.
        """
        here = (part.row, part.layer)
        singles = [p for p in self._said if len(p.heads) == 1 and (p.row, p.layer) == here]
        beside = [p for p in singles if part.heads and p != part]
        shares = [(p, self._follows(p, hypothesis)) for p in beside]
        return max(shares, key=lambda pair: pair[1].estimate, default=None)

    def _rivals(self, part: NodeSet, hypothesis: Hypothesis) -> tuple[list[Rival], list[str]]:
        """Every other hypothesis as a control; and those that no pair tells from this one."""
        k = hypothesis.digit
        said, ours = self._said[part][:, k], self._predictions[k][hypothesis]

        def against(name: str, value: Array, apart: Array) -> Rival:
            here, there = (Share.of_hits((said == v)[apart]) for v in (ours.value, value))
            return Rival(name, here, there)

        rivals, same = [against("nothing", self._pairs.own_digit(k), ours.telling)], []
        for other, theirs in self._predictions[k].items():
            apart = ours.sure & theirs.sure & (ours.value != theirs.value)
            if apart.sum() >= LEAST_PAIRS:
                rivals.append(against(str(other), theirs.value, apart))
            elif other != hypothesis and (ours.telling & theirs.telling).sum() >= LEAST_PAIRS:
                same.append(str(other))
        return rivals, same

    def missing_at(self, k: int) -> list[str]:
        """What Algorithm 1 needs for a digit and no head, or set of heads, was found to carry."""
        found = {(p.kind, p.column) for p in self.purposes if p.digit == f"A{k}" and p.heads}
        if ("digit", k) in found:
            return []
        missing = []
        if k < self._digits and ("BA", k) not in found:
            missing.append(f"BA({k})")
        if k >= 1 and not {("MC1", k - 1), ("state", k - 1), ("carry_in", k)} & found:
            missing.append(f"{'state' if k > 1 else 'MC1'}({k - 1})")
        if k >= 2 and not {("MC1", k - 2), ("state", k - 2), ("carry_in", k)} & found:
            missing.append(f"MC1({k - 2})")
        return missing

    def missing(self) -> list[str]:
        """All that is missing, highest digit first."""
        digits = reversed(range(self._digits + 1))
        return [f"A{k}: {name}" for k in digits for name in self.missing_at(k)]
