"""The report says what is proved and what is not, rounds to the safe side, and claims no more."""

import dataclasses
import math
from fractions import Fraction

import pytest
from report.certificates import certificate, family
from report.shelves import HOSTILE, Seen, made_hostile, replaced, shipped_shelf

from carryscope.core.errors import CallError
from carryscope.core.words import counted_share
from carryscope.report.page import report_page
from carryscope.report.parts import Absent, Facts, Text
from carryscope.report.sections.certificate import (
    certificate_section,
    measured_and_proved,
    unfinished,
)
from carryscope.report.sections.method import commands, missing
from carryscope.report.sections.report import figure, report_sections
from carryscope.report.sections.verdict import headline, verdict_section
from carryscope.report.shelf import Shelf
from carryscope.report.tables import Table
from carryscope.run import Run
from carryscope.training.loop import train
from carryscope.training.presets import run_config
from carryscope.verification.estimate import Rate


def shelf_with(**fields) -> Shelf:
    """The shipped model with some certificate; what takes long to draw is left out."""
    return dataclasses.replace(
        shipped_shelf(),
        certificate=certificate(**fields),
        dissection=None,
        story=None,
        faithfulness=None,
    )


def measured(low: float, estimate: float, high: float, *, exhaustive: bool = False):
    return replaced(
        shipped_shelf().risk,
        teacher_forced=Rate(estimate=estimate, low=low, high=high),
        exhaustive=exhaustive,
    )


@pytest.mark.parametrize(
    ("part", "of", "down", "up"),
    [
        (0, 10**10, "0%", "0%"),
        (10**10, 10**10, "100%", "100%"),
        (1, 2, "50.0%", "50.0%"),
        (1, 3, "33.3%", "33.4%"),
        (9_893_567_900, 10**10, "98.93%", "98.94%"),
        (10**10 - 1, 10**10, "99.999999%", ">99.999999%"),
        (10**20 - 1, 10**20, "99.999999%", ">99.999999%"),
        (1, 10**20, "<0.000001%", "0.000001%"),
        (1, 10**8, "0.000001%", "0.000001%"),
    ],
)
def test_a_counted_share_is_rounded_to_the_safe_side(part, of, down, up):
    assert counted_share(part, of) == down
    assert counted_share(part, of, at_most=True) == up


def test_no_share_but_all_is_100_and_none_but_nothing_is_0():
    for part in range(1, 999):
        for at_most in (False, True):
            told = counted_share(part, 999, at_most=at_most)
            value, exact = Fraction(told.rstrip("%")) / 100, Fraction(part, 999)
            assert 0 < value < 1
            assert value >= exact if at_most else value <= exact
            assert math.isclose(value, exact, rel_tol=0.01)


def test_the_verdict_shows_what_is_proved():
    shelf = shelf_with()
    (facts,) = [part.facts for part in verdict_section(shelf).parts if isinstance(part, Facts)]
    assert facts["Proved"].startswith(shelf.certificate.statement)
    assert headline(shelf).startswith("Right in 99.19%"), "what is measured is known better"


def test_a_proof_without_any_whole_answer_does_not_boast():
    shelf = shelf_with(wrong=0, undecided=10**10, ended="time", seconds=60.2)
    assert "Proved right" not in headline(shelf)
    assert measured_and_proved(shelf.certificate, shelf.risk) == ""


def test_without_any_measurement_the_headline_is_what_is_proved():
    shelf = dataclasses.replace(shelf_with(), risk=None)
    assert headline(shelf) == "Proved right in 98.93% of all questions or more"
    nothing = dataclasses.replace(shelf_with(wrong=0, undecided=10**10), risk=None)
    assert headline(nothing).startswith("Right in 9,924 of 10,000 uniform questions")


def test_a_full_proof_is_the_headline():
    shelf = shelf_with(wrong=0, undecided=0)
    assert headline(shelf) == "Proved right in all 10,000,000,000 questions"
    assert unfinished(shelf.certificate, shelf.where) == []


