"""A finding is a record like any other, and shows itself in short."""

import msgspec

from carryscope.core.evidence import Finding, Share


class ExamFinding(Finding, frozen=True, kw_only=True):
    seed: int
    right: Share
    verdict: str
    marks: list[int]


class ExamRecord(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    right: Share
    verdict: str
    marks: list[int]


FIELDS = {"seed": 3, "right": Share.measured(9, 10), "verdict": "It passed. " * 20, "marks": [1, 2]}


def test_its_json_is_that_of_a_plain_record():
    written = msgspec.json.encode(ExamFinding(**FIELDS))
    assert written == msgspec.json.encode(ExamRecord(**FIELDS))
    assert msgspec.json.decode(written, type=ExamFinding) == ExamFinding(**FIELDS)


def test_its_text_is_short_and_names_plain_fields():
    told = repr(ExamFinding(**FIELDS))
    assert told.startswith("ExamFinding(seed=3, right=Share(count=9, of=10")
    assert "marks" not in told
    assert len(told) < 200


def test_a_finding_of_a_users_own_stage_shows_itself_in_a_notebook():
    shown = ExamFinding(**{**FIELDS, "verdict": "<b>passed</b>"})._repr_html_()
    assert "&lt;b&gt;passed&lt;/b&gt;" in shown
    assert "<dt>seed</dt><dd>3</dd>" in shown
