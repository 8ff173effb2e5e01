"""A reproduction: its plan says what is left, its results say what was found."""

import re
import shutil
from pathlib import Path

import pytest

from carryscope.cli.main import run as command
from carryscope.errors import CallError
from carryscope.reproduction.plan import MLP_STUDY, MODELS, QUICK, chosen, plan, recipe
from carryscope.reproduction.results import machine, runs_of, write_results
from carryscope.runs import SHIPPED
from carryscope.training.presets import PRESETS


def test_every_model_is_a_recipe() -> None:
    assert set(MODELS) <= set(PRESETS)


def test_names_come_in_the_order_of_the_plan() -> None:
    assert chosen("paper-10, paper-5") == ["paper-5", "paper-10"]
    assert chosen(None) == [*MODELS, MLP_STUDY]


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(CallError, match="Got 'paper-6'"):
        chosen("paper-5,paper-6")


def test_a_quick_recipe_differs_in_its_steps_alone() -> None:
    whole, quick = recipe("paper-15", quick=False), recipe("paper-15", quick=True)
    assert whole.model == quick.model
    assert whole.training is not None
    assert quick.training is not None
    assert quick.training.steps == whole.training.steps // QUICK


def test_the_plan_counts_what_is_left(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED, tmp_path / "paper-5")
    done, fresh = plan(["paper-5", "paper-10"], tmp_path, quick=False, threads=1)
    assert done.left == ("report",)
    assert fresh.left == ("train", "dissect", "risk", "faithful", "report")
    assert 0 < done.minutes < 1 < fresh.minutes


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a reproduction of which one model is there: the shipped one in its place."""
    runs, out = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("results")
    shutil.copytree(SHIPPED, runs / "paper-5")
    write_results(runs, out, quick=True)
    return out


def test_results_hold_findings_and_figures_but_no_weights(results: Path) -> None:
    files = {str(path.relative_to(results)) for path in results.rglob("*") if path.is_file()}
    assert {"README.md", "claims.md", "claims.json", "tables.md"} <= files
    assert {"paper-5/findings/dissection.json", "paper-5/figures/staircase.svg"} <= files
    assert not any(name.endswith(".safetensors") for name in files)


def test_a_quick_run_says_so_and_the_machine_is_named(results: Path) -> None:
    text = (results / "README.md").read_text()
    assert "reproduces nothing" in text
    assert machine() in text
    assert str(results) not in text


def test_links_of_the_results_lead_somewhere(results: Path) -> None:
    for page in results.glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"


def test_only_finished_trainings_count_as_runs(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED, tmp_path / "paper-5")
    shutil.copytree(SHIPPED, tmp_path / "paper-10")
    (tmp_path / "paper-10" / "findings" / "training.json").unlink()
    assert list(runs_of(tmp_path)) == ["paper-5"]


def test_a_wrong_call_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["reproduce", "--only", "paper-7"]) == 2
    assert "only must name some of paper-5" in capsys.readouterr().err


@pytest.mark.slow
def test_a_quick_reproduction_of_one_model(tmp_path: Path) -> None:
    call = ["reproduce", "--quick", "--only", "paper-5", "--runs", str(tmp_path)]
    assert command(call) == 0
    results = tmp_path / "quick" / "results"
    written = (results / "claims.json").stat().st_mtime_ns
    weights = (tmp_path / "quick" / "paper-5" / "model.safetensors").stat().st_mtime_ns
    assert command(call) == 0, "a second call finds everything done"
    assert (results / "claims.json").stat().st_mtime_ns >= written
    assert (tmp_path / "quick" / "paper-5" / "model.safetensors").stat().st_mtime_ns == weights
