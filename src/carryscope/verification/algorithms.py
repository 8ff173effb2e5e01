"""Ways to add that a model might have learnt, each stated so that it can be held against one.

In: `Columns`. Out: answer digits (units first), and the named variables that decide them.

    exact addition    00445+00555 -> 001000
    Algorithm 1       00445+00555 -> 000000   (sees two columns below each digit)
    look-ahead 3      00445+00555 -> 001000   (sees three)

Algorithms are judged teacher-forced, as models are: one that reads the answer token before its
digit reads the true one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Int

from carryscope.dissection.first_digits import FirstDigitsFinding
from carryscope.task.algorithms import ALGORITHM_1_REACH, exact_sum, look_ahead_sum
from carryscope.task.columns import Columns
from carryscope.task.operation import Array
from carryscope.task.questions import Questions

FARTHEST = 6
"""The farthest look-ahead that is shipped beside exact addition. One that looks farther differs
from it in fewer than one question in a million, which no sample here would show."""

ALGORITHM_1 = "Algorithm 1"
EXACT = "exact addition"
AS_DISSECTED = "as dissected"
WRONG = "wrong columns"


@dataclass(frozen=True, eq=False, kw_only=True)
class Algorithm:
    """A stated way to add."""

    name: str
    about: str
    """What it does, in a sentence."""
    answer: Callable[[Columns], Array]
    """The answer digits, of shape (batch, digit), units first: A0 .. An."""
    variables: Callable[[Columns], Mapping[str, Array]]
    """Named variables, each of shape (batch, digit). Their values at digit k, taken together,
    are the *key* of A_k: they decide it."""
    offsets: Mapping[str, int | None] = field(default_factory=dict)
    """How many columns below its digit each variable is read. None is a variable that stands in
    the row itself; one that is missing belongs to no single column."""
    reads: Bool[Array, "digit column"] | None = None
    """The columns that each answer digit looks at. Null: not stated."""
    control: bool = False
    """Whether it is wrong on purpose, and no candidate."""

    def keys(self, columns: Columns, digit: int) -> Int[Array, " batch"]:
        """The key of one answer digit in each question, as a number."""
        return numbered([values[:, digit] for values in self.variables(columns).values()])


def numbered(parts: Sequence[Array]) -> Int[Array, " batch"]:
    """Each distinct combination of values as a number, counted from 0."""
    code = np.zeros(len(parts[0]), dtype=np.int64)
    for part in parts:
        value = np.unique(part, return_inverse=True)[1]
        code = np.unique(code * (int(value.max()) + 1) + value, return_inverse=True)[1]
    return code


def shipped(digits: int, found: FirstDigitsFinding | None = None) -> list[Algorithm]:
    """The algorithms to try; the last is wrong on purpose.

    A look-ahead as long as the number is exact addition, so that is where they end.
    """
    reaches = [1, 2, *range(3, min(digits - 1, FARTHEST) + 1)]
    known = [as_dissected(found, digits)] if found is not None else []
    return [exact(digits), *(look_ahead(r, digits) for r in reaches), *known, wrong_columns(digits)]


def exact(digits: int) -> Algorithm:
    """Addition as it should be."""

    def variables(columns: Columns) -> dict[str, Array]:
        return {"BA": _base_add(columns), "carry": columns.carry_in}

    return Algorithm(
        name=EXACT,
        about="Every carry arrives, however far it travels.",
        answer=lambda columns: exact_sum(_some_question(columns)),
        variables=variables,
        offsets={"BA": 0},
        reads=_within([digits] * (digits + 1), digits),
    )


def look_ahead(reach: int, digits: int) -> Algorithm:
    """Addition that sees `reach` columns below each digit; two is Algorithm 1, as completed."""
    below = f"{reach} column{'s' * (reach > 1)}"
    return _by_reach(
        ALGORITHM_1 if reach == ALGORITHM_1_REACH else f"look-ahead {reach}",
        f"Sees {below} below each digit; if all of them are nines it assumes that no carry comes.",
        [reach] * (digits + 1),
        [False] * (digits + 1),
    )


def as_dissected(found: FirstDigitsFinding, digits: int) -> Algorithm:
    """What the dissection says of the first digits; the others do as the lowest of those does."""
    rules = {int(rule.digit[1:]): rule for rule in found.rules}
    lowest = rules[min(rules)]
    reach = [rules.get(k, lowest).reach for k in range(digits + 1)]
    by_token = [k in rules and rules[k].reads_token for k in range(digits + 1)]
    told = [f"A{k} sees {reach[k]} below" for k in sorted(rules, reverse=True)]
    told += [f"A{k}, at a nine, the token A{k + 1}" for k in range(digits + 1) if by_token[k]]
    about = f"{'; '.join(told)}; lower digits see {lowest.reach} below."
    return _by_reach(AS_DISSECTED, about, reach, by_token)


def wrong_columns(digits: int) -> Algorithm:
    """Algorithm 1 one column too low: what a claim about the wrong columns scores."""
    right = look_ahead(ALGORITHM_1_REACH, digits)
    assert right.reads is not None

    def lowered(columns: Columns) -> Columns:
        return Columns(np.pad(columns.sums, ((0, 0), (1, 0)))[:, :-1])

    return replace(
        right,
        name=WRONG,
        about="Algorithm 1 one column too low: wrong on purpose, as a control.",
        answer=lambda columns: right.answer(lowered(columns)),
        variables=lambda columns: right.variables(lowered(columns)),
        offsets={name: 1 + offset for name, offset in right.offsets.items() if offset is not None},
        reads=np.pad(right.reads[:, 1:], ((0, 0), (0, 1))),
        control=True,
    )


def _by_reach(name: str, about: str, reach: Sequence[int], by_token: Sequence[bool]) -> Algorithm:
    """Each digit with its own look-ahead. Where its column sums to 9, the answer token before a
    digit shows the carry that arrives: a digit that reads it is right there."""
    farthest = max(reach)
    states = [j for j in range(1, farthest) if any(r > j for r in reach)]
    carries = [j for j in range(1, farthest + 1) if j in reach]

    def answer(columns: Columns) -> Array:
        question, digits = _some_question(columns), range(len(reach))
        seen = {r: look_ahead_sum(question, reach=r) for r in set(reach)}
        said = np.stack([seen[reach[k]][:, k] for k in digits], axis=1)
        shown = _own_nine(columns) & np.array(by_token)
        return np.where(shown, exact_sum(question), said)

    def variables(columns: Columns) -> dict[str, Array]:
        found = {"BA": _base_add(columns)}
        for j in states:
            state = _below(columns.state, j)
            found[f"state {j} below"] = np.where(np.array(reach) > j, state, 0)
        for j in carries:
            made = _below(columns.make_carry, j)
            found[f"MC1 {j} below"] = np.where(np.array(reach) == j, made, 0)
        if any(by_token):
            found["carry in token"] = columns.carry_in & _own_nine(columns) & np.array(by_token)
        return found

    below = {f"state {j} below": j for j in states} | {f"MC1 {j} below": j for j in carries}
    token = {"carry in token": None} if any(by_token) else {}
    return Algorithm(
        name=name,
        about=about,
        answer=answer,
        variables=variables,
        offsets={"BA": 0, **below, **token},
        reads=_within(reach, len(reach) - 1),
    )


def _some_question(columns: Columns) -> Questions:
    """A question with these raw sums. Adders see no more than that, so any will do."""
    first = np.minimum(columns.sums, 9)
    return Questions(first, columns.sums - first)


def _base_add(columns: Columns) -> Int[Array, "batch digit"]:
    """BA at each answer digit; A_n has no column of its own."""
    return np.pad(columns.base_add, ((0, 0), (0, 1)))


def _own_nine(columns: Columns) -> Bool[Array, "batch digit"]:
    return np.pad(columns.make_sum_9, ((0, 0), (0, 1)))


def _below(values: Array, offset: int) -> Array:
    """What stands `offset` columns below each answer digit; nothing is 0, which is *kill*."""
    n = values.shape[1]
    return np.pad(values, ((0, 0), (offset, 0)))[:, : n + 1]


def _within(reach: Sequence[int], digits: int) -> Bool[Array, "digit column"]:
    """The columns from each digit's own down to its reach."""
    below = np.arange(digits + 1)[:, None] - np.arange(digits)
    return np.asarray((below >= 0) & (below <= np.array(reach)[:, None]))
