"""Real processes, really killed: what a user's run looks like afterwards."""

import resource
import shlex
import shutil
import signal
import time
from functools import partial
from pathlib import Path

import pytest
from forked import Forked
from waiting import wait_for

from carryscope.cli.main import run

pytestmark = pytest.mark.usefixtures("few_questions")

SMALL = ["--d-model", "24", "--batch", "16"]
TRAIN = ["train", "--preset", "tiny", "--threads", "1", *SMALL]
LONG = ["--steps", "200", "--checkpoint-every", "0.02"]


def start(directory: Path, *options: str, **how) -> Forked:
    return Forked(directory.parent, *TRAIN, *(options or LONG), "--out", directory, **how)


def checkpoint(directory: Path) -> Path:
    return directory / "checkpoint" / "state.safetensors"


@pytest.fixture(scope="module", autouse=True)
def whole(tmp_path_factory) -> Path:
    """A run that nobody disturbed. What it loads, the others need not load again."""
    directory = tmp_path_factory.mktemp("whole") / "run"
    assert run([*TRAIN, *LONG, "--out", str(directory)]) == 0
    return directory


def same_results(one: Path, other: Path) -> bool:
    names = ("model.safetensors", "metrics.jsonl")
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


def test_kill_9_at_any_moment_then_the_same_command_gives_the_very_same_weights(whole, tmp_path):
    directory = tmp_path / "run"
    for delay in (0.0, 0.1):
        before = checkpoint(directory).stat().st_mtime_ns if checkpoint(directory).exists() else 0
        process = start(directory)
        wait_for(
            lambda before=before, process=process: (
                (
                    checkpoint(directory).exists()
                    and checkpoint(directory).stat().st_mtime_ns > before
                )
                or process.ended()
            )
        )
        time.sleep(delay)
        process.kill()
        assert not (directory / "model.safetensors").exists()
    assert start(directory).wait() == 0
    assert same_results(whole, directory)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_and_says_how_to_continue(whole, tmp_path, number):
    directory = tmp_path / "run"
    process = start(directory)
    wait_for(checkpoint(directory).exists)
    assert process.send(number) == 1
    assert process.last_line.startswith("carryscope: Stopped at step ")
    hint = process.last_line.split("Continue with: carryscope ")[1]
    assert Forked(tmp_path, *shlex.split(hint)).wait() == 0
    assert same_results(whole, directory)


def test_a_second_process_on_the_same_run_is_refused(tmp_path):
    directory = tmp_path / "run"
    endless = ("--steps", "1000000", "--checkpoint-every", "0.02")
    first = start(directory, *endless)
    wait_for(checkpoint(directory).exists)
    second = start(directory, *endless)
    assert second.wait() == 1
    first.kill()
    assert "Another process is working on" in second.err


def limit_file_size(size: int) -> None:
    """Files beyond this size are refused by the operating system, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_under_the_metrics_is_one_line(tmp_path):
    rarely = ("--steps", "400", "--checkpoint-every", "1000")
    process = start(tmp_path / "run", *rarely, first=partial(limit_file_size, 3000))
    assert process.wait() == 1
    assert "Traceback" not in process.err
    assert f"Cannot write {tmp_path / 'run' / 'metrics.jsonl'}: File too large." in process.err


def test_a_full_disk_is_one_line_and_the_last_checkpoint_stays(tmp_path):
    directory = tmp_path / "run"
    first = start(directory)
    wait_for(checkpoint(directory).exists)
    first.kill()
    good = checkpoint(directory).read_bytes()
    process = start(directory, first=partial(limit_file_size, len(good) // 2))
    assert process.wait() == 1
    assert "Traceback" not in process.err
    assert f"Cannot write {checkpoint(directory)}" in process.err
    assert "intact" in process.err
    assert checkpoint(directory).read_bytes() == good
    assert [path.name for path in checkpoint(directory).parent.iterdir()] == ["state.safetensors"]


def test_an_interrupted_dissection_keeps_its_parts_and_says_how_to_continue(
    whole, tmp_path, capsys
):
    directory = tmp_path / "run"
    shutil.copytree(whole, directory)
    command = ["dissect", str(directory), "--threads", "1"]
    process = Forked(tmp_path, *command)
    findings = directory / "findings" / "dissection.json"
    wait_for(lambda: findings.exists() and b'"readings"' in findings.read_bytes())
    assert process.send(signal.SIGINT) == 1
    assert "What was finished is kept. Continue with:" in process.last_line
    assert process.last_line.endswith(f"dissect {directory} --threads 1")
    assert run(command) == 0
    printed = capsys.readouterr().err
    assert "attention (" not in printed
    assert "story" in printed
