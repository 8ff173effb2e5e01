import subprocess
import sys

import numpy as np
import pytest

from carryscope.core.errors import CallError
from carryscope.task.algorithms import exact_sum
from carryscope.task.columns import Columns
from carryscope.task.sampling import (
    Variable,
    counterfactuals,
    enriched,
    in_stratum,
    uniform,
)
from carryscope.task.strata import stratum_names


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
    questions = in_stratum(generator, 500, stratum)
    assert set(stratum_names(Columns.of(questions))) == {stratum}


def test_questions_in_a_stratum_are_uniform_over_its_digit_pairs(generator):
    questions = in_stratum(generator, 45_000, "G")
    pairs = questions.first[:, 0] * 10 + questions.second[:, 0]
    counts = np.bincount(pairs, minlength=100)
    assert (counts > 0).sum() == 45
    assert abs(counts[counts > 0] - 1000).max() < 170  # over five standard deviations


KINDS = ["BA", "MC1", "MS9", "state"]


@pytest.mark.parametrize("kind", KINDS)
def test_counterfactual_pairs_share_every_other_column(generator, kind):
    base, source = counterfactuals(generator, 300, 5, Variable(kind, 2))
    others = [0, 1, 3, 4]
    assert (base.first[:, others] == source.first[:, others]).all()
    assert (base.second[:, others] == source.second[:, others]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_counterfactual_pairs_differ_in_the_named_variable_and_no_other_they_can_keep(
    generator, kind
):
    a, b = (Columns.of(side) for side in counterfactuals(generator, 300, 5, Variable(kind, 2)))
    differs = {
        "BA": (a.base_add != b.base_add)[:, 2],
        "MC1": (a.make_carry != b.make_carry)[:, 2],
        "MS9": (a.make_sum_9 != b.make_sum_9)[:, 2],
        "state": (a.state != b.state)[:, 2],
    }
    assert differs[kind].all()
    kept = {"BA": ["state"], "MC1": ["BA", "MS9"], "MS9": ["MC1"], "state": []}[kind]
    assert not any(differs[name].any() for name in kept)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_carry_in_pairs_differ_in_the_carry_that_arrives_and_its_consequences(generator, depth):
    base, source = counterfactuals(generator, 300, 5, Variable("carry_in", 3), depth=depth)
    a, b = Columns.of(base), Columns.of(source)
    assert (a.carry_in[:, 3] != b.carry_in[:, 3]).all()
    assert (a.look_ahead[:, 3] == depth).all()
    assert (b.look_ahead[:, 3] == depth).all()
    assert (base.first[:, 3:] == source.first[:, 3:]).all()
    assert (a.sums[:, :3] % 10 == b.sums[:, :3] % 10).all()
    assert (exact_sum(base)[:, : 3 - depth] == exact_sum(source)[:, : 3 - depth]).all()


@pytest.mark.parametrize("depth", [0, 1])
def test_us9_pairs_differ_in_a_carry_that_arrives_at_a_nine(generator, depth):
    base, source = counterfactuals(generator, 300, 5, Variable("US9", 3), depth=depth)
    a, b = Columns.of(base), Columns.of(source)
    assert (a.make_sum_9[:, 3] & b.make_sum_9[:, 3]).all()
    assert (a.use_sum_9[:, 3] != b.use_sum_9[:, 3]).all()
    assert (a.look_ahead[:, 3] == depth).all()


def test_a_variable_that_does_not_exist_is_refused_where_no_type_checker_runs():
    call = "from carryscope.task.sampling import Variable; Variable('UC2', 1)"
    ended = subprocess.run(
        [sys.executable, "-c", call], capture_output=True, text=True, check=False
    )
    assert "A variable is one of BA, MC1, MS9, state, carry_in, US9" in ended.stderr


def test_either_side_of_a_pair_can_be_the_one_that_carries(generator):
    base, _ = counterfactuals(generator, 2000, 5, Variable("MC1", 0))
    assert abs(Columns.of(base).make_carry[:, 0].mean() - 0.5) < 0.06


@pytest.mark.parametrize(
    ("variable", "depth", "message"),
    [
        (Variable("BA", 5), 0, "column must be between 0 and 4. Got 5."),
        (Variable("BA", 1), 1, r"depth applies to carry_in and US9 only. Got depth 1 for BA\(1\)."),
        (Variable("carry_in", 0), 0, "The column of a carry_in must be between 1 and 5. Got 0."),
        (Variable("US9", 5), 0, "The column of a US9 must be between 1 and 4. Got 5."),
        (Variable("carry_in", 2), 2, r"depth must be between 0 and 1 for carry_in\(2\). Got 2."),
    ],
)
def test_counterfactuals_that_cannot_be_are_refused(generator, variable, depth, message):
    with pytest.raises(CallError, match=message):
        counterfactuals(generator, 1, 5, variable, depth=depth)
