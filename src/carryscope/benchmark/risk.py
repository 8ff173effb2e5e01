"""How long the risk of the shipped model takes, and how many questions; and a million of them.

Times are of one machine; the count of questions is not.
"""

from __future__ import annotations

import time

import numpy as np

from carryscope.benchmark.speed import Measure
from carryscope.model.prediction import predict
from carryscope.model.transformer import Transformer
from carryscope.task.sampling import uniform
from carryscope.verification.risk import WIDTH, measure_risk

MILLION, ASKED = 1_000_000, 100_000
"""A million questions are timed by a tenth of them."""

SECONDS, MILLION_SECONDS = 60.0, 180.0
"""The targets."""


def risk_rows(model: Transformer) -> list[Measure]:
    """The risk at its default width, and a million questions teacher-forced."""
    began = time.perf_counter()
    found = measure_risk(model)
    seconds = time.perf_counter() - began
    questions = uniform(np.random.default_rng(0), ASKED, model.config.digits)
    began = time.perf_counter()
    predict(model, questions, free_running=False)
    million = (time.perf_counter() - began) * MILLION / ASKED
    name = f"risk of the shipped model to {WIDTH:.0%} relative width"
    needed = found.naive.for_our_width / found.evaluated
    return [
        Measure.at_most(name, seconds, SECONDS, "s"),
        Measure(name=f"{name}, questions asked", value=found.evaluated, unit=""),
        Measure(name=f"{name}, uniform questions for the same, ours = 1", value=needed, unit="x"),
        Measure.at_most("a million questions, teacher-forced", million, MILLION_SECONDS, "s"),
    ]
