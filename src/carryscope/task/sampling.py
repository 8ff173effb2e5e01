"""Questions drawn at random, always from a generator that is passed in.

In: a numpy generator and what to draw. Out: `Questions`, or pairs of them.

    uniform            every question equally likely
    enriched           the paper's training data: some batches with extra columns that propagate
    near_nines         some columns one off from propagating
    with_states        uniform among questions whose columns have given states
    with_patterns      the same for patterns such as KPPG*
    carry_pairs        pairs that differ in the carry into one digit
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Int

from carryscope.core.errors import CallError
from carryscope.task.operation import ADD, BASE, SUBTRACT, Array, Operation, State
from carryscope.task.questions import Questions, check_digits
from carryscope.task.strata import ANY_STATE, pattern_states

PAPER_BATCH_SHARE = 0.2
"""The paper enriches one batch in five."""

PAPER_CELL_SHARE = 0.2
"""In an enriched batch the paper overwrites one column in five so that it propagates."""


def uniform(
    generator: np.random.Generator,
    count: int,
    digits: int,
    operation: Operation = ADD,
    *,
    differences: float = 0.5,
) -> Questions:
    """Questions drawn uniformly from all 10^(2n); of a mixture, this share are differences."""
    check_digits(digits)
    pair = generator.integers(0, BASE, (2, count, digits), dtype=np.int8)
    kind = None
    if operation.parts:
        subtract = operation.parts.index(SUBTRACT)
        chosen = generator.random(count) < differences
        kind = np.where(chosen, subtract, 1 - subtract).astype(np.int8)
    return Questions(pair[0], pair[1], operation, kind)


def enriched(
    generator: np.random.Generator,
    count: int,
    digits: int,
    operation: Operation = ADD,
    *,
    batch_share: float = PAPER_BATCH_SHARE,
    cell_share: float = PAPER_CELL_SHARE,
    differences: float = 0.5,
) -> Questions:
    """One training batch by the paper's rule.

    With chance `batch_share` the batch has `cell_share` of its (question, column) cells
    overwritten so that the column propagates, by changing the first number or the second, by
    a fair coin.
    """
    questions = uniform(generator, count, digits, operation, differences=differences)
    if generator.random() >= batch_share:
        return questions
    return with_nines(generator, questions, generator.random((count, digits)) < cell_share)


def with_nines(
    generator: np.random.Generator, questions: Questions, cells: Bool[Array, "batch column"]
) -> Questions:
    """The questions with the marked cells made to propagate, on a side chosen by a fair coin."""
    first, second = questions.first, questions.second
    heads = generator.random(cells.shape) < 0.5
    new_first = questions.each(lambda one: one.passing_first[second])
    new_second = questions.each(lambda one: one.passing_second[first])
    return replace(
        questions,
        first=np.where(cells & heads, new_first, first),
        second=np.where(cells & ~heads, new_second, second),
    )


def near_nines(
    generator: np.random.Generator, questions: Questions, cells: Bool[Array, "batch column"]
) -> Questions:
    """The questions with the marked cells one off from propagating, on a side by a fair coin.

    For addition these columns sum to 8 or 10, in subtraction their digits differ by 1. All pairs
    of a raw value are as likely.
    """
    first, second = questions.first.copy(), questions.second.copy()
    for place, operation in enumerate(questions.operation.each_part):
        ours = cells if questions.kind is None else cells & (questions.kind == place)[:, None]
        raws = operation.propagates + generator.choice((-1, 1), int(ours.sum()))
        first[ours], second[ours] = _pairs_of(generator, raws, operation)
    return replace(questions, first=first, second=second)


def with_states(
    generator: np.random.Generator,
    states: Int[Array, "batch column"],
    operation: Operation = ADD,
) -> Questions:
    """Questions drawn uniformly among those whose columns have these states.

    In subtraction these are states of the question as written, before numbers are exchanged.
    """
    first = np.empty(states.shape, dtype=np.int8)
    second = np.empty(states.shape, dtype=np.int8)
    for state, pairs in operation.pairs_of_state.items():
        cells = states == state
        drawn = pairs[generator.integers(0, len(pairs), int(cells.sum()))]
        first[cells], second[cells] = drawn[:, 0], drawn[:, 1]
    return Questions(first, second, operation)


def with_patterns(
    generator: np.random.Generator, count: int, patterns: Sequence[str], operation: Operation = ADD
) -> Questions:
    """Questions of some patterns of states, evenly; a column of any state is uniform.

    In a mixture each operation is as often.
    """
    if parts := operation.parts:
        counts = [(count + place) // len(parts) for place in range(len(parts))]
        each = zip(counts, parts, strict=True)
        return Questions.joined([with_patterns(generator, n, patterns, one) for n, one in each])
    fixed = np.stack([pattern_states(pattern) for pattern in patterns])
    fixed = fixed[generator.integers(0, len(patterns), count)]
    free = uniform(generator, count, fixed.shape[1], operation)
    states = np.where(fixed == ANY_STATE, operation.state[free.first, free.second], fixed)
    return with_states(generator, states, operation)


def carry_pairs(
    generator: np.random.Generator,
    count: int,
    digits: int,
    digit: int,
    operation: Operation = ADD,
    *,
    depth: int = 0,
    own_nine: bool = False,
) -> tuple[Questions, Questions]:
    """Pairs (base, source) that differ in the carry into one digit, and in one column below it.

    `depth` columns directly below the digit propagate; of the column below those, one side
    generates and the other kills, and its digit without a carry is the same. Every other column
    has the same digits on both sides. With `own_nine` the digit's own column propagates too.
    Which side is base is a fair coin. In subtraction the highest column kills, so that both
    answers are positive.
    """
    highest = digits - 1 - own_nine if operation.signed else digits
    if not 0 <= depth < digit <= highest:
        raise CallError(f"A{digit} of {digits}-digit numbers has no column at depth {depth}.")
    column = digit - 1 - depth
    passing = np.zeros((count, digits), dtype=bool)
    passing[:, column + 1 : digit + own_nine] = True
    base = with_nines(generator, uniform(generator, count, digits, operation), passing)
    raws = [operation.raws_of_state[state] for state in (State.KILL, State.GENERATE)]
    if operation.signed:
        base = _with_column(generator, base, digits - 1, generator.choice(raws[0], count))
    kill, generate = np.stack(raws)[:, generator.integers(0, len(raws[0]), count)]
    coin = generator.random(count) < 0.5
    ours = _with_column(generator, base, column, np.where(coin, kill, generate))
    return ours, _with_column(generator, base, column, np.where(coin, generate, kill))


def _with_column(
    generator: np.random.Generator, questions: Questions, column: int, raws: Int[Array, " batch"]
) -> Questions:
    """The questions with one column replaced by a random pair of the given raw values."""
    first, second = questions.first.copy(), questions.second.copy()
    first[:, column], second[:, column] = _pairs_of(generator, raws, questions.operation)
    return Questions(first, second, questions.operation)


def _pairs_of(
    generator: np.random.Generator, raws: Int[Array, " cell"], operation: Operation
) -> tuple[Int[Array, " cell"], Int[Array, " cell"]]:
    """For each raw value the two digits of a random pair that has it."""
    raw_of_pair = operation.alone.raw.ravel()
    pairs = np.argsort(raw_of_pair, kind="stable")
    start = np.searchsorted(raw_of_pair[pairs], raws, side="left")
    stop = np.searchsorted(raw_of_pair[pairs], raws, side="right")
    drawn = pairs[generator.integers(start, stop)]
    return drawn // BASE, drawn % BASE
