"""What is put on trial: questions in, wrong answer tokens out.

A judge is a function, so that the estimators can be tried on predictors whose failure rate is
known as well as on models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from carryscope.model.prediction import answer_both
from carryscope.model.transformer import Transformer
from carryscope.task.operation import Array
from carryscope.task.questions import Questions


class Mistakes(NamedTuple):
    """Which answer tokens are wrong, in the order the model writes them."""

    teacher_forced: Bool[Array, "batch answer"]
    free_running: Bool[Array, "batch answer"]

    @property
    def failed(self) -> Bool[Array, " batch"]:
        """Questions with a wrong answer.

        Teacher-forced or free-running makes no difference here: up to the first wrong token
        the model reads the same, so either both have one or neither has.
        """
        return np.asarray(self.teacher_forced.any(axis=1))


Judge = Callable[[Questions], Mistakes]


def judge_of(model: Transformer) -> Judge:
    """The judge of a model."""

    def judge(questions: Questions) -> Mistakes:
        forced, free = answer_both(model, questions)
        return Mistakes(~forced.right, ~free.right)

    return judge
