"""Row spaces with trees grown at random, and the questions of a box one by one."""

from itertools import product

import numpy as np

from carryscope.certificate.boxes import RowSpace
from carryscope.certificate.rows import Row, SignAndQuery
from carryscope.certificate.trees import grow_tree, levels_of
from carryscope.task.operation import ADD, Operation
from carryscope.task.questions import Questions
from carryscope.task.tokens import Format, FormatName


def space_of(
    digits: int, index: int, name: FormatName = "plain", operation: Operation = ADD
) -> RowSpace:
    layout = Format(digits, name, 15 if operation.signed else 12, operation)
    row = Row(layout, index, operation)
    vectors = np.random.default_rng(index).normal(size=(100, 5))
    kinds = {row.digit: "own", row.query_digit: "query"}
    levels = [levels_of(operation, kinds.get(c, "other")) for c in range(digits)]
    return RowSpace(row, [grow_tree(vectors @ vectors.T, level) for level in levels])


def questions_of(space: RowSpace, box: np.ndarray) -> Questions:
    """Every question of a box."""
    held = [np.flatnonzero(t.members[n]) for t, n in zip(space.trees, box, strict=True)]
    pairs = np.array(list(product(*held)))
    return Questions(pairs // 10, pairs % 10, space.row.operation)


def seen(space: RowSpace, box: np.ndarray) -> tuple[SignAndQuery, RowSpace, int]:
    """What a settled box reads, the space of its sign, and the token it must write."""
    ((reading, _),) = space.readings(box[None])
    of_sign = space.of_sign(reading.negative)
    return reading, of_sign, int(of_sign.targets(of_sign.digits(box[None]))[0])
