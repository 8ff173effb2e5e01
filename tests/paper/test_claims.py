"""The claims file refers to what exists, verdicts follow their rule, the page shows both."""

import sys
from inspect import isfunction, signature
from pathlib import Path

import msgspec
import pytest
from paper_studies import shipped

import carryscope
from carryscope.report.paper import paper_values
from carryscope.training.presets import PRESETS
from paper.claims.claims import (
    Check,
    Claim,
    Number,
    Verdict,
    judged,
    load_claims,
    verdict_of,
)
from paper.claims.judging import judge, measure_of
from paper.claims.page import ClaimsResult, claims_markdown, claims_result
from paper.claims.reading import study_of
from paper.claims.tables import TABLES, tables_markdown

PAPER = Path(__file__).parents[3] / "shared" / "paper.tex"

CLAIMS = {claim.id: claim for claim in load_claims()}


def both():
    """The shipped model in the place of both of the paper's 5-digit models."""
    return {"paper-5": shipped(), "paper-5-long": shipped()}


def check(holds: bool, **fields) -> Check:
    number = Number(what="loss", run="paper-5", kind="loss", estimate=0.5, low=0.4, high=0.6, of=7)
    return Check(**{"what": "it is so", "holds": holds, "numbers": [number], **fields})


def test_every_claim_has_a_name_of_its_own_and_says_how_and_why():
    assert len(CLAIMS) == len(load_claims())
    for claim in CLAIMS.values():
        assert all([claim.title, claim.statement, claim.how, claim.tolerance, claim.because])


def test_every_value_of_the_paper_that_a_claim_names_exists():
    assert {name for claim in CLAIMS.values() for name in claim.paper} <= set(paper_values())


def test_every_measure_exists_and_is_used():
    used = {measure_of(claim) for claim in CLAIMS.values()}
    modules = {sys.modules[measure.__module__] for measure in used}
    there = {
        function
        for module in modules
        for name, function in vars(module).items()
        if isfunction(function) and function.__module__ == module.__name__ and name[0] != "_"
        if list(signature(function).parameters) == ["claim", "studies"]
    }
    assert used == there


def test_every_run_is_a_recipe():
    assert {name for claim in CLAIMS.values() for name in claim.runs} <= set(PRESETS)


@pytest.mark.skipif(not PAPER.exists(), reason="the paper's source is not beside the repository")
def test_every_label_stands_in_the_paper():
    source = PAPER.read_text()
    missing = [c.label for c in CLAIMS.values() if f"\\label{{{c.label}}}" not in source]
    assert missing == []


@pytest.mark.parametrize(
    ("checks", "verdict"),
    [
        ([check(True), check(True)], Verdict.HOLDS),
        ([check(True), check(False)], Verdict.PART),
        ([check(False), check(False)], Verdict.FAILS),
        ([check(True), check(False, role="core")], Verdict.FAILS),
        ([check(True), check(False, role="premise")], Verdict.MOOT),
        ([check(False), check(True, role="core")], Verdict.PART),
        ([check(False), check(True, role="premise")], Verdict.FAILS),
        ([check(True, control=True), check(True, control=True)], Verdict.ANY),
        ([check(True, control=True), check(True, control=False)], Verdict.HOLDS),
        ([check(True, control=True), check(True)], Verdict.HOLDS),
        ([check(False, control=False)], Verdict.FAILS),
    ],
)
def test_a_verdict_follows_from_the_checks(checks, verdict):
    assert verdict_of(checks) is verdict


def test_a_reason_has_the_numbers_of_what_failed():
    claim = CLAIMS["loss-5"]
    found = judged(claim, [check(True, what="this"), check(False, what="that")], [])
    assert found.reason == "1 of 2 checks passed. Failed: that: 0.5000 (0.4000 to 0.6000)."
    premise = judged(claim, [check(True), check(False, role="premise", what="it adds")], [])
    assert premise.reason.startswith("Its premise does not hold: it adds: 0.5000")


