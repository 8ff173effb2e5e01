"""A reproduction: its plan says what is left, and it does that."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from waiting import PATIENCE, wait_for

from carryscope.core.errors import CallError
from carryscope.core.storage import read_json, write_bytes, write_json
from carryscope.core.workers import Workers, this_process
from carryscope.model.files import CONFIG_FILE, write_tensors
from carryscope.run import Run
from carryscope.training.checkpoint import CHECKPOINT_FILE
from carryscope.training.config import RunConfig
from carryscope.training.presets import PRESETS, run_config
from paper import reproduce as module
from paper.__main__ import run as command
from paper.mlp.finding import MlpStudy
from paper.mlp.study import STUDY_FILE
from paper.mlp.variants import VARIANTS
from paper.models import MLP_STUDY, MODELS, QUICK, STUDIED, chosen, recipe
from paper.plan import RECORD, STAGES, Planned, check_recipes, left_of, minutes_together, plan
from paper.reproduce import reproduce

VARIANT_NAMES = tuple(variant.name for variant in VARIANTS)


def test_every_model_is_a_recipe() -> None:
    assert set(MODELS) <= set(PRESETS)


def test_names_come_in_the_order_of_the_plan() -> None:
    assert chosen("paper-10, paper-5") == ["paper-5", "paper-10"]
    assert chosen(None) == [*MODELS, MLP_STUDY]
    assert chosen(MLP_STUDY) == [STUDIED, MLP_STUDY], "the study needs its base"


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


@pytest.mark.parametrize(
    ("there", "config", "different"),
    [
        ("paper-5", recipe("paper-5", quick=True), "training.steps is 500, asked for 5"),
        ("paper-5-heads-2", recipe("paper-5", quick=False), "model.heads is 3"),
    ],
    ids=["quick", "heads"],
)
def test_a_run_by_another_recipe_is_refused_even_if_it_is_not_asked_for(
    there: str, config: RunConfig, different: str, tmp_path: Path
) -> None:
    begun(config, tmp_path / there)
    refusal = f"started differently: {different}.*another --runs, or delete {tmp_path / there}.$"
    with pytest.raises(CallError, match=refusal):
        plan(["paper-10"], tmp_path, quick=False)


def test_a_quick_run_is_continued_by_a_quick_reproduction(tmp_path: Path) -> None:
    for name in MODELS:
        begun(recipe(name, quick=True), tmp_path / name)
    check_recipes(tmp_path, quick=True)


@pytest.fixture
def a_minute_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that minutes of training are steps."""
    monkeypatch.setattr("paper.plan._step_seconds", lambda _: 60.0)


@pytest.mark.usefixtures("a_minute_a_step")
def test_the_plan_has_the_minutes_of_the_steps_that_are_left(tmp_path: Path) -> None:
    (whole,) = plan([STUDIED], tmp_path, quick=False)
    assert whole.left == (*(stage.name for stage in STAGES), "report")
    assert 28_125 < whole.minutes < 28_127
    begun(recipe(STUDIED, quick=False), tmp_path / STUDIED, step=28_000)
    (rest,) = plan([STUDIED], tmp_path, quick=False)
    assert round(whole.minutes - rest.minutes) == 28_000
    (study,) = plan([MLP_STUDY], tmp_path, quick=False)
    assert study == Planned(MLP_STUDY, (*VARIANT_NAMES, RECORD), 25_000.0)


def test_a_step_is_timed_on_the_spot(tmp_path: Path) -> None:
    (planned,) = plan(["paper-5"], tmp_path, quick=True, threads=1)
    assert 0 < planned.minutes < 100


def test_the_plan_takes_as_long_as_the_busiest_worker() -> None:
    left = [Planned(name, ("training",), 10.0) for name in ("paper-10", "paper-15", "reuse-5")]
    assert [minutes_together(left, workers) for workers in (1, 2, 4)] == [30.0, 20.0, 10.0]
    study = Planned(MLP_STUDY, VARIANT_NAMES, 10.0)
    assert minutes_together([*left, study], 2) == 25.0, "its trainings come after the models"
    assert minutes_together([Planned("paper-5", (), 0.0)], 2) == 0.0


# The work


@contextmanager
def no_processes(count: int, *, threads: int = 1, shared: object = None) -> Iterator[Workers]:
    yield this_process(shared)


def small_recipe(name: str, *, quick: bool) -> RunConfig:
    return run_config(name, {"digits": 1, "d_model": 24, "steps": 4})


def no_report(run: Run, **_: object) -> None:
    write_bytes(run.directory / "report.html", b"")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, few_questions: None) -> None:
    """Small models and few steps, made in this process; only trainings are made."""

    def only_trained(config: RunConfig, directory: Path, *, threads: int, progress: object) -> Run:
        from carryscope.sweeps.running import trained

        run = trained(config, directory, threads=threads, progress=progress)
        for stage in STAGES[1:]:
            write_bytes(directory / stage.file, b"")
        return run

    monkeypatch.setattr(module, "recipe", small_recipe)
    monkeypatch.setattr(module, "steps_of", lambda *_, **__: 4)
    monkeypatch.setattr(module, "brought_to_end", only_trained)
    monkeypatch.setattr(module, "examined", lambda _: None)
    monkeypatch.setattr(
        Run, "report", lambda run, **_: write_bytes(run.directory / "report.html", b"")
    )
    monkeypatch.setattr("carryscope.sweeps.running.local_workers", no_processes)
    monkeypatch.setattr("paper.mlp.study.QUESTIONS", 10)
    monkeypatch.setattr("paper.mlp.study.UNIFORM_QUESTIONS", 10)


