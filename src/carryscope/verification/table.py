"""The learned table: for each answer digit and each key, the digit that the model gives.

In: what the model said to a sample of questions. Out: a `LearnedDigit` for each answer digit.

The paper's claim is that a digit is looked up by 60 keys: base add of its own column, state of
the one below, carry made two below. The table shows what the model makes of each key, whether
it always does (its purity), and what Algorithm 1 has there.
"""

from __future__ import annotations

import msgspec
import numpy as np
from jaxtyping import Bool, Int

from carryscope.dissection.keys import Keys
from carryscope.task.operation import Array, State
from carryscope.verification.stratified import Sample, WeightedShare


class TableEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One key of one answer digit."""

    base_add: int | None
    """Null for A_n, which has no column of its own."""
    state: str | None
    """K, P or G: the state one column below. Null if there is none."""
    carry: bool | None
    """Whether the column two below makes a carry. Null if there is none."""
    token: int
    """What the model gives most often: a digit, unless the model does not know what digits are."""
    purity: WeightedShare
    """How often it gives that, over uniform questions of this key."""
    next_token: int | None
    """What it gives most often otherwise."""
    algorithm_1: int
    differs: bool
    """Whether that is another digit than the model's."""


class LearnedDigit(msgspec.Struct, frozen=True, kw_only=True):
    """The table of one answer digit."""

    digit: str
    entries: list[TableEntry]

    @property
    def differing(self) -> list[TableEntry]:
        """The keys at which the model has another digit than Algorithm 1."""
        return [entry for entry in self.entries if entry.differs]


def learned_table(sample: Sample, said: Int[Array, "batch digit"]) -> list[LearnedDigit]:
    """The tables of all answer digits, the highest first."""
    return [
        LearnedDigit(
            digit=f"A{k}", entries=_entries(sample, said[:, k], Keys.of(sample.columns, k))
        )
        for k in reversed(range(said.shape[1]))
    ]


def _entries(sample: Sample, said: Int[Array, " batch"], keys: Keys) -> list[TableEntry]:
    code = keys.code
    return [_entry(sample, said, keys, code == key) for key in range(int(code.max()) + 1)]


def _entry(
    sample: Sample, said: Int[Array, " batch"], keys: Keys, here: Bool[Array, " batch"]
) -> TableEntry:
    first = int(here.argmax())
    mass = np.bincount(said[here], weights=sample.weight[here])
    order = np.argsort(-mass, kind="stable")
    token, then = int(order[0]), [int(t) for t in order[1:2] if mass[t] > 0]
    purity = sample.share(said == token, here)
    assert purity is not None
    state, carry = keys.parts.get("state"), keys.parts.get("carry")
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
