"""Many seeds at once: who works, what is tried again, and what the seeds come to together."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Thread

import msgspec
import pytest
from report.page.shelves import HOSTILE, Seen, made_hostile, replaced

import carryscope
from carryscope.benchmark.sweep import throughput
from carryscope.errors import CallError, WorkError
from carryscope.reproduction.sweep import pool
from carryscope.reproduction.sweep.finding import SeedFailure, Spread, Sweep, summarised
from carryscope.reproduction.sweep.page import sweep_page, sweep_tables
from carryscope.reproduction.sweep.pool import (
    Crew,
    LocalProcesses,
    at_work,
    shared_out,
    work_through,
)
from carryscope.reproduction.sweep.seeds import SeedFinding, by_depth, seed_finding
from carryscope.reproduction.sweep.sweep import sweep
from carryscope.storage import only_writer, read_json, write_json
from carryscope.training.config import RunConfig
from carryscope.training.loop import Stopped
from carryscope.training.presets import run_config
from carryscope.verification.estimate import Rate
from carryscope.verification.risk_finding import CaseRisk

RECIPE = run_config("tiny", {"digits": 1, "d_model": 12, "steps": 20})
PATIENCE = 120.0

Call = Callable[[], bytes]


def shell(script: str) -> Call:
    """A call that a worker makes; for the shell, $PPID is the worker."""
    return partial(subprocess.check_output, ["sh", "-c", script])


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever machine this is, two workers are tried."""
    monkeypatch.setattr(pool, "cores", lambda: 2)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Sweep]:
    """Two seeds, one after the other."""
    directory = tmp_path_factory.mktemp("alone")
    return directory, sweep(RECIPE, [0, 1], directory, workers=1, threads=1)


@pytest.fixture
def cluster() -> Iterator[str]:
    """A real dask scheduler on loopback with two worker processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as started:
        yield started.scheduler_address


def weights(directory: Path) -> list[bytes]:
    return [(directory / f"seed-{n}" / "model.safetensors").read_bytes() for n in (0, 1)]


# Who works


def killing_once(log: Path) -> Call:
    """A call whose first worker is killed in the middle of it."""
    return shell(f"echo x >> {log}; [ $(wc -l < {log}) -gt 1 ] || kill -9 $PPID; echo done")


def test_a_local_worker_that_is_killed_is_replaced_and_its_call_made_again(tmp_path: Path) -> None:
    calls = {0: killing_once(tmp_path / "log"), 1: shell("sleep 1; echo done")}
    with LocalProcesses(2, 1) as executor:
        outcome = work_through(Crew(executor, lambda: 2), calls)
    assert outcome.done == {0: b"done\n", 1: b"done\n"}
    assert not outcome.failed
    assert (tmp_path / "log").read_text() == "x\nx\n"


def test_a_cluster_that_loses_a_worker_makes_its_call_again(cluster: str, tmp_path: Path) -> None:
    calls = {0: killing_once(tmp_path / "log"), 1: shell("sleep 1; echo done"), 2: shell("exit 3")}
    with at_work(0, 1, cluster) as crew:
        assert crew.room() == 2
        outcome = work_through(crew, calls)
    assert outcome.done == {0: b"done\n", 1: b"done\n"}
    assert (tmp_path / "log").read_text() == "x\nx\n"
    assert outcome.tried[2] == 2
    assert outcome.failed[2].startswith("CalledProcessError: ")


def test_a_call_that_kills_every_worker_is_given_up_and_stops_no_other(tmp_path: Path) -> None:
    calls = {0: shell("kill -9 $PPID; sleep 9"), 1: shell("echo done")}
    with LocalProcesses(1, 1) as executor:
        outcome = work_through(Crew(executor, lambda: 1), calls)
    assert outcome.done == {1: b"done\n"}
    assert outcome.tried[0] == 4
    assert outcome.failed == {0: "4 workers were killed at it. Is there too little memory?"}


def test_a_call_that_fails_is_made_twice_and_its_reason_told_in_a_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    calls = {0: shell(f"echo x >> {log}; exit 3"), 1: shell("echo done")}
    with LocalProcesses(1, 1) as executor:
        outcome = work_through(Crew(executor, lambda: 1), calls)
    assert log.read_text() == "x\nx\n"
    assert outcome.tried[0] == 2
    assert outcome.failed[0].startswith("CalledProcessError: ")
    assert outcome.failed[0].endswith("returned non-zero exit status 3.")
    assert outcome.done == {1: b"done\n"}


def test_a_worker_has_as_many_threads_as_it_is_given_and_ignores_ctrl_c() -> None:
    with LocalProcesses(1, 3) as executor:
        assert executor.submit(os.getenv, "OMP_NUM_THREADS").result() == "3"
        handler = executor.submit(signal.getsignal, signal.SIGINT).result()
    assert handler == signal.SIG_IGN


def test_local_workers_do_not_outlive_a_driver_that_is_killed() -> None:
    code = (
        "import os, time; from carryscope.reproduction.sweep.pool import LocalProcesses\n"
        "if __name__ == '__main__':\n"
        "    executor = LocalProcesses(1, 1)\n"
        "    print(executor.submit(os.getpid).result(), flush=True)\n"
        "    executor.submit(time.sleep, 1000).result()\n"
    )
    driver = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    worker = int(driver.stdout.readline())
    driver.kill()
    driver.communicate()
    wait_for(lambda: not is_alive(worker))


def is_alive(process: int) -> bool:
    """Whether a process is there, and not just the memory of one that its parent must bury."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("workers", "threads", "shared"),
    [
        (None, None, (5, 1)),
        (2, None, (2, 2)),
        (1, None, (1, 5)),
        (3, None, (3, 1)),
        (None, 2, (2, 2)),
    ],
)
def test_threads_are_shared_out_and_never_more_than_cores(
    workers: int | None, threads: int | None, shared: tuple[int, int], monkeypatch
) -> None:
    monkeypatch.setattr(pool, "cores", lambda: 5)
    assert shared_out(workers, threads) == shared


