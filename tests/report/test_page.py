"""One file that needs nothing else, says what was found, and takes no text for markup."""

import dataclasses
import json
import re

import pytest
from report.shelves import (
    HOSTILE,
    Seen,
    made_hostile,
    replaced,
    shipped_shelf,
    untrained_shelf,
)

from carryscope.api import import_model
from carryscope.core.words import percent, with_interval
from carryscope.model.transformer_lens import write_state_dict
from carryscope.report.page import report_page
from carryscope.report.parts import Picture, Text, flat
from carryscope.report.sections.report import figure, figures, report_sections
from carryscope.report.shelf import Absent, Shelf
from carryscope.report.tables import Table
from carryscope.run import Run
from carryscope.training.loop import train
from carryscope.training.presets import PRESETS, run_config
from carryscope.verification.risk_verdict import guard

SECTIONS = (
    "verdict how failures algorithms certificate attention edges nodes mlp training method"
).split()


@pytest.fixture(scope="session")
def page(written) -> str:
    """The report without the weights in it, which take long to read."""
    weights = r'(<script type="application/octet-stream"[^>]*>)[^<]*'
    return re.sub(weights, r"\1", written.read_text())


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory) -> Run:
    directory = tmp_path_factory.mktemp("runs") / "tiny"
    train(run_config("tiny", {"steps": 30, "d_model": 24}), directory)
    return Run(directory)


def text_of(shelf: Shelf) -> str:
    return " ".join(Seen(report_page(shelf).html).text.split())


