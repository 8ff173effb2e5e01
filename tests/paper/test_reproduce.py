"""A reproduction: its plan says what is left, its results say what was found."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path

import msgspec
import pytest
import torch
from carryscope.training.longer import begins_with
from paper.kept import Results
from waiting import PATIENCE, wait_for

from carryscope.cli.main import run as command
from carryscope.core.errors import CallError
from carryscope.core.storage import write_bytes, write_json
from carryscope.core.workers import Outcome
from carryscope.model.files import CONFIG_FILE, write_tensors
from carryscope.stages import SHIPPED
from carryscope.training.checkpoint import CHECKPOINT_FILE
from carryscope.training.config import RunConfig
from carryscope.training.presets import PRESETS
from paper.claims.claims import Verdict, load_claims
from paper.claims.page import CLAIMS_PAGE, EARLIER, claims_markdown
from paper.mlp.variants import VARIANTS
from paper.plan import (
    BEGINNING,
    MLP_STUDY,
    MODELS,
    QUICK,
    STUDIED,
    Planned,
    check_recipes,
    chosen,
    plan,
    recipe,
)
from paper.reproduce import Chain, minutes_together, progress, queue
from paper.results import machine, runs_of, write_results


def test_every_model_is_a_recipe() -> None:
    assert set(MODELS) <= set(PRESETS)


def test_names_come_in_the_order_of_the_plan() -> None:
    assert chosen("paper-10, paper-5") == ["paper-5", "paper-10"]
    assert chosen(None) == [*MODELS, MLP_STUDY]


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(CallError, match="Got 'paper-6'"):
        chosen("paper-5,paper-6")


def test_a_quick_recipe_differs_in_its_steps_alone() -> None:
    whole, quick = (recipe("paper-15", quick=quick) for quick in (False, True))
    assert whole.model == quick.model
    assert whole.training is not None
    assert quick.training is not None
    assert quick.training.steps == whole.training.steps // QUICK


def begun(config: RunConfig, directory: Path, step: int | None = None) -> None:
    """A run that was begun, and stopped at a step."""
    write_json(directory / CONFIG_FILE, config)
    if step is not None:
        write_tensors(directory / CHECKPOINT_FILE, {"w": torch.zeros(1)}, {"step": str(step)})


def test_the_plan_counts_what_is_left(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED, tmp_path / "paper-5")
    begun(recipe("paper-5", quick=False), tmp_path / "paper-5")
    done, fresh = plan(["paper-5", "paper-10"], tmp_path, quick=False, threads=1)
    assert done.left == ("exam", "report")
    assert fresh.left == ("train", "dissect", "risk", "faithful", "exam", "report")
    assert 0 < done.minutes < 1 < fresh.minutes


@pytest.mark.parametrize(
    ("asked", "there", "config", "different"),
    [
        ("paper-5", "paper-5", recipe("paper-5", quick=True), "training.steps is 500, asked for 5"),
        ("paper-10", "paper-5", recipe("paper-5", quick=True), "training.steps is 500, asked for"),
        ("paper-5-heads-2", "paper-5-heads-2", recipe("paper-5", quick=False), "model.heads is 3"),
        (MLP_STUDY, f"{MLP_STUDY}/no-mlp", recipe("paper-5", quick=True), "training.steps is 500"),
    ],
    ids=["quick", "not asked for, but in the results", "heads", "variant"],
)
def test_a_run_by_another_recipe_is_refused_and_does_not_pass_for_done(
    asked: str, there: str, config: RunConfig, different: str, tmp_path: Path
) -> None:
    begun(config, tmp_path / there)
    delete = tmp_path / there.split("/", maxsplit=1)[0]
    told = f"was started differently: {different}.*Choose another --runs, or delete {delete}.$"
    with pytest.raises(CallError, match=told):
        plan([asked], tmp_path, quick=False)


def test_a_quick_run_is_gone_on_with_by_a_quick_reproduction(tmp_path: Path) -> None:
    for name in MODELS:
        begun(recipe(name, quick=True), tmp_path / name)
    check_recipes(tmp_path, quick=True)


@pytest.fixture
def a_minute_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that minutes of training are steps."""
    monkeypatch.setattr("paper.plan._step_seconds", lambda _: 60.0)


@pytest.mark.usefixtures("a_minute_a_step")
def test_a_training_takes_the_minutes_of_the_steps_that_are_left(tmp_path: Path) -> None:
    (whole,) = plan([STUDIED], tmp_path, quick=False)
    assert 28_125 < whole.minutes < 28_127
    _, handed = plan([BEGINNING, STUDIED], tmp_path, quick=False)
    assert round(whole.minutes - handed.minutes) == 5_000
    begun(recipe(STUDIED, quick=False), tmp_path / STUDIED, step=28_000)
    (rest,) = plan([STUDIED], tmp_path, quick=False)
    assert round(whole.minutes - rest.minutes) == 28_000
    _, kept = plan([BEGINNING, STUDIED], tmp_path, quick=False)
    assert kept == rest, "it has steps of its own"


