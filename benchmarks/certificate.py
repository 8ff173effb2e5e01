"""What a certificate costs: the time of a box, and how many boxes it takes at n digits.

In: the shipped model, and others of the paper's shape trained by the same recipe. Out: rows of
the speed table. Times are of one machine, so the time of a box is also told in questions
answered, measured in turns, one thread on both sides. Counts of boxes are estimates with
intervals (`boxes.py`); they depend on the models alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from statistics import fmean

import numpy as np
import torch
from jaxtyping import Int

from benchmarks.boxes import (
    ONE_LEVEL,
    SMALL,
    Boxes,
    Drawn,
    by_query,
    look_down,
    settled_boxes,
)
from benchmarks.speed import Measure, in_turns, timed
from carryscope.certificate.certify import subject_of
from carryscope.certificate.exploring import CHUNK, Fragment
from carryscope.certificate.workers import Subject, Task, Worker
from carryscope.core.errors import CallError
from carryscope.model.files import CONFIG_FILE
from carryscope.model.prediction import CHUNK as QUESTIONS_AT_ONCE
from carryscope.model.prediction import predict
from carryscope.model.transformer import Transformer
from carryscope.stages import SHIPPED, Run
from carryscope.task.operation import Array
from carryscope.task.sampling import uniform
from carryscope.training.config import RunConfig, differences
from carryscope.training.presets import preset, run_config

DIGITS = (3, 5, 7, 10)
"""Sizes of the questions at which boxes are counted."""

RECIPE = "fast-5"
"""The recipe of all the models: that of the shipped one, with another number of digits."""

DRAWN_FROM = 40
"""Boxes that are looked at at once, to find some that are timed."""

QUESTIONS = 4 * QUESTIONS_AT_ONCE
"""Questions answered in one turn."""


def recipe(digits: int) -> RunConfig:
    """How the model for so many digits is trained."""
    return run_config(RECIPE, {"digits": digits})


def model_directory(models: Path, digits: int) -> Path:
    """Where the model for so many digits is: the shipped one, or one among `models`."""
    shipped = preset(RECIPE).model.digits
    return SHIPPED if digits == shipped else models / f"fast-{digits}"


def check_recipe(directory: Path, digits: int) -> None:
    """Refuse a model that was trained in another way than the others."""
    if not (directory / CONFIG_FILE).exists():
        return
    different = differences(recipe(digits), Run(directory).config)
    if different:
        raise CallError(
            f"The model at {directory} is none of {RECIPE} for {digits} digits: "
            f"{'; '.join(different)}. Choose another --models."
        )


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread, and as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True, eq=False)
class BoxSample:
    """Boxes of one row and query as the search meets them, from coarse to fine."""

    worker: Worker
    task: Task

    @classmethod
    def drawn(
        cls, subject: Subject, row: int, generator: np.random.Generator, *, small: float
    ) -> BoxSample:
        """Boxes drawn at random from all that the search would bound."""
        space, worker = subject.spaces[row], Worker(subject)
        query, begin = _any(by_query(space, settled_boxes(space)), generator)
        looks = look_down(
            worker, row, query, begin, generator, small=small, repeats=1, most=DRAWN_FROM
        )
        met = reduce(Drawn.__add__, (look.drawn for look in looks))
        at = generator.choice(len(met), size=CHUNK, p=met.weight / met.weight.sum())
        return cls(worker, Task(row, query, met.boxes[at], met.beaten[at], ONE_LEVEL, CHUNK))

    def bound(self) -> Fragment:
        """Bound them all at once, as the search does."""
        found: Fragment = self.worker.do(self.task)
        return found


def _any(
    queries: dict[int, Int[Array, "_ column"]], generator: np.random.Generator
) -> tuple[int, Int[Array, "box column"]]:
    """One of the queries, each as likely as the next, with its boxes."""
    query = int(generator.choice(list(queries)))
    return query, queries[query]


def box_speed(model: Transformer, rounds: int, *, small: float = SMALL) -> list[Measure]:
    """The time of a box, in milliseconds and in questions answered."""
    generator = np.random.default_rng(0)
    questions = uniform(generator, QUESTIONS, model.config.digits)
    with one_thread():
        subject = subject_of(model)
        rows = range(len(subject.spaces))
        samples = [BoxSample.drawn(subject, row, generator, small=small) for row in rows]
        contestants: dict[str, Callable[[int], float]] = {
            "boxes": timed(lambda: [sample.bound() for sample in samples]),
            "questions": timed(lambda: predict(model, questions, free_running=False)),
        }
        times = in_turns(contestants, rounds, turn=1)
    box = times["boxes"] / (CHUNK * len(samples))
    question = times["questions"] / QUESTIONS
    name = f"bounding a box of a {model.config.digits}-digit certificate"
    return [
        Measure(
            name=f"{name}, answering a question with its probabilities = 1",
            value=box / question,
            unit="x",
        ),
        Measure(name=name, value=1e3 * box, unit="ms"),
        Measure(
            name="answering a question with its probabilities, one thread",
            value=1e3 * question,
            unit="ms",
        ),
    ]


def box_rows(found: Sequence[Boxes]) -> list[Measure]:
    """Boxes in all at each number of digits, and for each answer digit, with what they decide."""
    rows = []
    for boxes in found:
        until = f"down to {boxes.small:.0e} of all questions"
        rows.append(
            Measure.estimated(f"boxes at {boxes.digits} digits, {until}, in all", boxes.total)
        )
        decided = fmean(row.decided.estimate for row in boxes.rows)
        name = f"share decided at {boxes.digits} digits, mean of the answer digits"
        rows.append(Measure(name=name, value=decided, unit=""))
        for row in boxes.rows:
            which = f"{row.digit} of {boxes.digits} digits"
            rows.append(Measure.estimated(f"boxes for {which}", row.boxes))
            rows.append(Measure.estimated(f"share decided for {which}", row.decided))
    return rows
