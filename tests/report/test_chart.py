"""What a figure says when one points at it, and the numbers it hands out."""

import csv
import io
import re

import altair as alt
import pytest

from carryscope.report.figures.drawing import SAYS, TIP, data, shade
from carryscope.report.figures.figure import Figure
from carryscope.report.tables import as_csv


@pytest.fixture
def drawn() -> Figure:
    said = [
        {"x": 1, "_y": 5, TIP: 'one & "two" <b>'},
        {"x": 2, "_y": 6, TIP: "three"},
    ]
    points = alt.Chart(data(said)).mark_point().encode(x="x:O", y="_y:Q", description=SAYS)
    silent = alt.Chart(data([{"limit": 3}])).mark_rule().encode(y="limit:Q")
    panels = [alt.layer(points, silent).properties(title=title) for title in ("left", "right")]
    return Figure(alt.hconcat(*panels), "Dots", "Two dots, twice.", "How to read it.")


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


@pytest.mark.parametrize("text", ["= → A5", "+", "-0.5", "445+555"])
def test_our_own_names_and_numbers_are_left_alone(text):
    assert as_csv([{"a": text}]) == f"a\n{text}\n"


def test_charts_on_one_page_share_no_ids():
    charts = [
        alt.Chart(data([{"x": x, "share": 0.5}])).mark_point().encode(x="x:Q", color=shade("s"))
        for x in (1, 2)
    ]
    pages = [Figure(chart, "", "").svg() for chart in charts]
    first, second = (set(re.findall(r' id="([^"]+)"', svg)) for svg in pages)
    assert first
    assert second
    assert not first & second
    for svg in pages:
        assert set(re.findall(r"url\(#([^)]+)\)", svg)) <= set(re.findall(r' id="([^"]+)"', svg))