def test_bounds_that_meet_become_one_number():
    found = certificate(2, wrong=7, undecided=0)
    exact = measured(7e-4, 7e-4 + 1e-17, 7e-4, exhaustive=True)
    told = "Measured wrong: 0.070%. Proved wrong: 0.0700%. The two agree."
    assert measured_and_proved(found, exact) == told


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        ((0.006, 0.0062, 0.0064), "Proved wrong: 0.410% to 1.07%. The two agree."),
        ((0.003, 0.0062, 0.0064), "The two agree."),
        ((0.002, 0.003, 0.0064), "The two agree."),
        ((0.001, 0.002, 0.003), "0.410% to 1.07%. The two contradict each other. One interval"),
        ((0.02, 0.03, 0.04), "measure once more"),
    ],
)
def test_what_is_measured_is_held_against_what_is_proved(rate, said):
    assert said in measured_and_proved(certificate(), measured(*rate))


def test_a_contradiction_with_all_questions_asked_is_an_error():
    told = measured_and_proved(certificate(), measured(0.5, 0.5, 0.5, exhaustive=True))
    assert "one of them is in error" in told
    assert "interval" not in told


def test_tables_show_the_largest_families_with_an_example_each():
    wrong = [family("A3", "**PPG", 10**7 - i, f"{i}97+3") for i in range(11)]
    section = certificate_section(shelf_with(wrong_families=wrong).certificate)
    tables = {part.name: part for part in section.parts if isinstance(part, Table)}
    assert len(tables["proved-wrong"].rows) == 8
    assert tables["proved-wrong"].rows[0] == [
        "A3",
        "097+3",
        "column 2 sums to 9, column 1 sums to 9, column 0 sums to 10 or more",
        "**PPG",
        "10,000,000",
        "0.100%",
    ]
    assert "3 more are in findings/certificate.json" in tables["proved-wrong"].caption
    assert [row[0] for row in tables["undecided"].rows] == ["A1"]
    rows = {row[0]: row[1:] for row in tables["certificate"].rows}
    assert rows["A3"] == ["99.590%", "0.410%", "0%", "1,234"]
    assert rows["whole answer"] == ["98.93%", "0.410%", "0.655%", "7,404"]
    assert "9,893,567,900 right, 41,000,000 wrong" in tables["certificate"].caption


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"ended": "time", "seconds": 60.3}, "After 60 seconds its time was up, with 50.0%"),
        ({"ended": "asked to", "seconds": 1.0}, "After 1 second it was stopped"),
        ({"ended": "still running"}, "After 42 minutes it was still running when this page"),
        ({"ended": "decided", "until": 0.5}, "it had decided as much as it was to decide"),
    ],
)
def test_a_search_that_ended_early_says_how_to_continue(fields, why):
    shelf = shelf_with(undecided=5 * 10**9, **fields)
    (part,) = unfinished(shelf.certificate, shelf.where)
    assert part.state == "not finished"
    assert part.command.startswith("carryscope certify ")
    assert why in part.why
    assert part in missing(shelf)


@pytest.mark.parametrize("fields", [{}, {"undecided": 5 * 10**9}, {"ended": "time"}])
def test_a_search_with_nothing_left_to_do_is_not_to_be_continued(fields):
    """Enough is decided, or no box is left that could be split."""
    assert unfinished(shelf_with(**fields).certificate, "RUN") == []


def test_the_method_counts_boxes_and_says_for_how_long_to_search():
    shelf = shelf_with(ended="time", until=0.999)
    told = " ".join(Seen(report_page(shelf).html).text.split())
    assert "3,456,789 boxes of questions were bounded" in told
    assert "answered 4,090 questions from decided boxes" in told
    assert commands(shelf)[-2].endswith(" --until 0.999 --minutes 42")
    assert f"carryscope certify {shelf.where} --check" in told