@pytest.mark.parametrize(
    ("workers", "threads", "message"),
    [(6, None, "more than the 5 cores"), (2, 3, "more than the 5 cores"), (0, None, "at least 1")],
)
def test_more_threads_than_cores_are_refused(
    workers: int, threads: int | None, message: str, monkeypatch
) -> None:
    monkeypatch.setattr(pool, "cores", lambda: 5)
    with pytest.raises(CallError, match=message):
        shared_out(workers, threads)


def test_an_address_where_no_scheduler_answers_is_told_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(CallError, match="No dask scheduler answers at tcp://127.0.0.1:1"):
        sweep(RECIPE, [0], tmp_path, cluster="tcp://127.0.0.1:1")


# The sweep


def test_two_seeds_side_by_side_give_what_they_give_one_after_the_other(
    alone: tuple[Path, Sweep], tmp_path: Path
) -> None:
    directory, found = alone
    assert sweep(RECIPE, [0, 1], tmp_path, workers=2, threads=1) == found
    assert weights(tmp_path) == weights(directory)
    for name in ("sweep.json", "sweep.md", "sweep.html"):
        assert (tmp_path / name).read_bytes() == (directory / name).read_bytes()


def test_finished_seeds_are_not_redone_and_one_that_cannot_be_is_tried_twice(
    alone: tuple[Path, Sweep], tmp_path: Path
) -> None:
    directory, found = alone
    where = tmp_path / "copy"
    shutil.copytree(directory, where)
    foreign = run_config("tiny", {"digits": 2, "seed": 2})
    write_json(where / "seed-2" / "config.json", foreign)
    files = [path for n in (0, 1) for path in (where / f"seed-{n}").rglob("*") if path.is_file()]
    before = {path: path.stat().st_mtime_ns for path in files}
    again = sweep(RECIPE, [2, 0, 1], where, workers=1, threads=1)
    assert {path: path.stat().st_mtime_ns for path in files} == before
    assert again.results == found.results
    (failure,) = again.failures
    assert (failure.seed, failure.tried) == (2, 2)
    assert "was started differently: model.digits is 2, asked for 1" in failure.reason
    assert "\n" not in failure.reason
    assert "Not brought to their end: 2." in again.statement
    assert read_json(where / "sweep.json", Sweep) == again


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_in_the_middle_gives_the_same_sweep(
    cluster: str, tmp_path: Path
) -> None:
    import distributed

    recipe = run_config("tiny", {"digits": 1, "d_model": 12, "steps": 5000})
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
    run = tmp_path / "seed-0"
    with pytest.raises(Stopped, match="0 of 2 seeds are done, and what the others reached is kept"):
        sweep(
            endless,
            [0, 1],
            tmp_path,
            workers=1,
            on_progress=lambda _: (run / "metrics.jsonl").exists(),
        )
    assert (run / "checkpoint" / "state.safetensors").exists()
    assert not (tmp_path / "seed-1").exists()


