"""Estimands on models whose circuit is known, on untrained ones, and on made-up curves."""

import numpy as np
import pytest
import torch
from built_adder import built_adder

from carryscope.dissection.attention import study_attention
from carryscope.dissection.samples import Samples
from carryscope.model.config import ModelConfig
from carryscope.model.transformer import Transformer, initialise
from carryscope.task.columns import Columns, QuestionClass, Task
from carryscope.task.operation import State
from carryscope.training.losses import StepRecord
from paper import estimands
from paper.draw import Draw, of_class
from paper.printed import last_batches

WINDOW = 5
"""Steps by which smoothing may move the step at which a loss falls: half a window."""


@pytest.fixture(scope="module", autouse=True)
def few_questions_of_each_set():
    with pytest.MonkeyPatch.context() as patch:
        for module in ("paper.draw", "paper.estimands"):
            patch.setattr(f"{module}.QUESTIONS", 120)
        patch.setattr(estimands, "KEY_PAIRS", 600)
        patch.setattr(estimands, "ROW_QUESTIONS", 64)
        yield


def seen(model):
    """A draw of a model that was not trained here, with its attention watched."""
    draw = Draw(None, model)
    draw.__dict__["attention"] = study_attention(draw.engine, Samples(model.config.digits, 0))
    return draw


@pytest.fixture(scope="module")
def adder():
    """The paper's circuit."""
    return seen(built_adder(5, reach=2))


@pytest.fixture(scope="module")
def short_sighted():
    """Two heads: own column and one below."""
    return seen(built_adder(5, reach=1))


@pytest.fixture(scope="module")
def untrained():
    model = Transformer(ModelConfig(d_model=24))
    return seen(initialise(model, torch.Generator().manual_seed(0)))


def number(name, draw):
    return getattr(estimands, name)(draw)


def test_the_papers_circuit_has_the_numbers_that_the_paper_claims(adder):
    assert number("columns_read", adder) == 3
    assert number("circuit", adder) == 111
    assert number("doubled_heads", adder) == 0
    assert number("a3_one_head_each", adder) == 1
    assert number("keys_followed", adder) == 1
    assert number("a3_ranking", adder) is not None
    assert number("second_ba_head", adder) < 0.01
    assert number("least_head_rise", adder) > 0.08
    assert number("simple_loss", adder) < 0.01
    assert number("cascade_loss", adder) > 1
    assert number("through_all_wrong", adder) == 1
    assert number("us9_variance", adder) > 0.5, "it fails on cascades alone"


def test_two_columns_are_not_enough_for_any_of_it(short_sighted):
    assert number("columns_read", short_sighted) == 2
    assert number("a3_one_head_each", short_sighted) == 0
    assert number("a3_ranking", short_sighted) is None, "no head reads two below"
    assert number("simple_loss", short_sighted) > 1
    # A third of the keys have a nine below; of these half come with a carry that is not seen.
    assert number("keys_followed", short_sighted) == pytest.approx(5 / 6, abs=0.05)


def test_an_untrained_model_shows_nothing_but_what_its_architecture_forces(untrained):
    assert number("columns_read", untrained) == 0
    assert number("circuit", untrained) == 0
    assert number("packed", untrained) < 0.2
    assert number("a3_one_head_each", untrained) < 0.4
    assert number("keys_followed", untrained) < 0.4
    assert number("changed_by_unused_rows", untrained) == 0
    assert number("changed_elsewhere", untrained) == 0


def test_an_answer_row_does_change_its_own_digit(adder):
    assert estimands._changed(adder, [13])[:, :, adder.place("A3")].any()
    assert number("changed_elsewhere", adder) == 0


def test_pairs_differ_in_one_column_and_in_a3():
    for column in (3, 2, 1):
        base, source = estimands._one_column_apart(column)
        differs = (base.first != source.first) | (base.second != source.second)
        assert set(np.flatnonzero(differs.any(axis=0))) == {column}
        assert (estimands._a3(base) != estimands._a3(source)).all()
        assert len(base) > 50


def test_every_key_is_as_frequent_as_any_other_and_decides_its_carry():
    states = estimands._key_states(np.random.default_rng(0))
    assert not ((states[:, 1] == State.PROPAGATE) & (states[:, 2] == State.PROPAGATE)).any()
    keys, counts = np.unique(
        np.stack([states[:, 2], states[:, 1] == State.GENERATE]), axis=1, return_counts=True
    )
    assert keys.shape == (2, 6)
    assert counts.min() > 0.7 * counts.mean()


@pytest.mark.parametrize("kind", list(QuestionClass))
def test_questions_of_a_class_are_of_that_class(kind):
    questions = of_class(5, kind)
    assert set(Columns.of(questions).question_class) == {kind}
    assert len(questions) == 120


def learning(loss_of, steps=200):
    """A draw in whose training `loss_of(step, digit, task)` was the loss."""
    records = []
    for step in range(1, steps + 1):
        by_task = {t: [loss_of(step, 5 - i, t) for i in range(6)] for t in Task}
        digit = [float(np.mean([by_task[t][i] for t in Task])) for i in range(6)]
        records.append(
            StepRecord(
                step=step,
                loss=float(np.mean(digit)),
                digit_loss=digit,
                task_loss={t.name: by_task[t] for t in Task},
                task_count={t.name: [10 * (3 - t)] * 6 for t in Task},
            )
        )
    draw = Draw(None, Transformer(ModelConfig(d_model=24)))
    draw.__dict__["metrics"] = records
    return draw


def falls(at):
    return lambda step: 2.3 if step < at else 0.01


def test_the_lead_of_the_highest_digit_is_counted_to_the_next_digit():
    when = {5: 50, 4: 90, 3: 120, 2: 130, 1: 140, 0: 150}
    told = learning(lambda step, digit, _: falls(when[digit])(step))
    assert number("a5_lead", told) == pytest.approx(40, abs=WINDOW)


def test_a_digit_that_is_never_learnt_counts_as_learnt_last():
    never = learning(lambda step, digit, _: 2.3 if digit != 5 else falls(50)(step))
    assert number("a5_lead", never) == pytest.approx(150, abs=WINDOW)
    assert number("steps_to_learn", never) == 200


def test_the_lag_is_that_of_the_digit_where_it_is_least():
    lag = {1: 60, 2: 30, 3: 10}

    def loss(step, digit, task):
        return falls(60 + (lag.get(digit, 0) if task == Task.UC1 else 0))(step)

    assert number("uc1_lag", learning(loss)) == pytest.approx(10, abs=WINDOW)


def test_the_top_column_must_lead_in_every_task():
    def loss(step, digit, task):
        return 1.0 if digit < 4 else (1.5 if task == Task.US9 else 0.2)

    assert number("top_column_lead", learning(loss)) == pytest.approx(-0.5)


def test_the_last_batches_are_what_the_notebook_prints():
    told = learning(lambda step, digit, task: step + digit / 10 + task)
    found = last_batches(told)
    assert found["loss of A4"] == [record.digit_loss[1] for record in told.metrics[-100:]]
    assert found["loss on UC1"][-1] == pytest.approx(200 + 0.2 + 1)
    assert [found[f"share of {t.name}"] for t in Task] == [[0.5], [1 / 3], [1 / 6]]
