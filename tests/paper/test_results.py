"""The results of a reproduction: what is written anew, and what is not lost by it."""

import re
import shutil
from pathlib import Path

import msgspec
import pytest
from paper_studies import altered, shipped, verdict

import carryscope
from carryscope.core.errors import CallError
from carryscope.core.storage import read_json, write_json
from carryscope.dissection.findings import Dissection
from carryscope.stages import SHIPPED, Run
from carryscope.sweeps.finding import SWEEP_FILE, Sweep, summarised
from carryscope.sweeps.seeds import seed_finding
from paper.claims.claims import load_claims
from paper.claims.figures import FIGURES_PAGE, SHOWN, write_figures
from paper.claims.judging import judge_one, moved, study_of
from paper.claims.page import claims_markdown, claims_result
from paper.exam import EXAM_FILE, examine
from paper.plan import MLP_RECORD, MODELS, SWEEPS
from paper.results import check_out, would_be_lost, write_results

PAPER = Path(__file__).parents[3] / "shared" / "paper.tex"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The runs of a reproduction of which one model is there: the shipped one in its place."""
    directory = tmp_path_factory.mktemp("runs")
    shutil.copytree(SHIPPED, directory / "paper-5")
    return directory


def kept(out, *names):
    """Results of some models, made elsewhere."""
    for name in names:
        shutil.copytree(SHIPPED, out / name, ignore=shutil.ignore_patterns("model.*", "metrics.*"))
    return out


def test_results_of_models_that_are_not_made_would_be_lost_and_are_left_alone(runs, tmp_path):
    out = kept(tmp_path, "paper-5", "paper-10")
    (out / MLP_RECORD).write_text("{}")
    assert would_be_lost(["paper-5"], runs, out) == ["paper-10", "mlp-study"]
    with pytest.raises(CallError, match="has results of paper-10, mlp-study.* Choose another"):
        check_out(["paper-5"], runs, out, quick=False)
    check_out([*MODELS, "mlp-study"], runs, out, quick=False)


def test_findings_that_a_run_does_not_have_yet_would_be_lost(runs, tmp_path):
    half, out = tmp_path / "half", kept(tmp_path / "out", "paper-5")
    shutil.copytree(runs, half)
    assert would_be_lost([], half, out) == []
    (half / "paper-5" / "findings" / "risk.json").unlink()
    assert would_be_lost([], half, out) == ["paper-5"]
    assert would_be_lost(["paper-5"], half, out) == [], "it is about to be made"


def test_a_directory_of_runs_is_no_place_for_results(runs, tmp_path):
    begun = tmp_path / "begun"
    (begun / "paper-5").mkdir(parents=True)
    (begun / "paper-5" / "metrics.jsonl").touch()
    for out in (runs, begun, tmp_path / "new"):
        directory = runs if out == begun else out
        with pytest.raises(CallError, match="is where runs are"):
            check_out([*MODELS, "mlp-study"], directory, out, quick=False)
    with pytest.raises(CallError, match="is where runs are"):
        write_results(runs, runs, quick=False)


def test_a_quick_reproduction_does_not_replace_a_whole_one(runs, tmp_path):
    write_results(runs, tmp_path, quick=False)
    with pytest.raises(CallError, match="has results of whole trainings"):
        check_out([*MODELS, "mlp-study"], runs, tmp_path, quick=True)
    check_out([*MODELS, "mlp-study"], runs, tmp_path / "quick", quick=True)


def test_nothing_of_other_results_stays_among_the_new_ones(runs, tmp_path):
    out = kept(tmp_path, "paper-5", "paper-10")
    stale = [out / "paper-5" / "figures" / "old.svg", out / MLP_RECORD, out / "mlp-study.md"]
    for file in stale:
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    write_results(runs, out, quick=False)
    assert not any(file.exists() for file in [*stale, out / "paper-10" / "findings"])
    assert (out / "paper-5" / "findings" / "risk.json").exists()


def test_a_sweep_that_stands_among_the_results_is_judged_and_told_anew(runs, tmp_path):
    run = carryscope.load()
    seed = seed_finding("seed-0", run.training(), run.dissection(), run.risk(), run.faithfulness())
    seeds = [msgspec.structs.replace(seed, seed=number) for number in range(4)]
    sweep = summarised(run.config, range(4), seeds, [])
    old = msgspec.structs.replace(sweep, statement="As it was told before.", machine="elsewhere")
    write_json(tmp_path / SWEEPS[0] / SWEEP_FILE, old)
    judged = {one.claim.id: one for one in write_results(runs, tmp_path, quick=False)}
    assert judged["seeds"].checks
    fewer = summarised(run.config, range(2), seeds[:2], [])
    write_json(runs / SWEEPS[0] / SWEEP_FILE, fewer)  # fewer seeds do not replace more
    write_results(runs, tmp_path, quick=False)
    shutil.rmtree(runs / SWEEPS[0])
    told = read_json(tmp_path / SWEEPS[0] / SWEEP_FILE, Sweep)
    assert (told.statement, told.machine) == (sweep.statement, "elsewhere")
    page = (tmp_path / SWEEPS[0] / "sweep.md").read_text()
    assert "`carryscope sweep --preset fast-5 --seeds 0..3 --out DIR`" in page
    assert "on elsewhere." in page


def test_every_page_of_a_quick_run_says_that_it_is_one(runs, tmp_path):
    write_results(runs, tmp_path, quick=True)
    for page in ("README.md", "tables.md", FIGURES_PAGE):
        assert "**A quick run**" in (tmp_path / page).read_text(), page
    claims = (tmp_path / "claims.md").read_text()
    other = "**This reproduces nothing**: not trained by the paper's recipe: paper-5."
    assert other in claims, "it is the shipped model"


def test_an_earlier_reproduction_is_judged_by_the_same_rules_and_told_beside(runs, tmp_path):
    write_results(runs, tmp_path / "earlier", quick=False)
    findings = tmp_path / "earlier" / "paper-5" / "findings"
    found = read_json(findings / "dissection.json", Dissection)
    lags = [msgspec.structs.replace(lag, later=False) for lag in found.story.lags]
    story = msgspec.structs.replace(found.story, lags=lags)
    write_json(findings / "dissection.json", msgspec.structs.replace(found, story=story))
    judged = {one.claim.id: one for one in write_results(runs, tmp_path, quick=False)}
    assert (judged["uc1-lags"].verdict, judged["uc1-lags"].earlier) == ("holds", "holds in part")
    assert judged["loss-by-digit"].earlier == judged["loss-by-digit"].verdict, "as it was kept"
    assert (
        "## All claims\n\n| claim | where | paper | measured | verdict | earlier |"
        in (tmp_path / "claims.md").read_text()
    )


def test_an_exam_of_other_weights_is_not_believed(runs, tmp_path):
    shutil.copytree(runs / "paper-5", tmp_path / "paper-5")
    run = Run(tmp_path / "paper-5")
    taken = examine(run)
    assert study_of("paper-5", run).known_exam == taken
    write_json(run.directory / EXAM_FILE, msgspec.structs.replace(taken, weights_sha256="0" * 64))
    assert study_of("paper-5", run).known_exam is None


def test_figures_of_runs_that_are_there_are_drawn_and_shown(tmp_path):
    shelf = carryscope.load().shelf()
    page = write_figures({"paper-5": shelf, "reuse-5": shelf}, tmp_path).read_text()
    files = re.findall(r"\]\((\S+\.svg)\)", page)
    assert "reuse-5/figures/nodes-positions.svg" in files
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


def test_a_claim_that_was_moved_also_tells_its_verdict_on_the_first_model():
    claim = next(claim for claim in load_claims() if claim.id == "staircase-5")
    assert moved(claim)
    blind = [msgspec.structs.replace(head, role=None) for head in shipped().attention.heads]
    stuck = altered(shipped(), "dissection.attention", heads=blind)
    judged = judge_one(claim, {"paper-5-long": shipped(), "paper-5": stuck})
    assert (judged.verdict, judged.at_first) == ("holds", "does not hold")
    page = claims_markdown(claims_result([judged]))
    assert "Asked of `paper-5` as at first, 1 of these 1 come out differently: [The double" in page
    assert judge_one(claim, {"paper-5-long": shipped()}).at_first is None
    assert verdict("staircase-5", paper_5=shipped()) == "holds"
