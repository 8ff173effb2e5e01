"""Claims of the mathematical framework: in which order tasks are found, and what each is worth.

In: the training story of a run, and its metrics. Out: checks.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

from carryscope.core.evidence import Mean
from carryscope.task.columns import Task
from carryscope.task.framework import task_shares
from carryscope.training.summary import LAST_STEPS
from paper.claims.claims import Check, Claim
from paper.claims.learning import NEVER, when
from paper.claims.numbers import counted, rate, step
from paper.claims.reading import Studies, Study

HALF_A_PER_CENT = 0.005
"""What a paper that prints whole per cents leaves open."""


def task_order(claim: Claim, studies: Studies) -> list[Check]:
    """In each digit BA is learnt before UC1, and UC1 before US9."""
    (study,) = studies.of(claim)
    pairs = {(pair.digit, pair.task): pair for pair in study.story.pairs}
    checks = []
    for k in range(1, study.digits):
        for early, late in pairwise(["BA", "UC1", "US9"]):
            first, then = pairs[f"A{k}", early], pairs[f"A{k}", late]
            checks.append(
                Check(
                    what=f"at A{k} {early} is learnt before {late}",
                    holds=when(first) < when(then) < NEVER,
                    numbers=[step(pair.name, study, pair.learnt_at) for pair in (first, then)],
                )
            )
    return checks


def predictable_shares(claim: Claim, studies: Studies) -> list[Check]:
    """BA is half of A3's questions and takes half of its loss away, US9 a twentieth of both."""
    (study,) = studies.of(claim)
    shares, taken = task_shares(study.digits), _taken_away(study, 3)
    checks = []
    for task, expected in ((Task.BA, Fraction(1, 2)), (Task.US9, Fraction(1, 20))):
        low, high = float(expected) - HALF_A_PER_CENT, float(expected) + HALF_A_PER_CENT
        part = taken.get(task)
        of = part.of if part else 0
        checks += [
            Check(
                what=f"{task.name} is {float(expected):.0%} of the questions at A3, rounded",
                holds=low <= shares[3, task] <= high,
                numbers=[counted(f"questions with {task.name}", shares[3, task])],
            ),
            Check(
                what=f"learning {task.name} takes away {float(expected):.0%} of A3's loss, rounded",
                holds=part is not None and part.low <= high and part.high >= low,
                numbers=[
                    rate(f"loss that went with {task.name}", study, part, of, of_what="steps")
                ],
            ),
        ]
    return checks


def _taken_away(study: Study, digit: int) -> dict[Task, Mean]:
    """The part of a digit's loss that went with each task; nothing if it never fell.

    From the last steps before the digit's discovery to the last of all. Tasks weigh as in
    uniform questions, of which the framework speaks, whatever the training showed.
    """
    name = f"A{digit}"
    place = study.layout.answer_names.index(name)
    begin = next(story.discovery_from for story in study.story.digits if story.digit == name)
    before = study.metrics[: (begin or 1) - 1][-LAST_STEPS:]
    if len(before) < LAST_STEPS:
        return {}
    shares = task_shares(study.digits)
    falls, spreads = {}, {}
    for task in Task:
        early, late = (
            Mean.measured([x for r in records if (x := r.task_loss[task.name][place]) is not None])
            for records in (before, study.last_steps)
        )
        weight = float(shares[digit, task])
        falls[task] = weight * (early.estimate - late.estimate)
        spreads[task] = weight * math.hypot(early.high - early.estimate, late.high - late.estimate)
    fell = sum(falls.values()) > 0
    return {task: _part(falls, spreads, task, len(before)) for task in Task} if fell else {}


def _part(falls: dict[Task, float], spreads: dict[Task, float], task: Task, of: int) -> Mean:
    """One fall as a part of all, with the interval that follows from theirs (delta method)."""
    total = sum(falls.values())
    part = falls[task] / total
    others = math.hypot(*(spread for other, spread in spreads.items() if other != task))
    reach = math.hypot((1 - part) * spreads[task], part * others) / total
    return Mean(part, of, part - reach, part + reach)