def test_a_certificate_that_cannot_be_used_is_to_be_made_again():
    part = Absent("a certificate", "carryscope certify RUN --again", "About other weights.")
    shelf = dataclasses.replace(shipped_shelf(), certificate=None, absent={"certificate": part})
    assert part in missing(shelf)
    with pytest.raises(CallError, match=r"A certificate: not run. Run: .*--again"):
        figure("certificate", shelf)


def test_a_model_of_two_layers_is_said_to_be_beyond_proof_and_nothing_is_offered():
    none = {"certificate": Absent("a certificate", "carryscope certify RUN")}
    shelf = dataclasses.replace(shelf_with(), certificate=None, absent=none)
    assert any("certify" in part.command for part in missing(shelf))
    model = replaced(shelf.config.model, layers=2)
    deep = dataclasses.replace(shelf, config=replaced(shelf.config, model=model))
    assert not any("certify" in part.command for part in missing(deep))
    method = report_sections(deep)[-1]
    (note,) = [part for part in method.parts if isinstance(part, Text) and part.lead]
    assert "A certificate is for models of 1 layer" in note.text
    with pytest.raises(CallError, match="for models of 1 layer"):
        figure("certificate", deep)
    with pytest.raises(CallError, match="A certificate: not run. Run: carryscope certify"):
        figure("certificate", shelf)


def test_hostile_texts_in_a_certificate_are_text():
    shelf = shelf_with(undecided=5 * 10**9)
    shelf = dataclasses.replace(shelf, certificate=made_hostile(shelf.certificate))
    (wrong,), (undecided,) = shelf.certificate.wrong_families, shelf.certificate.undecided_families
    assert HOSTILE in wrong.words
    seen = Seen(report_page(shelf).html)
    assert len(seen.all("script")) == 1
    assert not seen.all("img")
    for text in (shelf.certificate.statement, wrong.words, wrong.example, undecided.states):
        assert text.partition("`")[0] in seen.text


def test_the_figure_shows_every_token_and_what_is_rare_too():
    svg = figure("certificate", shelf_with(wrong=3)).page_svg()
    for label in ("A5", "A0", "whole answer", "proved right", "undecided", "100%", "&lt;0.000001%"):
        assert f">{label}</text>" in svg
    assert 'data-tip="3 of 10,000,000,000 questions"' in svg


@pytest.mark.parametrize(
    "found",
    [
        certificate(1, wrong=0, undecided=0),
        certificate(1, wrong=100, undecided=0),
        certificate(20, wrong=1, undecided=1),
        certificate(2, wrong=0, undecided=10_000),
    ],
)
def test_the_figure_can_be_drawn_for_any_certificate(found):
    svg = figure("certificate", dataclasses.replace(shipped_shelf(), certificate=found)).svg()
    assert "NaN" not in svg
    assert "undefined" not in svg
    assert ">100%</text>" in svg


def test_a_part_that_was_not_finished_is_not_called_not_run():
    told = Seen(report_page(shelf_with(undecided=5 * 10**9, ended="time")).html).text
    assert "Proved bounds on its accuracy: not finished." in told
    assert "Proved bounds on its accuracy: not run." not in told
    assert Absent("x", "y").state == "not run"


def test_a_real_certificate_agrees_with_asking_every_question(tmp_path):
    directory = tmp_path / "run"
    train(run_config("tiny", {"steps": 60, "d_model": 24}), directory)
    run = Run(directory)
    found = run.certificate(workers=1, until=1.0, minutes=0.1)
    run.risk()
    shelf = run.shelf()
    assert shelf.certificate.proved_right == found.proved_right
    assert [section.id for section in report_sections(shelf)] == (
        "verdict how failures certificate training method".split()
    )
    told = " ".join(Seen(report_page(shelf).html).text.split())
    assert found.statement.partition(". ")[2] in told
    assert "The two agree." in told
    file = directory / "findings" / "certificate.json"
    file.write_text(file.read_text().replace(found.weights_sha256, "0" * 64))
    assert run.shelf().certificate is None
    (part,) = [part for part in missing(run.shelf()) if "certify" in part.command]
    assert "is about other weights" in part.why
