"""Real processes, really killed: what a user's run looks like afterwards."""

import resource
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from waiting import wait_for

TRAIN = [sys.executable, "-m", "carryscope", "train", "--preset", "tiny", "--threads", "1"]
LONG = ["--steps", "400", "--checkpoint-every", "0.1"]


def start(directory: Path, *options: str, **how) -> subprocess.Popen:
    command = [*TRAIN, *(options or LONG), "--out", str(directory)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how
    )


def checkpoint(directory: Path) -> Path:
    return directory / "checkpoint" / "state.safetensors"


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A run that nobody disturbed."""
    directory = tmp_path_factory.mktemp("whole") / "run"
    ended = start(directory)
    ended.communicate()
    assert ended.returncode == 0
    return directory


def same_results(one: Path, other: Path) -> bool:
    names = ("model.safetensors", "metrics.jsonl")
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


def test_kill_9_at_any_moment_then_the_same_command_gives_the_very_same_weights(whole, tmp_path):
    directory = tmp_path / "run"
    for delay in (0.0, 0.37):
        before = checkpoint(directory).stat().st_mtime_ns if checkpoint(directory).exists() else 0
        process = start(directory)
        wait_for(
            lambda before=before, process=process: (
                (
                    checkpoint(directory).exists()
                    and checkpoint(directory).stat().st_mtime_ns > before
                )
                or process.poll() is not None
            )
        )
        time.sleep(delay)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert not (directory / "model.safetensors").exists()
    ended = start(directory)
    ended.communicate()
    assert ended.returncode == 0
    assert same_results(whole, directory)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_and_says_how_to_continue(whole, tmp_path, number):
    directory = tmp_path / "run"
    process = start(directory)
    wait_for(checkpoint(directory).exists)
    process.send_signal(number)
    _, told = process.communicate()
    assert process.returncode == 1
    last = told.strip().splitlines()[-1]
    assert last.startswith("carryscope: Stopped at step ")
    hint = last.split("Continue with: python -m carryscope ")[1]
    again = subprocess.run([*TRAIN[:3], *hint.split()], capture_output=True, check=False)
    assert again.returncode == 0
    assert same_results(whole, directory)


def test_a_second_process_on_the_same_run_is_refused(tmp_path):
    directory = tmp_path / "run"
    endless = ("--steps", "1000000", "--checkpoint-every", "0.1")
    first = start(directory, *endless)
    wait_for(checkpoint(directory).exists)
    second = start(directory, *endless)
    _, told = second.communicate()
    first.kill()
    first.communicate()
    assert second.returncode == 1
    assert "Another process is working on" in told


def limit_file_size(size: int) -> None:
    """Files beyond this size are refused by the operating system, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_under_the_metrics_is_told_in_one_line(tmp_path):
    rarely = ("--steps", "400", "--checkpoint-every", "1000")
    process = start(tmp_path / "run", *rarely, preexec_fn=partial(limit_file_size, 3000))
    _, told = process.communicate()
    assert process.returncode == 1
    assert "Traceback" not in told
    assert f"Cannot write {tmp_path / 'run' / 'metrics.jsonl'}: File too large." in told


def test_a_full_disk_is_told_in_one_line_and_the_last_checkpoint_stays(tmp_path):
    directory = tmp_path / "run"
    first = start(directory)
    wait_for(checkpoint(directory).exists)
    first.kill()
    first.communicate()
    good = checkpoint(directory).read_bytes()
    process = start(directory, preexec_fn=partial(limit_file_size, len(good) // 2))
    _, told = process.communicate()
    assert process.returncode == 1
    assert "Traceback" not in told
    assert f"Cannot write {checkpoint(directory)}" in told
    assert "intact" in told
    assert checkpoint(directory).read_bytes() == good
    assert [path.name for path in checkpoint(directory).parent.iterdir()] == ["state.safetensors"]


def test_an_interrupted_dissection_keeps_its_parts_and_says_how_to_continue(whole, tmp_path):
    directory = tmp_path / "run"
    shutil.copytree(whole, directory)
    command = [sys.executable, "-m", "carryscope", "dissect", str(directory), "--threads", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    findings = directory / "findings" / "dissection.json"
    wait_for(lambda: findings.exists() and b'"readings"' in findings.read_bytes())
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert process.returncode == 1
    last = told.strip().splitlines()[-1]
    assert "What was finished is kept. Continue with:" in last
    assert last.endswith(f"dissect {directory} --threads 1")
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "attention (" not in ended.stderr
    assert "story" in ended.stderr
