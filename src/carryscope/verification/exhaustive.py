"""Every question there is, where there are few enough."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from carryscope.core.errors import WorkError
from carryscope.task.questions import Questions
from carryscope.verification.judging import Judge
from carryscope.verification.partition import Partition
from carryscope.verification.trial import Tally

AT_ONCE = 20_000
"""Questions between two reports of progress."""


def ask_everything(
    judge: Judge,
    partition: Partition,
    answers: int,
    on_round: Callable[[Tally], bool | None] = lambda _: None,
) -> Tally:
    """The tally of all 10^(2n) questions. Half of them would be no sample, so there is no half."""
    tally = Tally.empty(partition, answers)
    digits = partition.digits
    numbers = np.arange(10**digits)
    place = 10 ** np.arange(digits)
    every = (numbers[:, None] // place % 10).astype(np.int8)
    for start in range(0, 100**digits, AT_ONCE):
        index = np.arange(start, min(start + AT_ONCE, 100**digits))
        questions = Questions(every[index // 10**digits], every[index % 10**digits])
        tally.ask(judge, questions, partition.of(questions))
        if on_round(tally):
            raise WorkError("Stopped before every question was asked. Nothing was kept.")
    return tally
