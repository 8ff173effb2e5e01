"""Spot checks: the model itself answers questions from decided boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from carryscope.certificate.boxes import RowSpace, questions_of_pairs
from carryscope.certificate.proof import RIGHT, WRONG, RowProof
from carryscope.core.errors import WorkError
from carryscope.model.prediction import predict
from carryscope.model.transformer import Transformer
from carryscope.task.operation import Array
from carryscope.task.questions import Questions

SPOT_CHECKS = 4096
"""Questions drawn from decided boxes for the model to answer."""


def spot_check(model: Transformer, proofs: Sequence[RowProof]) -> int:
    """How many questions were answered as proved. A contradiction is an error, not a finding."""
    generator, answered = np.random.default_rng(0), 0
    for proof in proofs:
        for verdict in (RIGHT, WRONG):
            boxes = proof.leaves(verdict)
            if not len(boxes):
                continue
            drawn = draw(proof.space, boxes, SPOT_CHECKS // (2 * len(proofs)), generator)
            right = predict(model, drawn, free_running=False).right[:, proof.space.row.index]
            if (right != (verdict == RIGHT)).any():
                raise WorkError(
                    f"The proof contradicts the model at {proof.space.row.name}. "
                    "Please report this with the run."
                )
            answered += len(drawn)
    return answered


def draw(
    space: RowSpace, boxes: Int[Array, "box column"], count: int, generator: np.random.Generator
) -> Questions:
    """Questions drawn at random: a box by its share, then a question of the box."""
    share = space.share(boxes)
    chosen = boxes[generator.choice(len(boxes), size=count, p=share / share.sum())]
    pairs = np.empty(chosen.shape, dtype=np.int64)
    for c, tree in enumerate(space.trees):
        start, stop = tree.start[chosen[:, c]], tree.stop[chosen[:, c]]
        pairs[:, c] = tree.order[generator.integers(start, stop)]
    return questions_of_pairs(pairs, space.row.operation)
