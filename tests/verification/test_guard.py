"""The guard refuses what fails, and counts what that costs and leaves."""

from functools import partial

import numpy as np
import pytest
from cases import exact_sum, look_ahead_sum
from verification.test_risk import algorithm_judge, risk_of

import carryscope
from carryscope.model.prediction import predict
from carryscope.task.columns import Columns
from carryscope.task.operation import State
from carryscope.task.questions import Questions
from carryscope.task.sampling import uniform
from carryscope.verification.risk_verdict import guard, longest_run


def runs(questions: Questions) -> np.ndarray:
    """How many neighbouring columns propagate, question by question, counted one by one."""
    states = Columns.of(questions).state
    letters = ["".join("P" if s == State.PROPAGATE else "." for s in row) for row in states]
    return np.array([max(map(len, text.split("."))) for text in letters])


@pytest.mark.parametrize("digits", [3, 5, 7])
def test_an_adder_of_short_sight_is_right_behind_its_guard(digits):
    short = partial(look_ahead_sum, reach=2)
    found = guard(risk_of(algorithm_judge(short), digits))
    assert found is not None
    assert found.wrong.estimate == 0
    asked = uniform(np.random.default_rng(0), 20_000, digits)
    refused = runs(asked) >= found.columns
    assert found.refused == pytest.approx(refused.mean(), abs=0.005)
    wrong = (short(asked) != exact_sum(asked)).any(1)
    assert wrong.any()
    assert not wrong[~refused].any()


def test_behind_its_guard_the_shipped_model_fails_as_rarely_as_is_said(generator):
    run = carryscope.load()
    found = guard(run.risk())
    assert found.columns == 2
    asked = uniform(generator, 6_000, 5)
    refused = runs(asked) >= found.columns
    wrong = ~predict(run.model(), asked, free_running=True).correct
    assert found.refused == pytest.approx(refused.mean(), abs=0.01)
    assert wrong[~refused].mean() < 0.002 < wrong.mean()


def test_where_nothing_fails_or_everything_does_there_is_no_guard():
    assert guard(risk_of(algorithm_judge(exact_sum))) is None
    broken = risk_of(algorithm_judge(lambda q: (exact_sum(q) + 1) % 10))
    assert guard(broken) is None


def test_runs_are_read_off_both_kinds_of_names():
    assert [longest_run(name) for name in ("KKGKK", "PKPPG", "PPPPP")] == [0, 2, 5]
    assert longest_run("longest carrying 2, longest quiet 7 or more") == 7
