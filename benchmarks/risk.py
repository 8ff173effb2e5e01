"""How fast questions are answered, and how long the risk of the shipped model takes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.measure import Measure, in_turns, timed
from carryscope.model.prediction import answer, predict
from carryscope.model.transformer import Transformer
from carryscope.task.sampling import uniform
from carryscope.verification.risk import WIDTH, measure_risk

TURN = 2048
"""Questions of one turn."""

ROUNDS = 10

PER_SECOND = 5600
"""The target for questions answered in a second: a million of them in at most three minutes."""

RISK_SECONDS = 60
"""The target for the risk of the shipped model."""


def answer_speed(
    model: Transformer, *, rounds: int = ROUNDS, turn: int = TURN
) -> Iterator[Measure]:
    """Questions answered in a second, and what it saves to leave probabilities out."""
    questions = uniform(np.random.default_rng(0), turn, model.config.digits)
    forced, free, weighed = "teacher-forced", "free-running", "with probabilities"
    turns = {
        forced: timed(lambda: answer(model, questions, free_running=False), items=turn),
        free: timed(lambda: answer(model, questions, free_running=True), items=turn),
        weighed: timed(lambda: predict(model, questions, free_running=False), items=turn),
    }
    seconds, how = in_turns(turns, rounds), f"{rounds} turns of {turn:,} questions"
    for name in (forced, free):
        yield Measure(
            name=f"{model.config.digits}-digit questions answered, {name}",
            value=1 / seconds[name],
            unit="/s",
            at_least=PER_SECOND,
            how=how,
        )
    ratio = seconds[weighed] / seconds[forced]
    name = "answers without probabilities, with probabilities = 1"
    yield Measure(name=name, value=ratio, unit="x", how=how)


def risk_cost(model: Transformer, *, width: float = WIDTH) -> Iterator[Measure]:
    """The time and the questions it takes to measure the risk, and what uniform ones would take."""
    found = []
    seconds = timed(lambda: found.append(measure_risk(model, width=width)))()
    name, how = f"risk to {width:.0%} relative width", f"once, {found[0].evaluated:,} questions"
    yield Measure(name=name, value=seconds, unit="s", at_most=RISK_SECONDS, how=how)
    needed = found[0].naive.for_our_width / found[0].evaluated
    name = f"{name}, uniform questions for the same interval"
    yield Measure(name=name, value=needed, unit="x", how="computed, ours = 1")
