import numpy as np
import pytest
import torch

from benchmarks.boxes import Sample, count_boxes, settled_boxes
from carryscope.certificate.exploring import Piece, explore
from carryscope.certificate.proof import RIGHT, WRONG, RowProof
from carryscope.certificate.subject import ProofSubject
from carryscope.core.errors import CallError
from carryscope.model.config import ModelConfig
from carryscope.model.transformer import Transformer, initialise

SMALL = 5e-3
ALL = 10**9


@pytest.fixture(scope="module")
def model():
    """An untrained model, about which little can be proved."""
    config = ModelConfig(digits=2, heads=2, d_model=24)
    return initialise(Transformer(config), torch.Generator().manual_seed(3))


@pytest.fixture(scope="module")
def subject(model):
    return ProofSubject.of(model)


@pytest.fixture(scope="module")
def searched(subject):
    """What the search itself finds: boxes bounded in all, and the mean share decided."""
    judged, shares = 0, []
    for row, space in enumerate(subject.spaces):
        proof = RowProof.settled(space)
        at = proof.open_boxes(SMALL)
        query = space.queries(space.digits(proof.boxes[at]))
        for token in np.unique(query).tolist():
            mine = at[query == token]
            boxes, beaten = proof.boxes[mine], proof.beaten[mine]
            piece = Piece(row, token, mine, boxes, beaten, small=SMALL, most=ALL)
            fragment = explore(subject, piece)
            proof.graft(mine, fragment)
            judged += fragment.judged
        shares.append(proof.share(RIGHT, WRONG))
    return judged, np.mean(shares)


def test_with_nothing_left_out_the_estimate_is_the_count_of_the_search(model, searched):
    found = count_boxes(model, small=SMALL, repeats=2, most=ALL)
    assert found.boxes.estimate == found.boxes.low == found.boxes.high == searched[0]
    assert found.decided == pytest.approx(searched[1])


def test_with_most_left_out_the_estimate_is_right_on_average(model, searched):
    total, decided = searched
    assert total > 300
    found = count_boxes(model, small=SMALL, repeats=60, most=8)
    error = (found.boxes.high - found.boxes.low) / 2 / 1.96
    assert error < 0.1 * total
    assert abs(found.boxes.estimate - total) < 4 * error
    assert found.decided == pytest.approx(decided, abs=0.02)


def test_the_same_seed_gives_the_same_estimate(model):
    once, again, other = (
        count_boxes(model, small=0.02, repeats=2, most=4, seed=seed) for seed in (1, 1, 2)
    )
    assert once == again != other


def test_thinning_keeps_the_questions_that_boxes_stand_for(generator):
    boxes = np.arange(30, dtype=np.int16)[:, None]
    share = np.tile(generator.random(30), 3)
    drawn = Sample.all_of(boxes, 3).thinned(share, 4, generator)
    assert [(drawn.repeat == r).sum() <= 4 for r in range(3)] == [True] * 3
    stands_for = np.bincount(drawn.repeat, weights=drawn.weight * share[drawn.boxes[:, 0]])
    assert stands_for == pytest.approx([share[:30].sum()] * 3)


def test_thinning_counts_boxes_right_on_average(generator):
    boxes, share = np.arange(30, dtype=np.int16)[:, None], generator.random(30) + 0.1
    drawn = Sample.all_of(boxes, 4000).thinned(np.tile(share, 4000), 4, generator)
    counted = np.bincount(drawn.boxes[:, 0], weights=drawn.weight, minlength=30) / 4000
    assert counted == pytest.approx(np.ones(30), abs=0.25)
    assert counted.mean() == pytest.approx(1, abs=0.03)


def test_few_enough_boxes_are_all_kept(generator):
    drawn = Sample.all_of(np.arange(4, dtype=np.int16)[:, None], 2)
    kept = drawn.thinned(np.linspace(0.1, 0.4, 8), 4, generator)
    assert kept.weight.tolist() == [1.0] * 8
    assert kept.boxes.tolist() == drawn.boxes.tolist()


def test_settled_boxes_hold_every_question_once_and_each_has_one_query(subject):
    for space in subject.spaces:
        settled = settled_boxes(space)
        assert sum(space.share(boxes).sum() for boxes in settled.values()) == pytest.approx(1)
        assert -1 not in settled


@pytest.mark.parametrize("settings", [{"small": 0.0}, {"small": 1.0}, {"repeats": 1}, {"most": 0}])
def test_settings_that_make_no_sense_are_refused(model, settings):
    with pytest.raises(CallError, match="small must be above 0 and below 1, repeats at least 2"):
        count_boxes(model, **settings)


def test_a_model_that_cannot_be_certified_is_refused(random_model):
    with pytest.raises(CallError, match="layer"):
        count_boxes(random_model(digits=1, layers=2))
