"""The study of donors: what differs between the trainings, and what is counted."""

import math

import pytest
from msgspec.structs import replace

from carryscope.core.progress import silent
from carryscope.training.losses import StepRecord
from carryscope.verification.estimate import Rate
from paper.starting import (
    BLOCK,
    CHANGES,
    DONOR_RECIPES,
    DONORS,
    PAGE,
    StartRecord,
    block_losses,
    mixed_config,
    pages,
    ratio,
    study_donor,
    study_start,
)

SMALL = {"digits": 2, "d_model": 8, "d_head": 4, "d_mlp": 8}


@pytest.fixture(scope="module")
def donor(tmp_path_factory):
    config = DONOR_RECIPES["untrained"]
    small = replace(config, model=replace(config.model, heads=2, **SMALL))
    directory = tmp_path_factory.mktemp("starting") / "donor"
    return directory, study_donor("untrained", small, directory, 1, silent)


def test_an_untrained_donor_is_not_tested(donor):
    _, record = donor
    assert not record.mixed
    assert record.wrong is None


def test_trainings_of_one_seed_differ_in_their_first_weights_alone(donor):
    started, drawn = (mixed_config(one, CHANGES | SMALL | {"seed": 1}) for one in (donor[0], None))
    assert started.model == drawn.model
    assert started.training.start_weights
    assert replace(started.training, start_weights="") == drawn.training


def test_a_mixed_model_is_trained_from_a_donor_and_measured(donor, tmp_path):
    changes = CHANGES | SMALL | {"steps": 2 * BLOCK, "batch": 16, "heads": 3, "seed": 4}
    found = study_start("untrained", donor[0], changes, tmp_path / "run", 1, silent)
    assert (found.donor, found.mixed, found.seed) == ("untrained", True, 4)
    assert {name: len(blocks) for name, blocks in found.losses.items()} == dict.fromkeys(
        ("all", "sums", "differences"), 2
    )


def test_losses_of_sums_and_differences_are_apart():
    record = StepRecord(
        step=1,
        loss=0.7,
        digit_loss=[],
        task_loss={"BA": [1.0, None], "UC1": [4.0], "US9": [], "MD": [0.5], "UB": [], "UZ": []},
        task_count={"BA": [2, 0], "UC1": [1], "US9": [], "MD": [3], "UB": [], "UZ": []},
    )
    assert block_losses([record] * BLOCK) == {"all": [0.7], "sums": [2.0], "differences": [0.5]}


def test_a_loss_is_reached_at_the_end_of_the_first_block_that_has_it():
    blocks = {"all": [0.6, 0.5, 0.7, 0.1]}
    fields = {"donor": "", "mixed": True, "seed": 0, "weights_sha256": "", "machine": ""}
    record = StartRecord(**fields, losses=blocks)
    assert [record.reached(loss) for loss in (0.5, 0.2, 0.05)] == [2 * BLOCK, 4 * BLOCK, None]


def test_a_ratio_is_paired_by_seed_and_has_students_interval():
    found = ratio([100, 200, 400], [200, 200, 200])
    assert found.estimate == pytest.approx(1.0)
    reach = 4.302653 * math.log(2) / math.sqrt(3)
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((-reach, reach))
    assert ratio([100, 200, None], [200, 200, 200]) is None


def records(exact: list[float]) -> list[StartRecord]:
    """Trainings that reach every loss at once: each donor's in this block, by seed."""
    fields = {"weights_sha256": "", "machine": "a machine"}
    blocks = {donor: [10, 10, 10] for donor in DONORS} | {"exact": exact}
    found = [
        StartRecord(
            donor=donor,
            mixed=True,
            seed=seed,
            losses=dict.fromkeys(
                ("all", "sums", "differences"), [1.0] * (n - 1) + [0.1] * (n < 53)
            ),
            **fields,
        )
        for donor, each in blocks.items()
        for seed, n in enumerate(each)
    ]
    adder = StartRecord(donor="3 heads", mixed=False, seed=0, wrong=Rate(0.1, 0.05, 0.2), **fields)
    return [*found, adder]


@pytest.mark.parametrize(
    ("exact", "said"),
    [
        ([5, 5, 4], "**Yes, up to a loss of 0.2.** From an exact adder it takes 0.46 (0.34 to"),
        ([20, 21, 20], "**No, at a loss of 0.2 it is slower.**"),
        ([5, 20, 10], "three seeds cannot tell this from 1"),
        ([5, 5, 53], "Not every training reached it in 1,300 steps."),
    ],
)
def test_the_page_says_what_the_interval_shows(exact, said):
    text = pages(records(exact))[PAGE]
    assert said in text
    assert f"| all answers | 0.5 | {BLOCK * exact[0]}, " in text
    assert len(text.split()) < 620, "a table and at most 500 words"
