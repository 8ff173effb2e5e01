import numpy as np
import pytest
from cases import exact_sum, stratum_names

from carryscope.core.errors import CallError
from carryscope.task.columns import Columns
from carryscope.task.operation import State
from carryscope.task.sampling import carry_pairs, enriched, near_nines, uniform, with_states
from carryscope.task.strata import stratum_states


def test_uniform_questions_have_uniform_digits(generator):
    questions = uniform(generator, 20_000, 3)
    for numbers in (questions.first, questions.second):
        counts = np.stack([np.bincount(numbers[:, i], minlength=10) for i in range(3)])
        assert abs(counts / 20_000 - 0.1).max() < 0.01  # about five standard deviations


def test_enriched_batches_come_at_the_papers_rate(generator):
    shares = np.array(
        [Columns.of(enriched(generator, 64, 5)).make_sum_9.mean() for _ in range(2000)]
    )
    # An untouched batch has a nine in 10 % of columns, an enriched one in 20 % + 80 % x 10 %.
    assert abs(shares.mean() - (0.8 * 0.1 + 0.2 * 0.28)) < 0.005
    assert abs((shares > 0.19).mean() - 0.2) < 0.05


def test_enrichment_overwrites_the_share_of_cells_it_is_told_to(generator):
    questions = enriched(generator, 20_000, 5, batch_share=1.0, cell_share=0.5)
    assert abs(Columns.of(questions).make_sum_9.mean() - 0.55) < 0.01


def test_enrichment_changes_either_number_by_a_fair_coin(generator):
    before = uniform(np.random.default_rng(7), 20_000, 5)
    after = enriched(np.random.default_rng(7), 20_000, 5, batch_share=1.0, cell_share=1.0)
    first, second = before.first != after.first, before.second != after.second
    assert not (first & second).any()
    assert abs(first.mean() - second.mean()) < 0.01


@pytest.mark.parametrize("stratum", ["K", "PPPPP", "GKP", "KKPPG"])
def test_questions_in_a_stratum_are_in_that_stratum(generator, stratum):
    questions = with_states(generator, np.tile(stratum_states(stratum), (500, 1)))
    assert set(stratum_names(Columns.of(questions))) == {stratum}


def test_questions_in_a_stratum_are_uniform_over_its_digit_pairs(generator):
    questions = with_states(generator, np.full((45_000, 1), State.GENERATE))
    pairs = questions.first[:, 0] * 10 + questions.second[:, 0]
    counts = np.bincount(pairs, minlength=100)
    assert (counts > 0).sum() == 45
    assert abs(counts[counts > 0] - 1000).max() < 170  # over five standard deviations


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_carry_in_pairs_differ_in_the_carry_that_arrives_and_its_consequences(generator, depth):
    base, source = carry_pairs(generator, 300, 5, 3, depth=depth)
    a, b = Columns.of(base), Columns.of(source)
    assert (a.carry_in[:, 3] != b.carry_in[:, 3]).all()
    assert (a.look_ahead[:, 3] == depth).all()
    assert (b.look_ahead[:, 3] == depth).all()
    assert (base.first[:, 3:] == source.first[:, 3:]).all()
    assert (a.sums[:, :3] % 10 == b.sums[:, :3] % 10).all()
    assert (exact_sum(base)[:, : 3 - depth] == exact_sum(source)[:, : 3 - depth]).all()


@pytest.mark.parametrize("depth", [0, 1])
def test_us9_pairs_differ_in_a_carry_that_arrives_at_a_nine(generator, depth):
    base, source = carry_pairs(generator, 300, 5, 3, depth=depth, own_nine=True)
    a, b = Columns.of(base), Columns.of(source)
    assert (a.make_sum_9[:, 3] & b.make_sum_9[:, 3]).all()
    assert (a.carry_in[:, 3] != b.carry_in[:, 3]).all()
    assert (a.look_ahead[:, 3] == depth).all()


def test_either_side_of_a_pair_can_be_the_one_that_carries(generator):
    base, _ = carry_pairs(generator, 2000, 5, 1)
    assert abs(Columns.of(base).make_carry[:, 0].mean() - 0.5) < 0.06


@pytest.mark.parametrize(("digit", "depth"), [(0, 0), (2, 2), (2, -1), (7, 0)])
def test_a_carry_that_no_column_can_make_is_refused(generator, digit, depth):
    with pytest.raises(CallError, match=f"A{digit} of 5-digit numbers has no column"):
        carry_pairs(generator, 1, 5, digit, depth=depth)


def test_columns_near_a_nine_are_every_pair_that_sums_to_8_or_10_alike(generator):
    before = uniform(generator, 18_000, 2)
    cells = np.tile([True, False], (18_000, 1))
    after = near_nines(generator, before, cells)
    counts = np.bincount(after.first[:, 0] * 10 + after.second[:, 0], minlength=100)
    pairs = [10 * a + b for a in range(10) for b in range(10) if a + b in (8, 10)]
    assert np.flatnonzero(counts).tolist() == pairs
    assert abs(counts[pairs] - 1000).max() < 160  # over five standard deviations
    assert (after.first[:, 1] == before.first[:, 1]).all()
    assert (after.second[:, 1] == before.second[:, 1]).all()