def reproduced(runs: Path, *names: str) -> dict[str, str]:
    planned = [Planned(name, left_of(name, runs), 1.0) for name in names]
    return reproduce(planned, runs, quick=False, workers=1, threads=1)


@pytest.mark.usefixtures("small")
def test_the_study_of_the_mlp_follows_its_base(tmp_path: Path) -> None:
    assert reproduced(tmp_path, STUDIED, MLP_STUDY) == {}
    assert left_of(STUDIED, tmp_path) == left_of(MLP_STUDY, tmp_path) == ()
    study = read_json(tmp_path / MLP_STUDY / STUDY_FILE, MlpStudy)
    assert [subject.name for subject in study.subjects] == ["base", *VARIANT_NAMES]
    made = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")}
    assert len(made) == 1 + len(VARIANTS)
    assert reproduced(tmp_path, STUDIED, MLP_STUDY) == {}, "nothing is left"
    assert {path: path.stat().st_mtime_ns for path in made} == made


@pytest.mark.usefixtures("small")
def test_a_model_that_fails_stops_no_other_but_the_study_that_needs_it(tmp_path: Path) -> None:
    write_bytes(tmp_path / STUDIED / "notes.txt", b"")
    failed = reproduced(tmp_path, "paper-5", STUDIED, MLP_STUDY)
    assert list(failed) == [STUDIED, MLP_STUDY]
    assert "holds no run, but it is not empty" in failed[STUDIED]
    assert failed[MLP_STUDY] == f"It needs {STUDIED}."
    assert left_of("paper-5", tmp_path) == ()


@pytest.mark.usefixtures("small")
def test_a_study_of_other_weights_is_left_to_be_made(tmp_path: Path) -> None:
    assert reproduced(tmp_path, STUDIED, MLP_STUDY) == {}
    (tmp_path / STUDIED / "model.safetensors").unlink()
    assert left_of(MLP_STUDY, tmp_path) == (RECORD,)


# The command


def test_a_wrong_call_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["--only", "paper-7"]) == 2
    assert "only must name some of paper-5" in capsys.readouterr().err
    assert command(["--quick", "--out", "x"]) == 2
    assert "leave out --out" in capsys.readouterr().err
    assert command(["--runs"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_run_by_another_recipe_is_one_line_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(recipe("paper-5", quick=True), tmp_path / "paper-5")
    call = ["--only", "paper-5", "--runs", str(tmp_path), "--out", str(tmp_path / "out")]
    assert command(call) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"paper: The run at {tmp_path / 'paper-5'} was started differently")
    assert line.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("a_minute_a_step")
def test_a_model_that_fails_is_named_and_the_results_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carryscope.sweeps.running.local_workers", no_processes)
    write_bytes(tmp_path / "paper-5" / "notes.txt", b"")
    out = tmp_path / "out"
    call = ["--only", "paper-5", "--runs", str(tmp_path), "--out", str(out)]
    assert command(call) == 1
    printed = capsys.readouterr()
    assert "training, dissection" in printed.err, "what is left of it, in the plan"
    last = printed.err.splitlines()[-1]
    assert last.startswith(f"paper: paper-5 failed: {tmp_path / 'paper-5'} holds no run")
    assert printed.out.endswith(f"{out / 'claims.md'}\n")
    finding = out / "paper-5" / "findings" / "risk.json"
    write_bytes(finding, b"{}")
    assert command(call) == 1
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-1].endswith("because it has results of paper-5.")
    assert printed.out == ""
    assert finding.read_bytes() == b"{}"


@pytest.mark.slow
def test_a_quick_reproduction_of_one_model_and_the_study(tmp_path: Path) -> None:
    runs, results = tmp_path / "quick", tmp_path / "quick" / "results"
    call = ["--quick", "--only", MLP_STUDY, "--runs", str(tmp_path)]
    assert command(call) == 0
    for name in ("claims.json", "mlp-study.json", f"{STUDIED}/findings/exam.json"):
        assert (results / name).exists()
    files = list(runs.rglob("*.safetensors"))
    made = {path: path.stat().st_mtime_ns for path in [*files, runs / STUDIED / "report.html"]}
    assert len(files) > len(VARIANTS)
    assert command(call) == 0, "a second call finds everything done"
    assert {path: path.stat().st_mtime_ns for path in made} == made


@pytest.mark.slow
def test_stopped_and_killed_it_continues(tmp_path: Path) -> None:
    words = ["--quick", "--only", "paper-5,paper-5-heads-2", "--runs", str(tmp_path)]
    runs = [tmp_path / "quick" / name for name in ("paper-5", "paper-5-heads-2")]

    def started() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "paper", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    first = started()
    wait_for(lambda: all((run / "metrics.jsonl").exists() for run in runs))
    os.killpg(first.pid, signal.SIGINT)
    _, printed = first.communicate(timeout=PATIENCE)
    assert first.returncode == 1
    assert "Stopped: 0 of 2 models are done. What the others have is kept." in printed
    assert printed.strip().endswith(f"python -m paper {shlex.join(words)}")
    second = started()
    wait_for(lambda: any((run / "model.safetensors").exists() for run in runs))
    second.kill()
    second.communicate()
    trained = next(run for run in runs if (run / "model.safetensors").exists())
    made = (trained / "model.safetensors").stat().st_mtime_ns
    assert started().wait() == 0
    assert (trained / "model.safetensors").stat().st_mtime_ns == made
    assert all((run / "report.html").exists() for run in runs)
