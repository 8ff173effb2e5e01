"""Answers with parts taken from other questions, and the hypotheses that they follow.

In: an engine and pairs of questions. Out: `Interchange`, which says of each part what share of the
pairs land on the digit that a hypothesis predicts, and which hypothesis comes nearest. A *part* is
whatever names a change: a node, or a path between nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from carryscope.core.evidence import Share
from carryscope.core.progress import Advance
from carryscope.dissection.engine import Change, Engine
from carryscope.dissection.hypotheses import Hypothesis, Pairs, Prediction, hypotheses_for
from carryscope.dissection.interventions import Node
from carryscope.task.operation import Array

Part = TypeVar("Part", bound=Hashable)

LEAST_PAIRS = 30
"""With fewer pairs a hypothesis is not tested, and two hypotheses count as the same."""

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


class Interchange(Generic[Part]):
    """What the model says to the base questions, with parts taken from the source questions."""

    def __init__(
        self, engine: Engine, pairs: Pairs, advance: Advance, *, resolved: bool = False
    ) -> None:
        self._engine, self._pairs, self._advance = engine, pairs, advance
        digits, layout = engine.config.digits, engine.layout
        self.places = range(digits + 1 + layout.operation.signed)
        """Answer digits, units first; and the sign, where there is something to decide."""
        self.said: dict[Part, Array] = {}
        """By part, the answer digits, units first."""
        self.clean = engine.answers(pairs.base).predicted[0][:, ::-1]
        self.predictions: dict[int, dict[Hypothesis, Prediction]] = {
            k: {
                h: pairs.predict(h, right=self.clean[:, k] == pairs.own_digit(k))
                for h in hypotheses_for(k, layout, resolved=resolved)
            }
            for k in self.places
        }
        self.tests = 0
        """Hypotheses tested so far."""

    def run(self, changes: Mapping[Part, Change]) -> None:
        """Answer the base questions under each change."""
        if changes:
            asked = list(changes.values())
            outcomes = self._engine.answers(self._pairs.base, asked, self._advance)
            self.said |= dict(zip(changes, outcomes.predicted[:, :, ::-1], strict=True))

    def reached(self, node: Node) -> list[int]:
        """The answer digits that a change of this node can reach, highest first."""
        own = self._engine.layout.answer_rows.stop - 1 - node.row
        below = node.layer < self._engine.config.layers - 1
        return [k for k in reversed(self.places) if k == own or (k < own and below)]

    def does_anything(self, part: Part, digits: Sequence[int]) -> bool:
        """Whether a part changes answers enough for a hypothesis to be tested."""
        changed = (self.said[part] != self.clean)[:, digits].any(1)
        return bool(changed.sum() >= LEAST_PAIRS)

    def strong(self, part: Part, digit: int) -> list[Hypothesis]:
        """The hypotheses about a digit that more than half of the telling pairs follow."""
        scores = {
            h: self.follows(part, h)
            for h, prediction in self.predictions[digit].items()
            if prediction.telling.sum() >= LEAST_PAIRS
        }
        self.tests += len(scores)
        return [h for h, share in scores.items() if share.low > MAJORITY]

    def follows(self, part: Part, hypothesis: Hypothesis) -> Share:
        """The share of telling pairs that land on the predicted digit."""
        prediction = self.predictions[hypothesis.digit][hypothesis]
        said = self.said[part][:, hypothesis.digit]
        return Share.of_hits((said == prediction.value)[prediction.telling])

    def best(self, hypothesis: Hypothesis, parts: Sequence[Part]) -> tuple[Part, Share] | None:
        """The part of these that follows a hypothesis most: the control."""
        shares = [(part, self.follows(part, hypothesis)) for part in parts]
        return max(shares, key=lambda pair: pair[1].estimate, default=None)

    def nearest_rival(self, part: Part, hypothesis: Hypothesis) -> Rival:
        """The control hypothesis that comes nearest, among all that pairs separate from this one.

        `nothing` predicts the base's own digit.
        """
        k = hypothesis.digit
        said, ours = self.said[part][:, k], self.predictions[k][hypothesis]

        def against(name: str, value: Array, apart: Array) -> Rival:
            here, there = (Share.of_hits((said == v)[apart]) for v in (ours.value, value))
            return Rival(name, here, there)

        rivals = [against("nothing", self._pairs.own_digit(k), ours.telling)]
        for other, theirs in self.predictions[k].items():
            apart = ours.sure & theirs.sure & (ours.value != theirs.value)
            if apart.sum() >= LEAST_PAIRS:
                rivals.append(against(str(other), theirs.value, apart))
        return min(rivals, key=lambda rival: rival.margin)
