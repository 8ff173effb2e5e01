"""`carryscope sweep` as a person uses it: calls, stops, kills, and calls again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import PATIENCE, wait_for

from carryscope.cli.main import run
from carryscope.cli.sweep import parse_seeds
from carryscope.core.errors import CallError
from carryscope.core.workers import this_process

CARRYSCOPE = [sys.executable, "-m", "carryscope"]
CLUSTER = ["--cluster", "tcp://127.0.0.1:1"]
QUICK = ["--preset", "tiny", "--digits", "1", "--d-model", "12", "--workers", "1", "--threads", "1"]


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("0..3", [0, 1, 2, 3]), ("7", [7]), ("3,5,8..10", [3, 5, 8, 9, 10]), ("2..2, 1,2", [2, 1])],
)
def test_seeds_are_named_as_a_range_or_one_by_one(text, seeds):
    assert parse_seeds(text) == seeds


def test_seeds_are_counted_over_all_ranges():
    assert len(parse_seeds("0..4999,5000..9999")) == 10_000
    with pytest.raises(CallError, match="at most 10,000 in all. Got '0..9999,10000'"):
        parse_seeds("0..9999,10000")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seeds", "5..2"], "seeds must go upwards, as in 2..5. Got '5..2'."),
        (["--seeds", "x"], "seeds must be like 0..31 or 3,5,8..12. Got 'x'."),
        (["--seeds", "-3"], "seeds"),
        (["--seeds", "0..99999999"], "at most 10,000"),
        (["--seeds", "99999999999"], "seed must be at most"),
        (["--seeds", "0", "--preset", "slow"], "preset must be one of fast-5"),
        (["--seeds", "0", "--seed", "3"], "Unknown option: --seed. Did you mean --seeds?"),
        (["--seeds", "0", "--renew", "mlp"], "Unknown option: --renew."),
        (["--seeds", "0", "--steps", "0"], "steps must be at least 1. Got 0."),
        (["--seeds", "0", "--workers", "0"], "workers must be at least 1. Got 0."),
        (["--seeds", "0", "--workers", "9999"], "Use fewer."),
        (["--seeds", "0", *CLUSTER, "--workers", "1"], "leave out --workers"),
        (["--seeds", "0", *CLUSTER, "--threads", "0"], "threads must be at least 1. Got 0."),
        (["--seeds", "0", *CLUSTER, "--threads=-1"], "threads must be at least 1. Got -1."),
        ([], "seeds"),
    ],
)
def test_a_wrong_call_gets_one_clear_line(options, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["sweep", "--out", "x", *options]) == 2
    told = capsys.readouterr().err
    assert told.startswith("carryscope: ")
    assert told.count("\n") == 1
    assert message in told
    assert not list(tmp_path.iterdir())


def test_help_says_what_a_cluster_needs(capsys):
    assert run(["sweep", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "on a disk that all share" in told
    assert "the same command continues" in told
    assert "--nthreads 1" in told
    assert "--seed INT" not in told
    assert "--renew" not in told, "the help lists nothing that is refused"


def test_it_ends_with_the_page_and_reports_a_seed_that_failed(capsys, tmp_path, monkeypatch):
    @contextmanager
    def no_processes(count, *, threads=1, shared=None):
        yield this_process(shared)

    monkeypatch.setattr("carryscope.sweeps.running.local_workers", no_processes)
    out = tmp_path / "sweep [1]"
    (out / "seed-1").mkdir(parents=True)
    (out / "seed-1" / "config.json").write_text('{"format_version": 99}')
    options = [*QUICK, "--steps", "5", "--out", str(out)]
    assert run(["sweep", *options, "--seeds", "0..1"]) == 1
    told = capsys.readouterr()
    shown = " ".join(told.out.split())
    assert "100% of answers are wrong in the median over the seeds" in shown
    assert "agrees with Algorithm 1 on 99% of answers 0 of 1" in shown
    assert told.out.endswith(f"{out / 'sweep.html'}\n")
    assert told.err.splitlines()[-1].startswith("carryscope: 1 of 2 seeds failed; seed 1: ")
    assert run(["sweep", *options, "--seeds", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["seeds"], found["failures"]) == ([0], {})
    assert found["recipe"]["preset"] == "tiny"


def started(directory: Path) -> subprocess.Popen[str]:
    command = [*CARRYSCOPE, "sweep", *QUICK, "--steps", "2000", "--seeds", "0..1"]
    return subprocess.Popen(
        [*command, "--out", str(directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.slow
def test_killed_stopped_and_started_again_it_ends_as_if_nothing_had_happened(tmp_path):
    whole, directory = tmp_path / "whole", tmp_path / "disturbed"
    config = directory / "seed-0" / "config.json"
    first = started(directory)
    wait_for(config.exists)
    first.kill()
    first.communicate()
    second = started(directory)
    wait_for((directory / "seed-1" / "metrics.jsonl").exists)
    os.killpg(second.pid, signal.SIGINT)
    _, told = second.communicate(timeout=PATIENCE)
    assert second.returncode == 1
    assert "Traceback" not in told
    last = told.strip().splitlines()[-1]
    kept = "Stopped: 1 of 2 seeds are done. What the others have is kept."
    assert last.startswith(f"carryscope: {kept} Continue with: ")
    assert last.endswith(f"--seeds 0..1 --out {directory}")
    for last_try in (started(directory), started(whole)):
        _, told = last_try.communicate(timeout=PATIENCE)
        assert last_try.returncode == 0, told
    for name in ("sweep.json", "seed-0/model.safetensors", "seed-1/model.safetensors"):
        assert (directory / name).read_bytes() == (whole / name).read_bytes()
