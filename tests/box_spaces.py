"""Row spaces with trees grown at random, and the questions of a box one by one."""

from itertools import product

import numpy as np

from carryscope.certificate.boxes import Row, RowSpace
from carryscope.certificate.trees import LEVELS, grow_tree
from carryscope.task.questions import Questions
from carryscope.task.tokens import Format, FormatName


def space_of(digits: int, index: int, name: FormatName = "plain") -> RowSpace:
    row = Row(Format(digits, name), index)
    vectors = np.random.default_rng(index).normal(size=(100, 5))
    kinds = {row.digit: "own", row.query_digit: "query"}
    levels = [LEVELS[kinds.get(c, "other")] for c in range(digits)]
    return RowSpace(row, [grow_tree(vectors @ vectors.T, level) for level in levels])


def questions_of(space: RowSpace, box: np.ndarray) -> Questions:
    """Every question of a box."""
    held = [np.flatnonzero(t.members[n]) for t, n in zip(space.trees, box, strict=True)]
    pairs = np.array(list(product(*held)))
    return Questions(pairs // 10, pairs % 10)
