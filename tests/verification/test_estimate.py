"""Intervals for weighted counts, against what is known of them."""

import numpy as np
import pytest

from carryscope.verification.estimate import Rate, weighted_rate

QUANTILE_OF_ONE_MORE = 3.688879454113936
"""-ln 0.025: the exact Poisson bound when nothing was seen."""


def rate(weights, asked, failed) -> Rate:
    return weighted_rate(np.array(weights), np.array(asked), np.array(failed))


def test_nothing_failing_in_one_stratum_gives_the_exact_poisson_bound():
    found = rate([1.0], [1000], [0])
    assert (found.estimate, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(QUANTILE_OF_ONE_MORE / 1000, rel=1e-6)


def test_a_few_failures_give_the_exact_poisson_interval():
    found = rate([1.0], [1_000_000], [5])
    assert found.estimate == pytest.approx(5e-6)
    assert found.low == pytest.approx(1.6235e-6, rel=1e-3)
    assert found.high == pytest.approx(11.6683e-6, rel=1e-3)


def test_a_stratum_in_which_everything_fails_does_not_claim_certainty():
    found = rate([0.5, 0.5], [10, 10], [10, 0])
    assert found.low < 0.5 < found.high


def test_a_stratum_that_was_never_asked_may_hide_any_failure():
    asked = rate([0.9, 0.1], [1000, 1000], [0, 0])
    unasked = rate([0.9, 0.1], [1000, 0], [0, 0])
    assert unasked.high >= asked.high + 0.09


def test_the_estimate_weighs_strata_by_their_probability():
    assert rate([0.99, 0.01], [100, 100], [0, 50]).estimate == pytest.approx(0.005)


def test_many_failures_give_the_normal_interval():
    found = rate([1.0], [100_000], [1000])
    half = 1.96 * np.sqrt(0.01 * 0.99 / 100_000)
    assert found.low == pytest.approx(0.01 - half, rel=0.01)
    assert found.high == pytest.approx(0.01 + half, rel=0.01)
    assert found.relative_width == pytest.approx(2 * half / 0.01, rel=0.02)
