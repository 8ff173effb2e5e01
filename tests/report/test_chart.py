"""What a figure says when one points at it, and the numbers it hands out."""

import csv
import io

import pytest

from carryscope.report.figures.canvas import Canvas
from carryscope.report.figures.figure import Figure
from carryscope.report.figures.plot import Axis, Plot
from carryscope.report.tables import as_csv


@pytest.fixture
def drawn() -> Figure:
    canvas = Canvas()
    for i, panel in enumerate(("left", "right")):
        plot = Plot(canvas, (i * 200, 0), (100, 100), Axis.linear(0, 3), Axis.linear(0, 6), panel)
        plot.line([(1, 5), (2, None), (3, 6)])
        for x, tip in ((1, 'one & "two" <b>'), (2, "three")):
            plot.pointed(x, tip)
            canvas.records.append({"panel": panel, "x": x})
    return Figure(canvas, "Dots", "Two dots, twice.", "How to read it.")


def test_marks_with_a_tip_say_it_and_the_others_stay_silent(drawn):
    page = drawn.page_svg()
    assert page.count("data-tip=") == 4
    assert 'data-tip="one &amp; &quot;two&quot; &lt;b>"' in page or "&lt;b&gt;" in page
    assert page.count("aria-label") == 1, "the figure's own"
    assert "data-tip" not in drawn.svg()


def test_on_a_page_the_title_is_left_to_the_page(drawn):
    assert ">Dots</text>" in drawn.svg()
    assert ">Dots</text>" not in drawn.page_svg()
    assert ">left</text>" in drawn.page_svg()


def test_the_numbers_are_those_that_can_be_pointed_at_each_once_and_with_its_panel(drawn):
    rows = list(csv.DictReader(io.StringIO(drawn.csv())))
    assert rows == [
        {"panel": "left", "x": "1"},
        {"panel": "left", "x": "2"},
        {"panel": "right", "x": "1"},
        {"panel": "right", "x": "2"},
    ]


def test_csv_keeps_what_some_records_lack_empty_and_quotes_what_needs_it():
    assert as_csv([{"a": 1, "b": "x,y"}, {"c": None}]) == 'a,b,c\n1,"x,y",\n,,\n'


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+SUM(1)", "@import(x)", "-2+3|x"])
def test_a_spreadsheet_is_given_no_formula(text):
    assert as_csv([{"a": text}]).splitlines()[1].strip('"').startswith("'")


@pytest.mark.parametrize("text", ["=", "+", "-0.5", "445+555"])
def test_our_own_names_and_numbers_are_left_alone(text):
    assert as_csv([{"a": text}]) == f"a\n{text}\n"


def test_an_axis_has_about_five_round_marks():
    assert list(Axis.linear(0, 7000).marks) == [0, 2000, 4000, 6000]
    assert Axis.linear(0, 1).marks == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert Axis.logarithmic([1e-5, 2.0]).marks == pytest.approx([1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1])


def test_values_lie_where_they_belong_and_those_outside_at_the_edge():
    axis = Axis.logarithmic([1e-3, 10.0])
    assert axis.share(0.1) == pytest.approx(0.5)
    assert (axis.share(0.0), axis.share(1e9)) == (0.0, 1.0)
    assert Axis.linear(2, 4).share(3) == 0.5


def test_a_line_breaks_off_where_a_value_is_missing(drawn):
    assert drawn.svg().count("M") - drawn.svg().count("L") > 2
