"""Many seeds at once: side by side as one after the other, disturbed or not."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread, Timer

import pytest
from waiting import wait_for

from carryscope import sweep
from carryscope.core.errors import CallError, WorkError
from carryscope.core.progress import Advance, Stopped
from carryscope.core.storage import only_writer, read_json, write_json
from carryscope.core.workers import Workers, this_process
from carryscope.sweeps.finding import Sweep
from carryscope.sweeps.running import side_by_side, stage, trained, until
from carryscope.training.presets import run_config

RECIPE = run_config("tiny", {"digits": 1, "d_model": 12, "steps": 20})


@contextmanager
def no_processes(count: int, *, threads: int = 1, shared: object = None) -> Iterator[Workers]:
    """This process does the work: starting others would take longer than the seeds."""
    yield this_process(shared)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("carryscope.sweeps.running.local_workers", no_processes)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Sweep]:
    """Two seeds, one after the other, in this process."""
    directory = tmp_path_factory.mktemp("alone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("carryscope.sweeps.running.local_workers", no_processes)
        return directory, sweep(RECIPE, [0, 1], directory, workers=1, threads=1)


def weights(directory: Path) -> list[bytes]:
    return [(directory / f"seed-{n}" / "model.safetensors").read_bytes() for n in (0, 1)]


def test_two_seeds_side_by_side_give_what_they_give_one_after_the_other(
    alone: tuple[Path, Sweep], tmp_path: Path
) -> None:
    directory, found = alone
    assert sweep(RECIPE, [0, 1], tmp_path, workers=2, threads=1) == found
    assert weights(tmp_path) == weights(directory)
    for name in ("sweep.json", "sweep.md", "sweep.html"):
        assert (tmp_path / name).read_bytes() == (directory / name).read_bytes()


def test_hardly_trained_seeds_have_nothing_of_the_algorithm(alone: tuple[Path, Sweep]) -> None:
    held = alone[1].properties
    for name in ("double staircase", "agrees with Algorithm 1 on 99% of answers"):
        assert held[name].count == 0


@pytest.mark.usefixtures("here")
def test_finished_seeds_are_not_redone_and_one_that_cannot_be_is_reported(
    alone: tuple[Path, Sweep], tmp_path: Path
) -> None:
    directory, found = alone
    where = tmp_path / "copy"
    shutil.copytree(directory, where)
    foreign = run_config("tiny", {"digits": 2, "seed": 2})
    write_json(where / "seed-2" / "config.json", foreign)
    files = [path for n in (0, 1) for path in (where / f"seed-{n}").rglob("*.*") if path.is_file()]
    before = {path: path.stat().st_mtime_ns for path in files if path.name != ".lock"}
    again = sweep(RECIPE, [2, 0, 1], where, workers=1, threads=1)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert again.properties == found.properties
    assert list(again.failures) == [2]
    assert "was started differently: model.digits is 2, asked for 1" in again.failures[2]
    assert "\n" not in again.failures[2]
    assert again.finished == 2
    assert read_json(where / "sweep.json", Sweep) == again


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_in_the_middle_gives_the_same_sweep(
    cluster: str, tmp_path: Path
) -> None:
    import distributed

    recipe = run_config("tiny", {"digits": 1, "d_model": 12, "steps": 2000})
    alone, swept = tmp_path / "alone", tmp_path / "cluster"
    found = sweep(recipe, [0, 1], alone, workers=1, threads=1)
    with distributed.Client(cluster) as client:
        first_worker = next(iter(client.run(os.getpid).values()))
    in_time: list[bool] = []

    def kill_a_worker() -> None:
        """Once both workers are at a seed."""
        runs = [swept / f"seed-{n}" for n in (0, 1)]
        wait_for(lambda: all((run / "metrics.jsonl").exists() for run in runs))
        os.kill(first_worker, signal.SIGKILL)
        in_time.append(not any((run / "model.safetensors").exists() for run in runs))

    killer = Thread(target=kill_a_worker)
    killer.start()
    assert sweep(recipe, [0, 1], swept, cluster=cluster) == found
    killer.join()
    assert in_time == [True], "the worker was killed in the middle of its training"
    assert weights(swept) == weights(alone)


def test_a_sweep_that_is_asked_to_stop_says_what_is_kept(tmp_path: Path) -> None:
    endless = run_config("tiny", {"digits": 1, "d_model": 12, "steps": 1_000_000})
    run, notes = tmp_path / "seed-0", []

    @contextmanager
    def progress(name: str, total: float | None = None, unit: str = "") -> Iterator[Advance]:
        assert (total, unit) == (2, "seeds")

        def advance(amount: float = 1, note: str = "") -> None:
            notes.append(note)
            if (run / "metrics.jsonl").exists():
                raise Stopped("Enough.")

        yield advance

    with pytest.raises(Stopped, match="0 of 2 seeds are done. What the others have is kept"):
        sweep(endless, [0, 1], tmp_path, workers=1, progress=progress)
    assert (run / "checkpoint" / "state.safetensors").exists()
    assert not (tmp_path / "seed-1").exists()
    assert any(note.startswith("seed-0 ") for note in notes)


@pytest.mark.usefixtures("here")
def test_a_sweep_that_is_killed_before_its_pages_are_written_leaves_no_record(
    alone: tuple[Path, Sweep], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = tmp_path / "copy"
    shutil.copytree(alone[0], where, ignore=shutil.ignore_patterns("sweep.*"))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("carryscope.sweeps.running.write_pages", killed)
    with pytest.raises(KeyboardInterrupt):
        sweep(RECIPE, [0, 1], where, workers=1, threads=1)
    assert not (where / "sweep.json").exists()


def test_another_recipe_in_the_same_directory_is_refused(alone: tuple[Path, Sweep]) -> None:
    directory, _ = alone
    other = run_config("tiny", {"digits": 1, "d_model": 12, "steps": 21})
    with pytest.raises(CallError, match=r"training.steps is 20, asked for 21"):
        sweep(other, [0, 1], directory, workers=1)


def test_a_second_sweep_of_the_same_directory_at_the_same_time_is_refused(tmp_path: Path) -> None:
    with only_writer(tmp_path), pytest.raises(WorkError, match="Another process is working on"):
        sweep(RECIPE, [0], tmp_path, workers=1)


def test_an_address_where_no_scheduler_answers_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("carryscope.core.workers.CONNECT_SECONDS", 1.0)
    with pytest.raises(CallError, match="No dask scheduler answers at tcp://127.0.0.1:1"):
        sweep(RECIPE, [0], tmp_path, cluster="tcp://127.0.0.1:1")


# One run


def test_progress_ends_the_work_once_the_stop_file_is_there(tmp_path: Path) -> None:
    with until(tmp_path / ".stop")("training", 10, "steps") as advance:
        advance()
    (tmp_path / ".stop").touch()
    with until(tmp_path / ".stop")("training") as advance, pytest.raises(Stopped):
        advance()


def test_a_stop_file_that_was_left_behind_does_not_stop_the_next_call(tmp_path: Path) -> None:
    (tmp_path / ".stop").touch()
    assert side_by_side({}, tmp_path, workers=1).done == {}
    assert not (tmp_path / ".stop").exists()


@pytest.mark.usefixtures("few_questions")
def test_a_run_that_an_orphan_holds_is_waited_for(tmp_path: Path) -> None:
    orphan = only_writer(tmp_path)
    orphan.__enter__()
    leaves = Timer(0.2, orphan.__exit__, (None, None, None))
    leaves.start()
    run = trained(RECIPE, tmp_path, threads=1, progress=until(tmp_path / ".stop"))
    leaves.join()
    assert run.training().steps == 20
    assert stage(tmp_path) == "dissection"


def test_the_stage_of_a_run_is_read_from_its_findings(alone: tuple[Path, Sweep]) -> None:
    directory, _ = alone
    assert stage(directory / "seed-0") == "finishing"
    assert stage(directory / "seed-9") == "starting"