def test_the_whole_report_with_the_model_in_it_is_one_file_below_20_megabytes(written, page):
    assert 10e6 < written.stat().st_size < 20e6
    assert [p.name for p in written.parent.iterdir()] == ["report.html"]
    ids = [attributes["id"] for _, attributes in Seen(page).tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    assert {*SECTIONS, "why", "try"} <= set(ids)


def test_nothing_is_loaded_from_anywhere(page):
    seen = Seen(page)
    tags = {tag for tag, _ in seen.tags}
    assert not tags & {"link", "iframe", "img", "object", "embed", "base", "form"}
    for tag, attributes in seen.tags:
        assert "src" not in attributes
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert not re.search(r"url\((?!#)", page)
    policy = next(a["content"] for a in seen.all("meta") if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_a_figure_is_the_same_bytes_whenever_it_is_drawn():
    first, second = (figure("digits", shipped_shelf()).page_svg() for _ in range(2))
    assert first == second


def test_the_verdict_comes_first_and_is_the_one_of_the_risk(page):
    shelf, seen = shipped_shelf(), " ".join(Seen(page).text.split())
    sections = report_sections(shelf)
    assert [section.id for section in sections] == SECTIONS
    assert sections[0].title == (
        "Right in 99.19% of all questions; not safe where two columns or more in a row sum to 9"
    )
    how_often, on_what = shelf.risk.verdict.split(". ")[:2]
    assert how_often in seen
    assert on_what in seen
    assert shelf.faithfulness.verdict.partition(": ")[2][1:60] in seen
    advised = guard(shelf.risk)
    told = (
        "Refuse a sum if two neighbouring columns sum to 9: that is "
        f"{percent(advised.refused)} of all sums. Of the others, {with_interval(advised.wrong)} "
        "get a wrong answer."
    )
    assert told in seen
    assert "exact-5, shown below, comes with carryscope. It has five heads" in seen
    assert "carryscope repair fast-5 --out NEW" in seen, "a shipped model is called by its name"


def test_after_four_screens_comes_the_evidence_folded_and_each_titled_by_its_claim():
    sections = report_sections(shipped_shelf())
    assert [section.id for section in sections if not section.folded] == ["verdict", "how"]
    claims = {section.id: section.title for section in sections if section.folded}
    assert claims["failures"] == (
        "It fails at A4 and A3 once two nines lie below, at A5 once three nines lie below"
    )
    assert claims["attention"] == "Row by row, attention makes a double staircase"
    assert claims["mlp"] == "A key decides 5 of 6 answer digits"
    for section in sections[2:-1]:
        lead = section.parts[0]
        if section.id not in ("failures", "attention", "mlp"):  # told on the first two screens
            assert isinstance(lead, Text)
            assert not lead.text.startswith(section.title), "no fold repeats its claim"


def test_no_fold_says_again_what_stands_above_it(page):
    """No sentence of six words or more stands in two places, tables and captions left out."""
    text = re.sub(r"<svg.*?</svg>|<table.*?</table>", "", page, flags=re.DOTALL)
    text = re.sub(r'<section class="carryscope-explorer.*?</section>', "", text, flags=re.DOTALL)
    text = re.sub(r'<p class="caption".*?</p>|<figcaption>.*?</figcaption>', "", text, flags=re.S)
    text = Seen(re.sub(r"</(p|li|dd|dt|td|th|h2|h3|summary)>", ". ", text)).text
    said = [" ".join(one.split()) for one in re.split(r"(?<=[.:])\s+", text)]
    twice = {one for one in said if len(one.split()) > 5 and said.count(one) > 1}
    assert twice == set()


def test_every_sum_is_a_link_into_the_explorer_and_nothing_else_is(page):
    sums = re.findall(r"(?<![\w+])\d{1,5}\+\d{1,5}(?![\w+])", Seen(page).text)
    links = [a["href"] for a in Seen(page).all("a") if a.get("class") == "sum"]
    asked = {link for link in links if "?q=" in link}
    assert len(links) > 12
    assert asked == {f"#explorer?q={one}" for one in sums}
    cells = set(links) - asked
    assert cells == {
        f"#explorer?case={case.digit}.{case.depth}{'-+'[case.carrying]}"
        for case in shipped_shelf().risk.cases
    }
    assert 'class="sum"' not in report_page(shipped_shelf()).html, "there is nothing to open"


def test_every_figure_of_the_paper_that_applies_is_there():
    parts = flat(report_sections(shipped_shelf()))
    shown = [part.name for part in parts if isinstance(part, Picture | Table)]
    assert len(shown) == len(set(shown))
    assert list(figures(shipped_shelf())) == shown
    assert set(shown) >= set(
        "reads circuit staircase edges nodes keys digits learning phases "
        "depth agreement certificate".split()
    )


@pytest.mark.parametrize(
    "said",
    [
        "carryscope report",
        "carryscope train --preset fast-5 --out",
        "carryscope faithful",
        "SHA-256 ",
        "100,672 questions tested",
    ],
)
def test_the_page_says_how_it_was_made(page, said):
    assert said in " ".join(Seen(page).text.split())


def test_a_run_named_like_a_script_is_text():
    shelf = dataclasses.replace(
        untrained_shelf(), name=HOSTILE, where=f"runs/{HOSTILE}", dissection=None
    )
    written = report_page(shelf).html
    seen = Seen(written)
    assert len(seen.all("script")) == 1
    assert HOSTILE in seen.text
    assert "alert(1)" not in "".join(re.findall(r"<script.*?</script>", written, flags=re.DOTALL))


def test_findings_and_settings_with_hostile_texts_are_text():
    shelf = shipped_shelf()
    stages = ("dissection", "risk", "faithfulness", "certificate", "training", "story")
    findings = {stage: made_hostile(getattr(shelf, stage)) for stage in stages}
    config = replaced(shelf.config, preset=HOSTILE, source=HOSTILE, package_version=HOSTILE)
    absent = {"risk": Absent(HOSTILE, HOSTILE, HOSTILE)}
    spoilt = dataclasses.replace(shelf, config=config, absent=absent, **findings)
    seen = Seen(report_page(spoilt).html)
    assert len(seen.all("script")) == 1
    assert not seen.all("img")
    assert seen.text.count("<script>alert(1)</script>") > 100
    assert "49" not in re.findall(r"onerror=alert\(1\)>\"'`?(..)", seen.text)
    assert "--preset paper-5" in seen.text, "a preset that does not exist cannot be called"


def test_every_hover_text_and_every_table_is_escaped_data(page):
    seen = Seen(page)
    tips = [a["data-tip"] for _, a in seen.tags if a.get("data-tip")]
    assert len(tips) > 1000
    assert "H0 at row A3 gives D3 45% of its attention" in tips
    tables = [a["data-csv"] for _, a in seen.tags if a.get("data-csv")]
    assert all(table.count("\n") > 1 for table in tables)


def test_figures_describe_themselves_to_those_who_do_not_see_them(page):
    drawings = [a for a in Seen(page).all("svg") if a.get("aria-hidden") != "true"]
    assert len(drawings) == 8
    assert all(a["role"] == "img" and len(a["aria-label"]) > 80 for a in drawings)


def test_a_run_that_was_only_trained_gets_a_useful_report(tiny_run):
    shelf = tiny_run.shelf()
    ids = [section.id for section in report_sections(shelf)]
    assert ids == ["verdict", "how", "training", "method"]
    told = text_of(shelf)
    assert "of 10,000 uniform questions; where it fails is not known" in told
    assert "Training loss of each answer digit" in told
    for command in ("risk", "dissect", "faithful", "certify"):
        assert f"carryscope {command} {tiny_run.directory}" in told
    assert "The algorithm" not in told


def test_a_run_with_some_stages_says_which_are_missing(tiny_run, tmp_path):
    tiny_run.dissection("attention,nodes")
    tiny_run.risk()
    shelf = tiny_run.shelf()
    ids = [section.id for section in report_sections(shelf)]
    assert ids == ["verdict", "how", "failures", "attention", "nodes", "training", "method"]
    told = text_of(shelf)
    assert "of all 10,000 questions get a wrong answer" in told
    assert "--only edges,subtasks,mlp,story" in told


def test_findings_of_other_weights_are_left_out_and_it_says_why(tmp_path):
    directory = tmp_path / "run"
    train(run_config("tiny", {"steps": 20, "d_model": 24}), directory)
    Run(directory).risk()
    found = json.loads((directory / "findings" / "risk.json").read_text())
    (directory / "findings" / "risk.json").write_text(json.dumps({**found, "weights_sha256": "0"}))
    (directory / "findings" / "dissection.json").write_text("{")
    shelf = Run(directory).shelf()
    assert shelf.risk is None
    told = text_of(shelf)
    assert "is about other weights" in told
    assert "is damaged or not a carryscope file" in told


def test_an_imported_model_gets_a_report(tiny_run, tmp_path):
    write_state_dict(tiny_run.model(), tmp_path / "model.pth")
    run = import_model(tmp_path / "model.pth", tmp_path / "imported")
    before = text_of(run.shelf())
    assert "imported from model.pth" in before
    assert "carryscope train" not in before
    assert "Do not rely on it" in before
    run.dissection("attention,subtasks")
    run.risk()
    page = run.report().read_text()
    assert "carryscope import model.pth --out" in page
    assert [
        s.id for s in report_sections(run.shelf())
    ] == "verdict how failures attention method".split()


NEXT_TO = ("fast-5", "paper-5-heads-2", "paper-5-heads-4", "paper-10")
"""Presets of which another, of the same format, is larger or smaller."""


@pytest.mark.parametrize(
    "name", [pytest.param(p, marks=[pytest.mark.slow] * (p in NEXT_TO)) for p in PRESETS]
)
def test_there_is_a_report_for_every_preset(name, tmp_path, few_questions):
    width = 8 * PRESETS[name].model.heads
    config = run_config(name, {"steps": 3, "batch": 8, "final_batch": 0, "d_model": width})
    train(config, tmp_path / "run")
    run = Run(tmp_path / "run")
    run.dissection("attention")
    told = text_of(run.shelf())
    assert f"--preset {name} --d-model {width}" in told
    verb = config.model.layout.operation.words.verb
    assert f"{verb} two {config.model.digits}-digit numbers" in told
    assert "a double staircase" not in told


@pytest.mark.parametrize("fields", [{"layers": 2, "digits": 1}, {"d_mlp": 0}, {"format": "signed"}])
def test_models_of_other_shapes_get_a_report(fields):
    shelf = untrained_shelf(**{"d_model": 24, **fields})
    told = text_of(shelf)
    assert "No algorithm was found" in told
    assert ("There is no MLP" in told) == (shelf.config.model.d_mlp == 0)
    assert ("A certificate is for models of 1 layer" in told) == (shelf.config.model.layers > 1)
    assert ("carryscope certify" in told) == (shelf.config.model.layers == 1)
    assert "nan" not in re.findall(r"[a-z]+", told)
    assert "NaN" not in told


def test_an_untrained_model_gets_no_praise():
    told = text_of(untrained_shelf())
    assert "not fit for use" in told
    assert "No algorithm was found" in told
    assert "What each head reads: no staircase" in told
