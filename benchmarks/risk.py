"""How fast questions are answered, and how long the risk of the shipped model takes.

Times are of one machine; the count of questions, and the ratio of what is done in turns, are not.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.speed import Measure, in_turns, timed
from carryscope.model.prediction import answer, predict
from carryscope.model.transformer import Transformer
from carryscope.task.sampling import uniform
from carryscope.verification.risk import WIDTH, measure_risk

MILLION, ASKED = 1_000_000, 100_000
"""A million questions are timed by a tenth of them."""

SECONDS, MILLION_SECONDS = 60.0, 180.0
"""The targets for the risk and for a million questions."""

A_SECOND = 5000
"""The target for questions answered."""

TURNS, TURN = 10, 2048
"""Turns of answers alone and answers with probabilities, and the questions of a turn."""


def risk_rows(model: Transformer) -> list[Measure]:
    """The risk at its default width, and a million questions teacher-forced."""
    began = time.perf_counter()
    found = measure_risk(model)
    seconds = time.perf_counter() - began
    name = f"risk of the shipped model to {WIDTH:.0%} relative width"
    needed = found.naive.for_our_width / found.evaluated
    million = _seconds(model, ASKED, free_running=False) * MILLION / ASKED
    return [
        Measure.at_most(name, seconds, SECONDS, "s"),
        Measure(name=f"{name}, questions asked", value=found.evaluated, unit=""),
        Measure(name=f"{name}, uniform questions for the same, ours = 1", value=needed, unit="x"),
        Measure.at_most("a million questions, teacher-forced", million, MILLION_SECONDS, "s"),
    ]


def answer_speed(model: Transformer, count: int = 20_000) -> list[Measure]:
    """Questions answered in a second, and what it saves to leave probabilities out."""
    rows = []
    for name, free in (("teacher-forced", False), ("free-running", True)):
        speed = count / _seconds(model, count, free_running=free)
        rows.append(Measure.at_least(f"5-digit questions answered, {name}", speed, A_SECOND, "/s"))
    questions = uniform(np.random.default_rng(0), TURN, model.config.digits)
    took = in_turns(
        {
            "alone": timed(lambda: answer(model, questions, free_running=False)),
            "weighed": timed(lambda: predict(model, questions, free_running=False)),
        },
        TURNS,
        turn=1,
    )
    ratio = took["weighed"] / took["alone"]
    return [*rows, Measure(name="the same, with probabilities = 1", value=ratio, unit="x")]


def _seconds(model: Transformer, count: int, *, free_running: bool) -> float:
    """How long so many questions take, after a few that warm up caches and clocks."""
    questions = uniform(np.random.default_rng(0), count, model.config.digits)
    answer(model, questions[:TURN], free_running=free_running)
    return timed(lambda: answer(model, questions, free_running=free_running))(1)
