"""An algorithm of the user's own: a function, checked before use.

In: a function from `Columns` to answer digits, units first. Out: an `Algorithm`, or an error in one
line that says what is wrong. This one never passes a carry on:

    import numpy as np

    def no_cascades(columns):
        carry = np.pad(columns.make_carry, ((0, 0), (1, 0)))
        own = np.pad(columns.base_add, ((0, 0), (0, 1)))
        return (own + carry) % 10
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from carryscope.core.errors import CallError, require
from carryscope.dissection.samples import Samples
from carryscope.task.columns import Columns
from carryscope.task.operation import ADD, BASE, Array, Operation
from carryscope.verification.algorithms import Algorithm
from carryscope.verification.own_function import Function, contained, described

PROBES = 2000
"""Questions with many propagating columns, on which an algorithm is tried before use."""


def own_algorithm(function: Function, digits: int, operation: Operation = ADD) -> Algorithm:
    """An algorithm whose only variable is its answer, tried on questions before it is used."""
    name, about = described(function)

    def answer(columns: Columns) -> Array:
        sums = columns.sums.astype(np.int64)  # products of them do not overflow
        sums.setflags(write=False)
        with contained(f"{name} failed on {len(sums):,} questions"):
            given = np.asarray(function(replace(columns, sums=sums)))
        return _checked(given, columns, f"The answer of {name}")

    columns = Columns.of(Samples(digits, 0, operation).nines_rich("probes", PROBES))
    said = answer(columns)
    if (answer(columns[::-2]) != said[::-2]).any():
        raise CallError(
            f"{name} must answer each question by itself, and the same each time. Got "
            "different answers when the questions came in another order."
        )
    if (said == said[0]).all():
        raise CallError(f"{name} must depend on the question. Got the same answer to all of them.")
    return Algorithm(
        name=name, about=about, answer=answer, variables=lambda c: {"answer": answer(c)}
    )


def _checked(digits: Array, columns: Columns, what: str) -> Array:
    """Digits as whole numbers, one for each question and answer digit."""
    wanted = (len(columns.sums), columns.digits + 1)
    require(
        digits.shape == wanted and digits.dtype.kind in "iub",
        f"{what} must be an array of whole numbers of shape {wanted}: questions, and digits A0 to "
        f"A{columns.digits}",
        f"{digits.dtype} of shape {digits.shape}",
    )
    beyond = digits[(digits < 0) | (digits >= BASE)]
    require(not beyond.size, f"{what} must have digits from 0 to {BASE - 1}", beyond[:1])
    return digits.astype(np.int64)
