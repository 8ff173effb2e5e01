import math

import numpy as np
import pytest

from carryscope.core.evidence import Mean, Share


def test_wilson_interval_is_the_textbooks():
    share = Share.measured(8, 10)  # Wilson 1927: 0.490 to 0.943
    assert share.estimate == 0.8
    assert (share.low, share.high) == (
        pytest.approx(0.4902, abs=1e-4),
        pytest.approx(0.9433, abs=1e-4),
    )


@pytest.mark.parametrize("of", [1, 10, 10_000])
def test_never_failing_is_never_certainty(of):
    assert Share.measured(of, of).low < 1
    assert Share.measured(0, of).high > 0


def test_no_questions_say_nothing():
    share = Share.measured(0, 0)
    assert (share.low, share.high) == (0, 1)
    assert math.isnan(share.estimate)


def test_wilson_intervals_cover_the_truth_as_often_as_they_say():
    counts = np.random.default_rng(0).binomial(200, 0.05, size=4000)
    covered = [s.low <= 0.05 <= s.high for s in (Share.measured(int(c), 200) for c in counts)]
    assert 0.93 < np.mean(covered) < 0.97


def test_intervals_of_means_cover_the_truth_as_often_as_they_say():
    draws = np.random.default_rng(0).exponential(2.0, size=(1000, 200))
    covered = [m.low <= 2.0 <= m.high for m in (Mean.measured(row.tolist()) for row in draws)]
    assert 0.93 < np.mean(covered) < 0.97


def test_intervals_over_batches_cover_where_those_over_their_values_do_not():
    generator = np.random.default_rng(0)
    enriched = generator.random((300, 128, 1)) < 0.2  # a batch is enriched as a whole, or not
    losses = np.where(enriched, 0.12, 0.02) * generator.exponential(1.0, (300, 128, 16))
    truth = 0.2 * 0.12 + 0.8 * 0.02
    rows = [row.ravel().tolist() for row in losses]
    by_batch = [m.low <= truth <= m.high for m in (Mean.of_batches(row, 16) for row in rows)]
    by_value = [m.low <= truth <= m.high for m in (Mean.measured(row) for row in rows)]
    assert 0.93 < np.mean(by_batch) < 0.97
    assert np.mean(by_value) < 0.7
    assert Mean.of_batches(rows[0], 16).of == len(rows[0])