@pytest.mark.parametrize(
    ("kind", "estimate", "text"),
    [
        ("loss", 0.0123456, "0.0123"),
        ("loss", 0.000081, "0.000081"),
        ("loss", 2e-8, "below 0.000001"),
        ("share", 0.25, "25%"),
        ("share", None, "no data"),
        ("step", 1234, "step 1,234"),
        ("step", None, "never"),
        ("steps", 27, "27 steps"),
        ("count", 3, "3"),
    ],
)
def test_numbers_read_as_a_person_writes_them(kind, estimate, text):
    assert Number(what="it", run=None, kind=kind, estimate=estimate).text == text


def test_a_missing_run_gets_the_command_that_makes_it():
    (found,) = [one for one in judge({}) if one.claim.id == "loss-10"]
    assert found.verdict is Verdict.UNMEASURED
    assert found.command == "python -m paper --only paper-10"


def test_a_run_of_another_recipe_is_labelled_as_such():
    (found,) = [one for one in judge(both()) if one.claim.id == "loss-5"]
    assert found.runs[0].preset == "fast-5"
    assert "paper-5 (recipe fast-5)" in claims_markdown(claims_result([found]))


def test_the_record_reads_back_as_it_was_written():
    found = judge({"paper-5": study_of("paper-5", carryscope.load())})
    record = msgspec.json.encode(claims_result(found))
    kept = msgspec.json.decode(record, type=ClaimsResult)
    assert kept.claims == found
    claimed = [one for one in found if not one.claim.leaves_open]
    assert sum(kept.summary.values()) == len(claimed) == len(CLAIMS) - 1
    assert str(carryscope.load().directory) not in record.decode()


def test_the_page_has_every_claim_with_its_verdict_and_its_numbers():
    found = judge(both())
    page = claims_markdown(claims_result(found))
    for one in found:
        assert f'<a id="{one.claim.id}"></a>' in page
        assert f"](#{one.claim.id})" in page
    held_out = shipped().training.held_out_loss
    assert f"held-out loss {held_out.estimate:.4f} ({held_out.low:.4f}" in page
    assert "8,192 questions" in page
    assert "python -m paper --only paper-15" in page


def test_the_page_follows_the_record():
    (one,) = [one for one in judge(both()) if one.claim.id == "loss-5"]
    number = msgspec.structs.replace(one.numbers[0], estimate=0.7777, low=0.7, high=0.8)
    other = msgspec.structs.replace(
        one,
        verdict=Verdict.FAILS,
        checks=[msgspec.structs.replace(one.checks[0], numbers=[number])],
    )
    page = claims_markdown(claims_result([other]))
    assert "0.7777 (0.7000 to 0.8000)" in page
    assert "Of 1 claims of the paper, 1 does not hold." in page


def test_the_summary_counts_every_verdict():
    claim = CLAIMS["loss-5"]
    holding, failing = (judged(claim, [check(holds)], []) for holds in (True, False))
    told = claims_result([holding, holding, failing]).sentence
    assert told == "Of 3 claims of the paper, 2 hold, 1 does not hold."


def test_whatever_a_claim_or_a_run_is_called_is_shown_as_text():
    hostile = "<script>alert(1)</script> | *bold* `code` [link](x)"
    texts = dict.fromkeys(("title", "where", "statement", "how", "tolerance"), hostile)
    claim: Claim = msgspec.structs.replace(CLAIMS["loss-5"], **texts)
    page = claims_markdown(claims_result([judged(claim, [check(True, what=hostile)], [])]))
    assert "<script>" not in page
    assert "*bold*" not in page.replace("\\*bold\\*", "")
    row = next(line for line in page.splitlines() if line.startswith("| [") and "(#loss-5)" in line)
    assert row.replace("\\|", "").count("|") == 6


def test_the_tables_have_the_papers_values_next_to_ours():
    text = tables_markdown({"paper-5": carryscope.load().shelf()})
    assert text.count("\n### ") == len(TABLES)
    assert "| A1 | 0.00012 | 0.00011 | 0.046 |" in text
    assert "Nyyyyy: 47" in text
    assert "the base-add head 4.712" in text
    assert "| paper-5 | 5 | 3 |" in text