@pytest.mark.usefixtures("a_minute_a_step")
def test_the_study_tells_of_its_base_unless_that_has_a_row_of_its_own(tmp_path: Path) -> None:
    variants = tuple(variant.name for variant in VARIANTS)
    (alone,) = plan([MLP_STUDY], tmp_path, quick=False)
    assert alone == Planned(MLP_STUDY, (STUDIED, *variants, "exam"), 53_125.0)
    _, beside = plan([STUDIED, MLP_STUDY], tmp_path, quick=False)
    assert beside == Planned(MLP_STUDY, (*variants, "exam"), 25_000.0)


def test_the_study_of_the_mlp_comes_after_its_base_and_what_is_long_comes_first() -> None:
    minutes = {"paper-5": 9.0, "paper-10": 20.0, STUDIED: 15.0, MLP_STUDY: 10.0}
    left = [Planned(name, ("train",), n) for name, n in minutes.items()]
    done = Planned("paper-15", (), 0.0)
    assert queue([*left[1:], done]) == [(STUDIED, MLP_STUDY), ("paper-10",)]
    assert queue([left[3], done]) == [(MLP_STUDY,)]
    assert queue([*left[:2], left[3]]) == [("paper-10",), (MLP_STUDY,), (BEGINNING,)]


def test_the_studied_model_comes_after_the_one_it_begins_with_if_both_are_to_be_trained() -> None:
    studied, beginning = (
        Planned(STUDIED, ("train", "report"), 15.0),
        Planned(BEGINNING, ("train",), 9.0),
    )
    report = Planned(BEGINNING, ("report",), 1.0)
    assert queue([beginning, studied]) == [(BEGINNING, STUDIED)]
    assert queue([report, studied]) == [(STUDIED,), (BEGINNING,)]
    assert begins_with(recipe(STUDIED, quick=False), recipe(BEGINNING, quick=False))
    assert begins_with(recipe(STUDIED, quick=True), recipe(BEGINNING, quick=True))


def test_progress_tells_of_each_model_of_a_chain(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED, tmp_path / BEGINNING)
    for file in ("findings/exam.json", "report.html"):
        (tmp_path / BEGINNING / file).write_text("")
    chain, other = (BEGINNING, STUDIED, MLP_STUDY), ("paper-10",)
    outcome = Outcome[Chain, None](running={Future(): chain}, failed={other: "no room"})
    reached = progress(tmp_path, [chain, other], outcome)
    assert (reached.of, list(reached.done)) == (4, [BEGINNING])
    assert reached.running == {STUDIED: "starting"}
    assert reached.failed == {"paper-10": "no room"}
    whole = progress(tmp_path, [chain], Outcome(done={chain: None}))
    assert list(whole.done) == list(chain)


def test_what_comes_after_a_model_that_failed_is_told_as_not_begun(tmp_path: Path) -> None:
    chain = (BEGINNING, STUDIED, MLP_STUDY)
    reached = progress(tmp_path, [chain], Outcome(failed={chain: "no room"}))
    assert (reached.done, reached.running) == ({}, {})
    assert reached.failed == {BEGINNING: "no room"}
    needs = f"it needs {BEGINNING}"
    assert reached.not_begun == {STUDIED: needs, MLP_STUDY: needs}


def test_a_study_whose_base_is_being_trained_says_so(tmp_path: Path) -> None:
    begun(recipe(STUDIED, quick=False), tmp_path / STUDIED)
    outcome = Outcome[Chain, None](running={Future(): (MLP_STUDY,)})
    reached = progress(tmp_path, [(MLP_STUDY,)], outcome)
    assert reached.running == {MLP_STUDY: f"({STUDIED}) training, step 0"}


def test_the_plan_takes_as_long_as_the_one_who_is_busy_longest() -> None:
    left = [Planned(name, ("train",), 10.0) for name in ("paper-10", "paper-15", "reuse-5")]
    assert minutes_together(left, 1) == 30.0
    assert minutes_together(left, 2) == 20.0
    assert minutes_together(left, 4) == 10.0
    assert minutes_together([Planned("paper-5", (), 0.0)], 2) == 0.0


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


def test_results_are_read_back_without_runs(results: Path) -> None:
    kept = Results(results)
    assert kept.models == ["paper-5"]
    assert len(kept.claims.claims) == len(load_claims())
    assert kept.figure("paper-5", "staircase").page_svg().startswith("<svg")
    drawn = (results / "paper-5" / "figures" / "digits.svg").read_text()
    assert kept.figure("paper-5", "digits").svg() == drawn


