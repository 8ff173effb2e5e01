"""The results of a reproduction: what is written, what is read back, and what is not lost."""

import re
import shutil
from pathlib import Path

import msgspec
import pytest

import carryscope
from carryscope.core.errors import CallError
from carryscope.core.machine import machine
from carryscope.core.storage import read_json, write_json
from carryscope.run import Run
from carryscope.sweeps.finding import SWEEP_FILE, Sweep, summarised
from carryscope.sweeps.seeds import seed_finding
from paper.__main__ import run as command
from paper.claims.claims import load_claims
from paper.claims.figures import SHOWN, figures_markdown
from paper.claims.page import CLAIMS_PAGE, claims_markdown
from paper.claims.reading import study_of
from paper.exam import EXAM, examined
from paper.models import MLP_RECORD, MODELS, SWEEPS
from paper.publish import check_out, runs_of, would_be_lost, write_results
from paper.record import Results

ROOT = Path(__file__).parents[2]
PAPER = ROOT.parent / "shared" / "paper.tex"
SHIPPED = carryscope.load().directory
SEEDS = next(iter(SWEEPS))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The runs of a reproduction of which one model is there: the shipped one in its place."""
    directory = tmp_path_factory.mktemp("runs")
    shutil.copytree(SHIPPED, directory / "paper-5")
    return directory


@pytest.fixture(scope="module")
def results(runs, tmp_path_factory):
    """Their results, as of a quick run."""
    out = tmp_path_factory.mktemp("results")
    write_results(runs, out, quick=True)
    return out


@pytest.fixture
def no_pages(monkeypatch):
    """Records alone: pages and figures take most of the time."""
    monkeypatch.setattr("paper.publish.write_pages", lambda _: None)


def kept(out, *names):
    """Results of some models, made elsewhere."""
    for name in names:
        shutil.copytree(SHIPPED, out / name, ignore=shutil.ignore_patterns("model.*", "metrics.*"))
    return out


def test_results_hold_findings_and_figures_but_no_weights(results):
    files = {str(path.relative_to(results)) for path in results.rglob("*") if path.is_file()}
    assert {"README.md", "claims.md", "claims.json", "tables.md", "figures.md"} <= files
    assert {"paper-5/findings/dissection.json", "paper-5/figures/staircase.svg"} <= files
    assert not any(name.endswith(".safetensors") for name in files)


def test_results_are_read_back_without_runs(results):
    found = Results(results)
    assert found.models == ["paper-5"]
    assert len(found.claims.claims) == len(load_claims())
    drawn = (results / "paper-5" / "figures" / "digits.svg").read_text()
    assert found.figure("paper-5", "digits").svg() == drawn
    assert found.judged_again() == found.claims.claims


@pytest.mark.skip(reason="these results are of the earlier stream; being replaced")
def test_the_claims_in_the_repo_follow_from_the_findings_in_the_repo():
    found = Results(ROOT / "paper" / "results")
    assert found.judged_again() == found.claims.claims
    assert (found.directory / CLAIMS_PAGE).read_text() == claims_markdown(found.claims)


def test_pages_are_written_again_from_records_alone(results, tmp_path, capsys):
    shutil.copytree(results, tmp_path / "copy")
    page = tmp_path / "copy" / "claims.md"
    page.unlink()
    assert command(["--pages", "--out", str(tmp_path / "copy")]) == 0
    assert page.read_text() == (results / "claims.md").read_text()
    assert capsys.readouterr().out.endswith(f"{page}\n")


def test_results_that_are_not_there_are_one_line(results, tmp_path):
    with pytest.raises(CallError, match="Run: make reproduce"):
        Results(tmp_path)
    with pytest.raises(CallError, match="The models are paper-5. Got 'paper-9'"):
        Results(results).shelf("paper-9")


def test_every_page_of_a_quick_run_says_that_it_is_one(results):
    for page in ("README.md", "tables.md", "figures.md"):
        assert "**A quick run**" in (results / page).read_text(), page
    other = "**This reproduces nothing**: not trained by the paper's recipe: paper-5."
    assert other in (results / "claims.md").read_text(), "it is the shipped model"


def test_the_machine_is_named_and_no_path_is(results):
    text = (results / "README.md").read_text()
    assert machine() in text
    assert str(results) not in text


def test_links_of_the_results_lead_somewhere(results):
    for page in results.glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if target != "../changed-rules.md":  # it is in the repository
                assert (page.parent / target).exists(), f"{page.name}: {target}"
    assert (ROOT / "paper" / "changed-rules.md").exists()


def test_only_finished_trainings_count_as_runs(tmp_path):
    for name in ("paper-5", "paper-10"):
        shutil.copytree(SHIPPED, tmp_path / name)
    (tmp_path / "paper-10" / "findings" / "training.json").unlink()
    assert list(runs_of(tmp_path)) == ["paper-5"]


def test_results_of_models_that_are_not_made_would_be_lost_and_are_left_alone(runs, tmp_path):
    out = kept(tmp_path, "paper-5", "paper-10")
    (out / MLP_RECORD).write_text("{}")
    assert would_be_lost(["paper-5"], runs, out) == ["paper-10", "mlp-study"]
    with pytest.raises(CallError, match="has results of paper-10, mlp-study.* Choose another"):
        check_out(["paper-5"], runs, out)
    check_out([*MODELS, "mlp-study"], runs, out)


def test_findings_that_a_run_does_not_have_yet_would_be_lost(runs, tmp_path):
    half, out = tmp_path / "half", kept(tmp_path / "out", "paper-5")
    shutil.copytree(runs, half)
    assert would_be_lost([], half, out) == []
    (half / "paper-5" / "findings" / "risk.json").unlink()
    assert would_be_lost([], half, out) == ["paper-5"]
    assert would_be_lost(["paper-5"], half, out) == [], "it is about to be made"


def test_a_directory_of_runs_is_no_place_for_results(runs, tmp_path):
    for directory in (runs, tmp_path):
        with pytest.raises(CallError, match="holds runs"):
            check_out([*MODELS, "mlp-study"], directory, runs)
    with pytest.raises(CallError, match="holds runs"):
        write_results(runs, runs, quick=False)


@pytest.mark.usefixtures("no_pages")
def test_nothing_of_other_results_stays_among_the_new_ones(runs, tmp_path):
    out = kept(tmp_path, "paper-5", "paper-10")
    stale = [out / "paper-5" / "figures" / "old.svg", out / MLP_RECORD, out / "mlp-study.md"]
    for file in stale:
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    write_results(runs, out, quick=False)
    assert not any(file.exists() for file in [*stale, out / "paper-10" / "findings"])
    assert (out / "paper-5" / "findings" / "risk.json").exists()


@pytest.mark.usefixtures("no_pages")
def test_a_sweep_among_the_results_is_judged_and_summarised_again(runs, tmp_path):
    run = carryscope.load()
    seeds = [msgspec.structs.replace(seed_finding(run), seed=number) for number in range(4)]
    sweep = summarised(run.config, range(4), seeds, [])
    old = msgspec.structs.replace(sweep, statement="An old statement.", machine="elsewhere")
    write_json(tmp_path / SEEDS / SWEEP_FILE, old)
    judged = {one.claim.id: one for one in write_results(runs, tmp_path, quick=False).claims}
    assert judged["seeds"].checks
    fewer = summarised(run.config, range(2), seeds[:2], [])
    write_json(runs / SEEDS / SWEEP_FILE, fewer)  # fewer seeds do not replace more
    write_results(runs, tmp_path, quick=False)
    shutil.rmtree(runs / SEEDS)
    found = read_json(tmp_path / SEEDS / SWEEP_FILE, Sweep)
    assert (found.statement, found.machine) == (sweep.statement, "elsewhere")


def test_an_exam_of_other_weights_is_not_used(runs, tmp_path):
    shutil.copytree(runs / "paper-5", tmp_path / "paper-5")
    run = Run(tmp_path / "paper-5")
    taken = examined(run)
    assert study_of("paper-5", run).known_exam == taken == examined(run)
    write_json(run.directory / EXAM.file, msgspec.structs.replace(taken, weights_sha256="0" * 64))
    assert study_of("paper-5", run).known_exam is None


def test_figures_of_runs_that_are_there_are_drawn_and_shown(tmp_path):
    page = figures_markdown({"reuse-5": carryscope.load().shelf()}, tmp_path)
    files = re.findall(r"\]\((\S+\.svg)\)", page)
    assert "reuse-5/figures/nodes.svg" in files
    assert all((tmp_path / file).read_text().startswith("<svg") for file in files)
    assert not any("paper-10" in file for file in files)


@pytest.mark.skipif(not PAPER.exists(), reason="the paper is not beside this clone")
def test_every_figure_of_the_paper_but_those_of_token_names_is_shown():
    figures = PAPER.read_text().count("\\begin{figure}")
    shown = set()
    for one in SHOWN:
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", one.where):
            shown |= set(range(int(first), int(last or first) + 1))
    assert set(range(1, figures + 1)) - shown == {3, 21}
