"""The failing sum: drawn as it is, with the column that no head reads, and the right words."""

import dataclasses

import pytest
from report.test_figures import texts

import carryscope
from carryscope.report.figures.sum import columns_read, hardest, sum_figure
from carryscope.report.parts import Picture, Text
from carryscope.report.sections.why import shown_sum, sums_to_try, telling, why_section
from carryscope.task.tokens import Format


@pytest.fixture(scope="module")
def run():
    return carryscope.load()


def test_the_papers_example_is_drawn_with_its_carry_its_readers_and_its_blind_column(run):
    drawn = sum_figure(run.ask("445+555"), whose="fast-5")
    svg = drawn.page_svg()
    assert {"H0", "H1", "H2", "no head", "model", "truth"} <= set(texts(svg))
    assert "the carry for A3 is made in column 0" in texts(svg)
    assert texts(svg).count("1") == 3 + 1, "three carries, and the true digit"
    assert "the heads read columns 3, 2 and 1; not read, but needed: column 0" in drawn.description
    assert drawn.title == "fast-5: 445+555 = 000000, wrong"


def test_a_right_sum_has_no_blind_column_and_nothing_orange(run):
    given = run.ask("25+79")
    assert hardest(given).name == "A2"
    svg = sum_figure(given).page_svg()
    assert "no head" not in texts(svg)
    assert "#b3400a" not in svg


def test_a_carry_that_does_not_come_is_drawn_as_one_that_is_ruled_out(run):
    svg = sum_figure(run.ask("12345+11111")).page_svg()
    assert any("is ruled out by column" in text for text in texts(svg))


def test_what_is_read_is_what_the_explanation_says_it_is(run):
    for question in ("445+555", "997+3", "9930+70"):
        for digit in run.ask(question).digits:
            if digit.explanation is not None:
                plain = columns_read(type(digit)(**{**fields(digit), "explanation": None}))
                assert plain.items() <= digit.explanation.read.items()


def fields(record):
    return {name: getattr(record, name) for name in record.__struct_fields__}


def test_the_example_is_the_papers_if_the_model_fails_on_it_else_one_that_fails(run):
    risk = run.risk()
    assert sums_to_try(Format(5), risk)[:2] == ["445+555", "991+9"]
    assert sums_to_try(Format(2), None) == ["1+9"]
    right, wrong = run.ask("1+1"), run.ask("997+3")
    assert telling([right, wrong]) is wrong
    assert telling([right]) is None
    assert why_section([]) is None


def test_the_section_says_in_a_sentence_what_the_picture_shows(run):
    section = why_section([(run.shelf(), run.model())])
    lead, picture, general = section.parts
    assert isinstance(lead, Text)
    assert isinstance(picture, Picture)
    assert lead.text.startswith("A3 is 0 and should be 1: the carry is made in column 0")
    assert "No head reads column 0" in lead.text
    assert general.facts["Measured, in general"] == run.faithfulness().sight.statement
    assert section.title == "Why it breaks: 445+555"
    assert shown_sum(section) == "445+555", "the explorer opens on it"


def test_next_to_it_stands_the_model_that_reads_every_column(run):
    exact = carryscope.load("exact-5")
    section = why_section([(one.shelf(), one.model()) for one in (run, exact)])
    *_, told, picture, _ = section.parts
    assert told.text == (
        "`exact-5` has five heads. To write A3 of 445+555, they read columns 3, 2, 1 and 0, and A3 "
        "is right. The model is proved to answer all 10,000,000,000 questions right in any "
        "float32 evaluation."
    )
    assert picture.figure.title == "exact-5: 445+555 = 001000, right"


def test_a_model_that_is_proved_says_that_no_failing_sum_exists():
    exact = carryscope.load("exact-5")
    section = why_section([(exact.shelf(), exact.model())])
    assert section.title == "Why it does not break: a sum that fails does not exist"
    assert shown_sum(section) == ""
    assert "proved to answer all 10,000,000,000 questions right" in section.parts[0].text
    assert "no head" not in texts(section.parts[1].figure.svg())


def test_any_format_and_any_number_of_digits_can_be_drawn(random_model):
    from carryscope.dissection.asking import answers_without

    for shape in ({"digits": 1}, {"digits": 3, "format": "signed", "layers": 2}, {"digits": 12}):
        model = random_model(**shape)
        (given,) = answers_without(model, ["7+5"], ())
        svg = sum_figure(given).svg()
        assert "NaN" not in svg
        assert dataclasses.is_dataclass(sum_figure(given))
