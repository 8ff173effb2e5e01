"""Blind digits and wrong digits: the same in built adders, unrelated in untrained models."""

import msgspec
import numpy as np
import pytest
from built_adder import built_adder
from untrained import untrained

from carryscope.model.config import ModelConfig
from carryscope.verification import estimate, sight
from carryscope.verification.estimate import WeightedSample
from carryscope.verification.sight import SightFinding, study_sight


@pytest.fixture(autouse=True)
def few_questions(monkeypatch):
    monkeypatch.setattr(estimate, "FLOOR", 10)
    monkeypatch.setattr(estimate, "SHARED", 1000)
    monkeypatch.setattr(sight, "SHARED", 1000)


@pytest.mark.parametrize("reach", [1, 2, 3])
def test_a_built_adder_is_wrong_where_it_is_blind_and_a_carry_arrives(reach):
    found = study_sight(built_adder(reach=reach))
    assert found.wrong_if_read.estimate == 0
    assert found.blind_if_wrong.estimate == 1
    for cell in found.cells:
        k = int(cell.digit[1:])
        read = min(cell.depth + 1, k) <= reach
        assert cell.read.estimate == read
        # A cell holds every question with this many nines below; 45 of 90 that end carry.
        ends = cell.depth < k
        assert cell.wrong.estimate == pytest.approx(0 if read or not ends else 0.5)
    assert "Every wrong digit that was found is a guess of this kind (at least" in found.statement


def test_the_chance_to_be_blind_is_the_exact_one():
    """For reach 2: A3 to A5, and two columns below propagate, column 0 of A3 included."""
    found = study_sight(built_adder(reach=2))
    assert found.blind.estimate == pytest.approx(3 * 0.01 / 5, rel=1e-9)


def test_a_head_that_reads_in_vain_leaves_errors_that_are_not_blind():
    found = study_sight(built_adder(without=[1]))
    assert found.wrong_if_read.estimate > 0.3
    assert found.blind_if_wrong.estimate < 0.05


def test_what_an_untrained_model_reads_does_not_make_it_right():
    found = study_sight(untrained(ModelConfig(digits=3, d_model=48)))
    assert found.blind.estimate > 0.9
    assert found.wrong_if_read.estimate > found.wrong_if_blind.estimate > 0.9
    assert msgspec.json.decode(msgspec.json.encode(found), type=SightFinding) == found


def test_a_model_that_is_never_wrong_has_nothing_to_explain():
    found = study_sight(built_adder(2))
    assert found.blind_if_wrong is None
    assert "No digit is wrong." in found.statement
    assert len(msgspec.json.encode(found)) < 10_000, "small enough to keep for many models"


def test_digits_that_fail_together_count_as_one_observation(generator):
    sample = WeightedSample.draw(generator, 2)
    alone = generator.random(len(sample)) < 0.3
    everywhere = np.ones(len(sample), dtype=bool)
    one = sample.share(alone, everywhere)
    together = sample.share(
        np.repeat(alone[:, None], 3, axis=1), np.repeat(everywhere[:, None], 3, axis=1)
    )
    assert (together.estimate, together.low, together.high) == pytest.approx(
        (one.estimate, one.low, one.high)
    )
    assert together.of == 3 * one.of
