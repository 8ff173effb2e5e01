"""The study of why: a small model of it, and what its page concludes from the records."""

from statistics import median

import pytest
from msgspec.structs import replace

from carryscope.core.progress import silent
from carryscope.training.config import RunConfig
from paper import why
from paper.why import DATA, HEADS, SEEDS, SHIPPED, STUDY, agreement, cell_config, crossed, is_blind


@pytest.fixture(scope="module")
def records():
    return STUDY.read()


def test_every_cell_has_its_seeds_and_the_known_models_are_there(records):
    found = {(one.heads, one.data, one.seed) for one in crossed(records)}
    assert found == {(h, d, s) for h in HEADS for d in DATA for s in SEEDS}
    assert [one.data for one in records if one.data in SHIPPED] == sorted(SHIPPED)
    assert {one.seed for one in records if one.data == "paper-5"} == {129000, 201}


def test_what_the_page_concludes_is_in_the_records(records):
    def wrong(heads, data):
        cell = [one for one in records if (one.heads, one.data) == (heads, data)]
        return median(one.wrong.estimate for one in cell)

    def all_read(heads, data):
        cell = [one for one in records if (one.heads, one.data) == (heads, data)]
        return sum(not any(map(is_blind, one.sight.cells)) for one in cell) >= 2

    uniform = [wrong(heads, "uniform") for heads in (1, 2, 3, 4)]
    assert uniform == sorted(uniform, reverse=True)
    assert all(wrong(heads, "cascades") > wrong(heads, "uniform") for heads in (1, 2, 3, 4))
    assert wrong(6, "uniform") > 0.8 * wrong(4, "uniform")
    assert not all_read(6, "uniform")
    assert all(wrong(heads, "cascades") < 0.02 * wrong(4, "cascades") for heads in (5, 6))
    assert all_read(6, "the paper's")
    assert wrong(6, "the paper's") > 1e-4
    counts = agreement(crossed(records))
    assert counts[True, True] > 4 * (counts[True, False] + counts[False, True])


def test_a_model_is_trained_and_measured(tmp_path):
    config = cell_config(2, "cascades", 5)
    short = RunConfig(
        model=replace(config.model, digits=2, d_model=8, d_head=4, d_mlp=8),
        training=replace(config.training, steps=3, batch=8),
    )
    found = why.study_model("cascades", short, tmp_path / "run", 1, silent)
    assert (found.heads, found.data, found.seed) == (2, "cascades", 5)
    assert found.tested == 10_000, "all there are"
    assert {cell.digit for cell in found.sight.cells} == {"A2", "A1"}


def test_the_recipes_differ_in_their_data_alone():
    uniform, papers, cascades = (cell_config(3, data, 0).training for data in DATA)
    assert uniform.enriched_batches == 0 < papers.enriched_batches
    assert cascades.nines == 1
    assert replace(cascades, nines=0.0) == papers
