"""The finding of the sub-task search: purposes with their evidence.

`Purpose(node="P13.L0.H1", digit="A3", variable="state(2)", follows=...)` says that at row 13
head 1 carries the state of column 2 for the answer digit A3.
"""

from __future__ import annotations

import msgspec

from carryscope.core.evidence import Share


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
