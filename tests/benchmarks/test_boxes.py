import msgspec
import numpy as np
import pytest

from benchmarks.boxes import Boxes, Drawn, by_query, count_boxes, settled_boxes
from carryscope.certificate.certify import subject_of
from carryscope.certificate.exploring import RIGHT, WRONG
from carryscope.certificate.proof import RowProof
from carryscope.certificate.workers import Task, Worker
from carryscope.core.errors import CallError

SMALL = 5e-3
ALL = 10**9


@pytest.fixture(scope="module")
def model():
    """An untrained model, which is hard to prove anything about."""
    import torch

    from carryscope.model.config import ModelConfig
    from carryscope.model.transformer import Transformer, initialise

    config = ModelConfig(digits=2, heads=2, d_model=24)
    return initialise(Transformer(config), torch.Generator().manual_seed(3))


@pytest.fixture(scope="module")
def searched(model):
    """What the search itself makes of every row: boxes bounded, and the share decided."""
    subject = subject_of(model)
    worker, found = Worker(subject), []
    for number, space in enumerate(subject.spaces):
        proof, judged = RowProof.settled(space), 0
        at = proof.open_boxes(SMALL)
        query = space.queries(space.digits(proof.boxes[at]))
        for token in np.unique(query):
            mine = at[query == token]
            boxes, beaten = proof.boxes[mine], proof.beaten[mine]
            fragment = worker.do(Task(number, int(token), boxes, beaten, SMALL, ALL))
            proof.graft(mine, fragment)
            judged += fragment.judged
        found.append((judged, proof.share(RIGHT, WRONG)))
    return found


def test_with_nothing_left_out_the_estimate_is_the_count_of_the_search(model, searched):
    found = count_boxes(model, small=SMALL, repeats=2, most=ALL)
    assert [row.boxes.estimate for row in found.rows] == [judged for judged, _ in searched]
    assert [row.boxes.low for row in found.rows] == [row.boxes.high for row in found.rows]
    decided = [row.decided.estimate for row in found.rows]
    assert decided == pytest.approx([share for _, share in searched])
    assert found.total.estimate == found.looked_at == sum(judged for judged, _ in searched)


def test_with_most_left_out_the_estimate_is_right_on_average(model, searched):
    found = count_boxes(model, small=SMALL, repeats=60, most=8)
    total = sum(judged for judged, _ in searched)
    error = (found.total.high - found.total.low) / 2 / 1.96
    assert error < 0.1 * total
    assert abs(found.total.estimate - total) < 4 * error
    for row, (_, share) in zip(found.rows, searched, strict=True):
        assert row.decided.low - 0.05 < share < row.decided.high + 0.05


def test_the_search_has_boxes_enough_for_something_to_be_left_out(searched):
    assert sum(judged for judged, _ in searched) > 300


def test_the_record_says_what_each_answer_digit_takes(model):
    heard = []
    found = count_boxes(model, small=0.01, repeats=2, most=4, on_row=heard.append)
    assert heard == [row.digit for row in found.rows] == ["A2", "A1", "A0"]
    assert (found.digits, found.small) == (2, 0.01)
    assert [row.settled for row in found.rows][-1] == 190
    assert all(row.boxes.of == 2 and 0 <= row.decided.estimate <= 1 for row in found.rows)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Boxes) == found


def test_the_same_seed_gives_the_same_estimate(model):
    once, again, other = (
        count_boxes(model, small=SMALL, repeats=2, most=4, seed=seed) for seed in (1, 1, 2)
    )
    assert once == again != other


def test_thinning_keeps_the_questions_that_boxes_stand_for(generator):
    boxes = np.arange(30, dtype=np.int16)[:, None]
    share = np.tile(generator.random(30), 3)
    drawn = Drawn.all_of(boxes, 3).thinned(share, 4, generator)
    assert [(drawn.repeat == r).sum() <= 4 for r in range(3)] == [True] * 3
    stands_for = np.bincount(drawn.repeat, weights=drawn.weight * share[drawn.boxes[:, 0]])
    assert stands_for == pytest.approx([share[:30].sum()] * 3)


def test_thinning_counts_boxes_right_on_average(generator):
    boxes, share = np.arange(30, dtype=np.int16)[:, None], generator.random(30) + 0.1
    drawn = Drawn.all_of(boxes, 4000).thinned(np.tile(share, 4000), 4, generator)
    counted = np.bincount(drawn.boxes[:, 0], weights=drawn.weight, minlength=30) / 4000
    assert counted == pytest.approx(np.ones(30), abs=0.25)
    assert counted.mean() == pytest.approx(1, abs=0.03)


def test_few_enough_boxes_are_all_kept(generator):
    drawn = Drawn.all_of(np.arange(4, dtype=np.int16)[:, None], 2)
    kept = drawn.thinned(np.linspace(0.1, 0.4, 8), 4, generator)
    assert kept.weight.tolist() == [1.0] * 8
    assert kept.boxes.tolist() == drawn.boxes.tolist()


def test_settled_boxes_hold_every_question_once_and_each_has_one_query(model):
    for space in subject_of(model).spaces:
        settled = settled_boxes(space)
        assert space.share(settled).sum() == pytest.approx(1)
        queries = by_query(space, settled)
        assert sum(len(boxes) for boxes in queries.values()) == len(settled)
        assert -1 not in queries


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"small": 0.0}, "small must be above 0 and below 1. Got 0.0."),
        ({"small": 1.0}, "small must be above 0 and below 1. Got 1.0."),
        ({"repeats": 1}, "repeats must be at least 2 and most at least 1. Got 1 and 40."),
        ({"most": 0}, "repeats must be at least 2 and most at least 1. Got 16 and 0."),
    ],
)
def test_settings_that_make_no_sense_are_refused(model, settings, message):
    with pytest.raises(CallError, match=message):
        count_boxes(model, **settings)


def test_a_model_that_cannot_be_certified_is_refused(random_model):
    with pytest.raises(CallError, match="layer"):
        count_boxes(random_model(digits=1, layers=2))
