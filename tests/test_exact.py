"""The shipped exact adders: proved right on every question."""

import numpy as np
import pytest

import carryscope as cs
from carryscope.certificate.certify import ProofSearch
from carryscope.certificate.checking import (
    check_certificate,
    check_what_is_said,
    claims_of,
    verify_sample,
)
from carryscope.core.storage import read_json
from carryscope.model.prediction import answer
from carryscope.stages import CERTIFICATE
from carryscope.task.questions import Questions
from carryscope.task.sampling import uniform, with_patterns, with_states
from carryscope.task.strata import stratum_probabilities, stratum_states
from carryscope.training.presets import preset
from carryscope.training.summary import card


@pytest.fixture(scope="module")
def run():
    return cs.load("exact-5")


@pytest.mark.parametrize("name", ["exact-5", "exact-7"])
def test_it_was_made_by_its_recipe(name):
    assert cs.load(name).config.training == preset(name).training
    assert cs.load(name).config.model == preset(name).model


@pytest.mark.parametrize("name", ["exact-5", "exact-7"])
def test_its_certificate_says_what_its_log_says_and_a_sample_of_its_boxes_is_decided_again(name):
    """The README's command decides all boxes of exact-5 again; `test_readme.py` runs it."""
    run = cs.load(name)
    certificate = read_json(run.directory / CERTIFICATE.file, CERTIFICATE.record)
    assert certificate.about == "float32"
    assert (certificate.found_with, certificate.checked_with) == (["numba"], "torch")
    assert certificate.proved_right == certificate.questions == str(100**run.config.model.digits)
    search = ProofSearch(run.model(), certificate, engine="torch")
    check_what_is_said(search, certificate)
    claims = [claimed for row in range(len(search.proofs)) for claimed in claims_of(search, row)]
    assert sum(len(claimed.boxes) for claimed in claims) > 10_000
    verify_sample(search.subject, claims)


@pytest.mark.parametrize("question", ["99999+1", "445+555", "54321+45679", "0+0", "99999+99999"])
def test_it_adds_what_the_papers_model_cannot(run, question):
    first, second = map(int, question.split("+"))
    given = run.ask(question)
    assert int(given.answer) == first + second
    assert given.correct


def test_its_heads_read_every_column_that_can_decide_a_digit(run):
    attention = run.dissection().attention
    for digit in range(6):
        read = {one.column for one in attention.readings if one.answer == f"A{digit}"}
        assert set(range(min(digit + 1, 5))) <= read


def test_its_card_says_what_is_proved_and_what_is_not(run):
    card_text = (run.directory / "README.md").read_text()
    assert card_text.startswith(card(run.training(), run.config))
    assert "all 10,000,000,000 questions right in any float32 evaluation" in card_text
    assert "Nothing is proved about formats shorter than float32" in card_text


def test_seven_digits_add_and_their_card_says_what_is_proved():
    seven = cs.load("exact-7")
    assert seven.ask("9999999+1").answer == "10000000"
    assert "all 100,000,000,000,000 questions right" in (seven.directory / "README.md").read_text()


@pytest.mark.slow
def test_every_box_of_seven_digits_is_decided_again_by_the_engine_that_did_not_search():
    seven = cs.load("exact-7")
    certificate = seven.read(CERTIFICATE).found
    checked = check_certificate(seven.model(), certificate, workers=2)
    assert checked.engine == "torch"
    assert checked.boxes == sum(digit.boxes for digit in certificate.per_digit) > checked.claims


CASCADES = [
    f"{'*' * (4 - column - nines)}{'P' * nines}{start}{'*' * column}"
    for start in "KG"
    for column in range(5)
    for nines in range(1, 5 - column)
]
"""Every length of cascade from every column that starts one, with a carry and without."""


@pytest.mark.slow
def test_ten_million_questions_of_every_kind_are_answered_right_in_float32(run):
    generator, model = np.random.default_rng(7), run.model()
    states = np.stack([stratum_states(name) for name in stratum_probabilities(5)])
    for _ in range(100):
        drawn = states[generator.integers(0, len(states), 20_000)]
        kinds = [
            uniform(generator, 20_000, 5),
            with_states(generator, drawn),
            with_patterns(generator, 10_000, CASCADES),
        ]
        kinds += [Questions(one.second, one.first) for one in kinds]
        given = answer(model, Questions.joined(kinds), free_running=False)
        assert len(given.right) == 100_000
        assert given.right.all()
