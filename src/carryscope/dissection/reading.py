"""Which columns the heads read at each answer row, and whether the one that decides is among them.

In: attention patterns of the answer rows. Out: arrays over questions, answer digits and columns,
units first. Needs no torch.

The carry that arrives at A3 of 445+555 is decided in column 0: columns 2 and 1 sum to 9 and pass
on what comes from below. The heads of the shipped model read columns 3, 2 and 1 at that row, so
it is *blind* there.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from carryscope.task.columns import Columns
from carryscope.task.operation import Array
from carryscope.task.tokens import Format

READS = 0.5
"""A head reads a column if the column's two tokens get more than half of its attention."""


def column_shares(
    patterns: Float[Array, "*batch position"], layout: Format
) -> Float[Array, "*batch column"]:
    """The attention that each column gets: its token in the first number and in the second."""
    n = layout.digits
    both = patterns[..., :n] + patterns[..., n + 1 : 2 * n + 1]
    shares: Array = both[..., ::-1]
    return shares


def digit_shares(
    patterns: Float[Array, "batch layer head answer position"], layout: Format
) -> Float[Array, "batch layer head digit column"]:
    """The same at the row of each answer digit, A0 first; a sign's row is left out."""
    shares: Array = column_shares(patterns, layout)[:, :, :, ::-1][:, :, :, : layout.digits + 1]
    return shares


def decision_read(
    columns: Columns, shares: Float[Array, "batch layer head digit column"]
) -> Bool[Array, "batch digit"]:
    """Whether some head reads the column that decides the carry into each digit.

    False at the units, which receive no carry.
    """
    read = (shares > READS).any(axis=(1, 2))
    deciding = columns.deciding[..., None]
    found = np.take_along_axis(read, deciding.clip(min=0), axis=-1) & (deciding >= 0)
    return np.asarray(found[..., 0])
