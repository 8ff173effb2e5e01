"""The learned table: for each answer digit and each key, the digit that the model gives.

In: the model's answers to a sample of questions. Out: a `LearnedDigit` for each answer digit.

The paper claims that a digit is looked up by 60 keys: base add of its own column, state of the
column below, carry made two below. The table shows which digit the model gives for each key, how
often (its purity), and which digit Algorithm 1 gives.
"""

from __future__ import annotations

import msgspec
import numpy as np
from jaxtyping import Bool, Int

from carryscope.dissection.keys import Keys
from carryscope.task.operation import Array, State
from carryscope.verification.stratified import WeightedSample, WeightedShare


class TableEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One key of one answer digit."""

    base_add: int | None
    """Null for A_n, which has no column of its own."""
    state: str | None
    """K, P or G: the state one column below. Null if there is none."""
    carry: bool | None
    """Whether the column two below makes a carry. Null if there is none."""
    token: int
    """What the model gives most often. An untrained model may give a token that is no digit."""
    purity: WeightedShare
    """How often it gives this token, over uniform questions with this key."""
    next_token: int | None
    """Its second most frequent token."""
    algorithm_1: int
    differs: bool
    """Whether Algorithm 1 gives another digit than the model."""


class LearnedDigit(msgspec.Struct, frozen=True, kw_only=True):
    """The table of one answer digit."""

    digit: str
    entries: list[TableEntry]

    @property
    def differing(self) -> list[TableEntry]:
        """The keys at which the model differs from Algorithm 1."""
        return [entry for entry in self.entries if entry.differs]


def learned_table(sample: WeightedSample, said: Int[Array, "batch digit"]) -> list[LearnedDigit]:
    """The tables of all answer digits, the highest first."""
    tables = []
    for k in reversed(range(said.shape[1])):
        keys = Keys.of(sample.columns, k)
        code = keys.code
        entries = [
            _entry(sample, said[:, k], keys, code == key) for key in range(int(code.max()) + 1)
        ]
        tables.append(LearnedDigit(digit=f"A{k}", entries=entries))
    return tables


def _entry(
    sample: WeightedSample, said: Int[Array, " batch"], keys: Keys, here: Bool[Array, " batch"]
) -> TableEntry:
    first = int(here.argmax())
    mass = np.bincount(said[here], weights=sample.weight[here])
    order = np.argsort(-mass, kind="stable")
    token, then = int(order[0]), [int(t) for t in order[1:2] if mass[t] > 0]
    purity = sample.share(said == token, here)
    assert purity is not None
    state, carry = keys.parts.get("state 1 below"), keys.parts.get("carry")
    return TableEntry(
        base_add=int(keys.parts["BA"][first]) if "BA" in keys.parts else None,
        state=State(int(state[first])).letter if state is not None else None,
        carry=bool(carry[first]) if carry is not None else None,
        token=token,
        purity=purity,
        next_token=then[0] if then else None,
        algorithm_1=int(keys.answer[first]),
        differs=token != int(keys.answer[first]),
    )