def test_another_recipe_in_the_same_directory_is_refused(alone: tuple[Path, Sweep]) -> None:
    directory, _ = alone
    other = run_config("tiny", {"digits": 1, "d_model": 12, "steps": 21})
    with pytest.raises(CallError, match=r"training.steps is 20, asked for 21"):
        sweep(other, [0, 1], directory, workers=1)


def test_a_second_sweep_of_the_same_directory_at_the_same_time_is_refused(tmp_path: Path) -> None:
    with only_writer(tmp_path), pytest.raises(WorkError, match="Another process is working on"):
        sweep(RECIPE, [0], tmp_path, workers=1)


# What the seeds come to


@pytest.fixture(scope="module")
def shipped() -> SeedFinding:
    run = carryscope.load()
    return seed_finding("seed-0", run.training(), run.dissection(), run.risk(), run.faithfulness())


def holding(found: Sweep) -> dict[str, tuple[int, int]]:
    return {one.name: (one.holds.count, one.holds.of) for one in found.properties}


def test_the_shipped_model_has_the_heads_of_the_paper_in_every_seed(shipped: SeedFinding) -> None:
    seeds = [replaced(shipped, seed=n) for n in range(3)]
    found = summarised(carryscope.load().config, range(3), seeds, [])
    held = holding(found)
    for name in (
        "double staircase",
        "a head reads its own column",
        "a head reads the column two below",
        "the head on its own column carries BA",
        "the head one below carries that column's carry",
        "the head two below carries that column's carry",
        "every sub-task of Algorithm 1 is carried",
        "cascades fail",
    ):
        assert held[name] == (3, 3), name
    assert held["Algorithm 1 tells its answers"] == (0, 3), "98.8 % is below 99 %"
    assert [group.name for group in found.roles] == ["own column, one below, two below"]
    assert "in 3 of 3 seeds (44% to 100%)" in found.statement


def test_a_head_that_lost_its_task_is_not_said_to_have_it(shipped: SeedFinding) -> None:
    idle = [replaced(head, carries=[]) for head in shipped.heads]
    found = summarised(carryscope.load().config, [0], [replaced(shipped, heads=idle)], [])
    assert holding(found)["the head on its own column carries BA"] == (0, 1)
    blind = [replaced(head, role=None) for head in shipped.heads]
    found = summarised(carryscope.load().config, [0], [replaced(shipped, heads=blind)], [])
    assert holding(found)["the head on its own column carries BA"] == (0, 0)
    assert holding(found)["a head reads its own column"] == (0, 1)


@pytest.mark.slow
def test_hardly_trained_seeds_have_nothing_of_the_algorithm(tmp_path: Path) -> None:
    hardly = run_config("tiny", {"digits": 2, "d_model": 12, "steps": 1})
    found = sweep(hardly, [0], tmp_path, workers=1, threads=1)
    held = holding(found)
    for name in ("double staircase", "every sub-task of Algorithm 1 is carried"):
        assert held[name] == (0, 1)
    assert held["Algorithm 1 tells its answers"] == (0, 1)


