"""Which columns are read, against loops over single questions."""

import numpy as np
import pytest
from built_adder import built_adder

from carryscope.dissection.engine import Engine
from carryscope.dissection.explaining import READS, decision_read, digit_shares
from carryscope.task.columns import Columns
from carryscope.task.sampling import uniform, with_nines
from carryscope.task.tokens import Format


def hard(generator, digits, count=200):
    cells = generator.random((count, digits)) < generator.random((count, 1))
    return with_nines(generator, uniform(generator, count, digits), cells)


def test_the_deciding_column_is_the_first_below_that_does_not_propagate(generator):
    questions = hard(generator, 4)
    deciding = Columns.of(questions).deciding
    for (a, b), found in zip(questions.integers(), deciding, strict=True):
        sums = [a // 10**i % 10 + b // 10**i % 10 for i in range(4)]
        for k in range(5):
            below = [i for i in reversed(range(k)) if sums[i] != 9]
            assert found[k] == (below[0] if below else 0 if k else -1)


@pytest.mark.parametrize("name", ["plain", "signed"])
def test_one_head_that_reads_the_deciding_column_is_enough(generator, name):
    layout = Format(3, name)
    questions = hard(generator, 3)
    columns, names = Columns.of(questions), layout.position_names
    # Sharp patterns: a head gives a random pair of positions most of its attention.
    patterns = generator.dirichlet(
        np.full(layout.context, 0.1), (len(questions), 2, 2, layout.answer_length)
    )
    found = decision_read(columns, digit_shares(patterns, layout))
    assert 0.1 < found[:, 1:].mean() < 0.9
    for i in range(len(questions)):
        for k in range(4):
            place, column = layout.answer_names.index(f"A{k}"), columns.deciding[i, k]
            pair = [names.index(f"D{column}"), names.index(f"D'{column}")] if k else []
            shares = patterns[i, :, :, place, pair].sum(0)
            assert found[i, k] == bool(k and (shares > READS).any())


@pytest.mark.parametrize("reach", [1, 2, 3])
def test_a_built_adder_reads_what_its_reach_says(generator, reach):
    questions = hard(generator, 5)
    engine = Engine(built_adder(reach=reach), questions[:1])
    patterns = np.concatenate([state.patterns().numpy() for state in engine.captures(questions)])
    columns = Columns.of(questions)
    read = decision_read(columns, digit_shares(patterns, engine.layout))
    below = np.arange(6) - columns.deciding
    assert (read == (below <= reach) & (np.arange(6) > 0)).all()