def test_the_claims_in_the_repo_follow_from_the_findings_in_the_repo() -> None:
    kept = Results(Path(__file__).parents[2] / "paper" / "results")
    again = kept.judged_again()
    assert [one.claim for one in kept.claims.claims] == [one.claim for one in again]
    earlier = Results(kept.directory / EARLIER).verdicts([*kept.sweeps.values()])
    for known, new in zip(kept.claims.claims, again, strict=True):
        if new.verdict is Verdict.UNMEASURED:
            # Losses step by step are not kept.
            assert new.reason.endswith("has no finding of training.")
        else:
            assert msgspec.structs.replace(new, earlier=known.earlier) == known
        assert known.earlier == (earlier[known.claim.id] if known.claim.runs else None)
    assert sum(one.verdict is Verdict.UNMEASURED for one in again) == 13
    assert (kept.directory / CLAIMS_PAGE).read_text() == claims_markdown(kept.claims)


def test_results_that_are_not_there_are_told_in_one_line(results: Path, tmp_path: Path) -> None:
    with pytest.raises(CallError, match="Run: carryscope reproduce"):
        Results(tmp_path)
    with pytest.raises(CallError, match="The models are paper-5. Got 'paper-9'"):
        Results(results).shelf("paper-9")


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


def test_a_run_by_another_recipe_is_told_in_one_line_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(recipe("paper-5", quick=True), tmp_path / "paper-5")
    call = ["reproduce", "--only", "paper-5", "--runs", str(tmp_path)]
    assert command([*call, "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"carryscope: The run at {tmp_path / 'paper-5'} was started differently")
    assert told.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("a_minute_a_step")
def test_a_model_that_fails_is_told_and_the_results_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_bytes(tmp_path / "paper-5" / "notes.txt", b"")
    call = ["reproduce", "--only", f"paper-5,{STUDIED},{MLP_STUDY}", "--runs", str(tmp_path)]
    assert command([*call, "--out", str(tmp_path / "out")]) == 1
    told = capsys.readouterr()
    lines = told.err.splitlines()
    assert "train, dissect" in lines[2], "what is left of it, in the plan"
    assert f"{MLP_STUDY}: not begun: it needs paper-5" in lines
    begin = "carryscope: 1 of 3 models failed, 2 not begun; paper-5: "
    assert lines[-1].startswith(f"{begin}{tmp_path / 'paper-5'} holds no run, but it is not empty")
    assert told.out.endswith(f"{tmp_path / 'out' / 'claims.md'}\n")
    finding = tmp_path / "out" / "paper-5" / "findings" / "risk.json"
    write_bytes(finding, b"{}")
    assert command([*call, "--out", str(tmp_path / "out")]) == 1
    told = capsys.readouterr()
    assert told.err.splitlines()[-1].endswith(
        f"{tmp_path / 'out'} was left as it is, for its paper-5."
    )
    assert told.out == ""
    assert finding.read_bytes() == b"{}"


@pytest.mark.slow
def test_a_quick_reproduction_of_one_model_and_the_study(tmp_path: Path) -> None:
    runs, results = tmp_path / "quick", tmp_path / "quick" / "results"
    call = ["reproduce", "--quick", "--only", f"{STUDIED},{MLP_STUDY}", "--runs", str(tmp_path)]
    assert command(call) == 0
    for name in ("claims.json", "mlp-study.json", f"{STUDIED}/findings/exam.json"):
        assert (results / name).exists()
    files = list(runs.rglob("*.safetensors"))
    made = {path: path.stat().st_mtime_ns for path in [*files, runs / STUDIED / "report.html"]}
    assert len(files) > len(VARIANTS)
    assert command(call) == 0, "a second call finds everything done"
    assert {path: path.stat().st_mtime_ns for path in made} == made


@pytest.mark.slow
def test_stopped_and_killed_it_goes_on_from_there(tmp_path: Path) -> None:
    words = ["reproduce", "--quick", "--only", "paper-5,paper-5-heads-2", "--runs", str(tmp_path)]
    runs = [tmp_path / "quick" / name for name in ("paper-5", "paper-5-heads-2")]

    def started() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "carryscope", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    first = started()
    wait_for(lambda: all((run / "metrics.jsonl").exists() for run in runs))
    os.killpg(first.pid, signal.SIGINT)
    _, told = first.communicate(timeout=PATIENCE)
    assert first.returncode == 1
    assert "Stopped: 0 of 2 models are done, and what the others reached is kept." in told
    assert told.strip().endswith(shlex.join(words))
    second = started()
    wait_for(lambda: any((run / "model.safetensors").exists() for run in runs))
    second.kill()
    second.communicate()
    trained = next(run for run in runs if (run / "model.safetensors").exists())
    made = (trained / "model.safetensors").stat().st_mtime_ns
    assert started().wait() == 0
    assert (trained / "model.safetensors").stat().st_mtime_ns == made
    assert all((run / "report.html").exists() for run in runs)