def test_failures_of_one_depth_are_put_together_by_their_probabilities() -> None:
    def case(digit: str, chance: float, wrong: float) -> CaseRisk:
        rate = Rate(wrong, wrong / 2, wrong * 1.5)
        return CaseRisk(
            digit=digit, depth=2, carrying=True, probability=chance, wrong=rate, asked=9
        )

    (found,) = by_depth([case("A3", 0.1, 0.5), case("A2", 0.3, 0.1)])
    assert found.wrong.estimate == pytest.approx(0.2)
    assert (found.wrong.low, found.wrong.high) == pytest.approx((0.1, 0.3))
    assert (found.all_below, found.some_above) == pytest.approx((0.75, 0.25))


@pytest.mark.parametrize(
    ("count", "ends"), [(5, (None, None)), (6, (0, 5)), (16, (3, 12)), (32, (9, 22))]
)
def test_the_interval_of_a_median_is_that_of_the_sign_test(
    count: int, ends: tuple[int | None, int | None]
) -> None:
    spread = Spread.measured("x", [float(value) for value in reversed(range(count))])
    assert (spread.low, spread.high) == ends
    assert (spread.median, spread.least, spread.most) == ((count - 1) / 2, 0, count - 1)


# The page


def page_of(found: Sweep) -> Seen:
    return Seen(sweep_page(found))


def recipe() -> RunConfig:
    return carryscope.load().config


def test_the_page_has_a_staircase_for_each_seed_and_loads_nothing(shipped: SeedFinding) -> None:
    seeds = [replaced(shipped, seed=n) for n in range(3)]
    text = sweep_page(summarised(recipe(), range(3), seeds, []))
    seen = Seen(text)
    for n in range(3):
        assert f">seed {n}</text>" in text
    assert {figure["id"] for figure in seen.all("figure")} == {
        "figure-properties",
        "figure-staircases",
        "figure-numbers",
        "figure-failures",
    }
    policy = next(m["content"] for m in seen.all("meta") if "http-equiv" in m)
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    loading = [a for _, a in seen.tags if {"src", "srcset"} & set(a)]
    links = [a["href"] for a in seen.all("a") if not str(a["href"]).startswith("#")]
    assert not loading
    assert not links
    assert not seen.all("link")


def test_hostile_names_are_text_on_the_page(shipped: SeedFinding) -> None:
    failures = [SeedFailure(seed=9, tried=2, reason=f"a | b {HOSTILE}")]
    hostile = replaced(recipe(), preset=f"tiny{HOSTILE}")
    found = summarised(hostile, [0, 9], [made_hostile(shipped)], failures)
    plain = page_of(summarised(recipe(), [0, 9], [shipped], failures))
    seen = page_of(found)
    assert len(seen.all("script")) == len(plain.all("script")) == 1
    assert not seen.all("img")
    assert "<script>alert(1)</script>" in seen.text
    assert "{{ 7*7 }}" in seen.text
    assert "| 9 | 2 | a / b" in sweep_tables(found)


def test_a_sweep_without_any_seed_still_has_a_page_that_says_why() -> None:
    failure = SeedFailure(seed=4, tried=2, reason="The disk is full.")
    found = summarised(recipe(), [4], [], [failure])
    assert "No seed was brought to its end." in found.statement
    assert "Seed 4 failed 2 times: The disk is full." in page_of(found).text
    assert msgspec.json.decode(msgspec.json.encode(found), type=Sweep) == found


# Its speed


def test_throughput_is_the_median_of_what_the_turns_gained() -> None:
    gained, seed = throughput([100.0, 90.0, 120.0], [50.0, 60.0, 66.0])
    assert (gained.value, gained.met) == (pytest.approx(120 / 66), True)
    assert seed.value == 50
    assert throughput([100.0], [63.0])[0].met is False
