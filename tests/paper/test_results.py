"""The committed records, judged again; the page that stands on them; the numbers it compares."""

import re

import pytest

from carryscope.api import load
from carryscope.training.presets import preset
from paper import exact, mlp, plan, starting, why
from paper.claims import DrawRecord, estimands_of, frozen, judge
from paper.page import PAGE, _stacked, pages, sentence, strip
from paper.printed import Printed, placed, table_2
from paper.study import RESULTS

HOME = plan.STUDY.home


@pytest.fixture(scope="module")
def records():
    return plan.STUDY.read()


@pytest.mark.parametrize("module", [plan, mlp, why, exact, starting])
def test_every_committed_page_and_figure_follows_from_the_records(module):
    study = module.STUDY
    for name, text in study.pages(study.read()).items():
        assert (study.home / name).read_text() == text, name


def test_every_record_is_of_a_whole_training_and_has_all_numbers(records):
    assert records
    for record in records:
        recipe = preset(record.recipe).training
        assert record.seed in {recipe.seed, *frozen().seeds[record.recipe]}
        assert record.steps == recipe.steps, record.seed
        assert estimands_of(record.recipe) <= set(record.numbers), record.seed


def test_the_page_can_be_read_in_a_sitting():
    whole = (HOME / PAGE).read_text()
    text = re.sub(r"!\[[^]]*\]\([^)]*\)|<a [^>]*></a>|(?<=\])\([^)]*\)", "", whole)
    assert len(re.findall(r"[A-Za-z][\w'-]*", text)) <= 3000, "words have letters"


def test_the_results_are_small():
    files = [*RESULTS.rglob("*.*"), *(HOME / "strips").iterdir()]
    assert sum(file.stat().st_size for file in files) < 6_000_000


def test_every_strip_on_the_page_is_there_and_no_other():
    shown = set(re.findall(r"strips/([\w-]+\.svg)", (HOME / PAGE).read_text()))
    assert shown == {file.name for file in (HOME / "strips").iterdir()}


def record(**fields):
    common = {"package_version": "", "weights_sha256": "", "machine": "", "heads": []}
    numbers = {**dict.fromkeys(estimands_of("paper-5")), "columns_read": 3.0}
    given = {"recipe": "paper-5", "seed": 201, "steps": 5000, "held_out_loss": 0.01}
    return DrawRecord(**{**common, "numbers": numbers, **given, **fields})


def test_a_page_of_short_trainings_says_so_and_judges_nothing():
    page = pages([record(steps=100)])[PAGE]
    assert page.startswith("**A smoke test. Nothing is reproduced")
    assert "`paper-5`" in page
    assert "three-columns" not in page, "claims are not on it"


def test_a_verdict_before_all_draws_are_in_says_so():
    kept = [record(seed=seed, numbers=numbers(0.2)) for seed in range(201, 217)]
    for count, said in ((9, "not decidable here"), (12, "replicated so far"), (16, "replicated")):
        page = pages(kept[:count])[PAGE]
        assert f"(#cascades-fail) | **{said}** | {count} of {count} " in page


def test_the_sentence_counts_verdicts_and_draws():
    said = sentence(judge([record()]))
    assert said == (
        "Of 28 claims of the paper, 28 are not decidable here, on 1 of 62 planned draws."
    )


def test_a_strip_has_a_dot_for_each_draw_and_none_hides_another():
    kept = [record(seed=seed, numbers=numbers(0.2)) for seed in (201, 202)]
    kept += [record(seed=203, numbers=numbers(None)), record(seed=129000, numbers=numbers(0.2))]
    one = next(j for j in judge(kept) if j.claim.id == "cascades-fail")
    dots = _stacked(one, 0.0, 0.3)
    assert [level for _, level, _, _ in dots] == [0, 1, 0, 2]
    assert dots[2][0] == 0.0, "a draw without a value is where the claim fails"
    assert [authors for *_, authors in dots] == [False, False, False, True]
    assert "holds in 2 of 3 fresh draws" in strip(one).svg()


def numbers(loss):
    return {**dict.fromkeys(estimands_of("paper-5")), "columns_read": 3.0, "cascade_loss": loss}


def test_a_printed_number_stands_for_all_that_round_to_it():
    assert Printed("", "", "0.009", "").ends == pytest.approx((0.0085, 0.0095))
    assert Printed("", "", "<0.001", "").ends == (0.0, 0.001)
    assert Printed("", "", "0.61", "", cut=True).ends == pytest.approx((0.61, 0.62))


def test_a_printed_number_is_placed_among_single_batches():
    values = [0.001 * i for i in range(1, 101)]
    kept = record(printed={"loss": values})
    (found,) = placed([Printed("Table 1", "loss", "0.009", "loss")], [kept])
    assert found.percentile == pytest.approx((0.08, 0.09))
    assert found.median == pytest.approx(0.0505)
    (rare,) = placed([Printed("", "", "0.2", "loss")], [kept])
    assert found.usual
    assert not rare.usual
    assert list(placed([Printed("", "", "0.2", "other")], [kept])) == []


def test_table_2_has_the_same_numbers_in_both_readings_in_opposite_order():
    printed, ordered = (table_2(token_order=order) for order in (False, True))
    assert [one.quantity for one in printed] == [one.quantity for one in ordered]
    assert [one.text for one in printed] == [one.text for one in ordered][::-1]
    assert {one.quantity: one.text for one in ordered}["loss of A4"] == "0.046"


@pytest.mark.parametrize("name", ["exact-5", "exact-7"])
def test_the_shipped_exact_adders_are_seeds_of_the_study_and_are_proved(name):
    seeds = [one for one in exact.STUDY.read() if one.preset == name]
    shipped = next(one for one in seeds if one.seed == preset(name).training.seed)
    assert shipped.exact
    assert shipped.weights_sha256 == load(name).weights_sha256
