"""`carryscope certify` as a person uses it: proving, continuing, checking, and what it refuses."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from forked import Forked
from report.certificates import certificate
from rich.console import Console
from waiting import wait_for

from carryscope.cli.main import run
from carryscope.core.storage import write_json
from carryscope.model.config import FORMAT_VERSION, ModelConfig
from carryscope.model.files import CONFIG_FILE, WEIGHTS_FILE, save_weights
from carryscope.model.transformer import Transformer, initialise
from carryscope.report.findings import parts_of
from carryscope.report.terminal import show
from carryscope.training.config import RunConfig


def make_run(directory: Path, **fields: object) -> Path:
    """A run with an untrained model."""
    config = ModelConfig(**{"digits": 2, "heads": 2, "d_model": 24, **fields})  # type: ignore[arg-type]
    directory.mkdir(parents=True)
    save_weights(initialise(Transformer(config), torch.Generator().manual_seed(0)), directory)
    write_json(directory / CONFIG_FILE, RunConfig(format_version=FORMAT_VERSION, model=config))
    return directory


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = make_run(tmp_path_factory.mktemp("runs") / "some")
    assert run(["certify", str(where), "--until", "0.5", "--workers", "1"]) == 0
    return where


def test_certify_shows_what_is_proved_and_ends_with_the_path(certified, capsys):
    assert run(["certify", str(certified), "--until", "0.5"]) == 0
    shown = capsys.readouterr().out
    assert "Of all 10,000 questions," in " ".join(shown.split())
    assert "A2" in shown
    assert shown.rstrip().endswith("certificate.json")


def test_numbers_of_questions_are_never_cut_off(capsys):
    for digits, undecided, share in ((5, 12_345, "12,345"), (10, 10**18, "1.00%")):
        show(parts_of(certificate(digits, undecided=undecided)), Console(width=80))
        shown = capsys.readouterr().out
        assert share in shown
        assert "…" not in shown


def test_certify_as_json_has_the_counts_as_decimal_strings_and_no_log(certified, capsys):
    assert run(["certify", str(certified), "--until", "0.5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    counts = [found[name] for name in ("proved_right", "proved_wrong", "undecided")]
    assert sum(map(int, counts)) == int(found["questions"]) == 10_000
    assert {"per_digit", "seconds", "weights_sha256", "undecided_families"} <= set(found)
    assert "log" not in found


def test_check_says_how_much_was_computed_again(certified, capsys):
    assert run(["certify", str(certified), "--check", "--workers", "1"]) == 0
    assert "The certificate holds" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--until", "2"], "until must be above 0 and at most 1. Got 2"),
        (["--minutes", "0"], "minutes must be above 0. Got 0"),
        (["--workers", "0"], "workers must be at least 1. Got 0"),
    ],
)
def test_certify_refuses_what_makes_no_sense(options, message, certified, capsys):
    assert run(["certify", str(certified), "--again", *options]) == 2
    assert message in capsys.readouterr().err


def test_certify_says_in_one_line_what_is_not_supported(tmp_path, capsys):
    two = make_run(tmp_path / "two", layers=2)
    assert run(["certify", str(two)]) == 2
    assert "for models of 1 layer" in capsys.readouterr().err
    newer = make_run(tmp_path / "newer")
    text = (newer / CONFIG_FILE).read_text()
    version = f'"format_version": {FORMAT_VERSION}'
    (newer / CONFIG_FILE).write_text(text.replace(version, '"format_version": 99'))
    assert run(["certify", str(newer)]) == 2
    assert "99" in capsys.readouterr().err
    empty = make_run(tmp_path / "empty")
    (empty / WEIGHTS_FILE).unlink()
    assert run(["certify", str(empty)]) == 2
    assert WEIGHTS_FILE in capsys.readouterr().err
    assert run(["certify", str(make_run(tmp_path / "bare")), "--check"]) == 2
    assert "carryscope certify" in capsys.readouterr().err


def test_ctrl_c_keeps_what_is_proved_and_the_same_command_continues(tmp_path, capsys, monkeypatch):
    where = make_run(tmp_path / "long", digits=3)
    monkeypatch.setattr("carryscope.cli.bars.LOG_SECONDS", 0.1)
    command = ["certify", str(where), "--until", "1", "--workers", "1", "--json"]
    process = Forked(tmp_path, *command)
    wait_for(lambda: re.search(r"[1-9][\d,]* boxes", process.err))
    assert process.send(signal.SIGINT) == 0
    found = json.loads(process.out)
    assert found["ended"] == "asked to"
    assert found["boxes"] > 0
    assert run([*command, "--minutes", "0.02"]) == 0
    assert json.loads(capsys.readouterr().out)["boxes"] > found["boxes"]


def test_without_numba_torch_proves_the_same_and_says_so_once(tmp_path):
    """In a process of its own, in which numba cannot be imported."""
    where = make_run(tmp_path / "run", digits=1)
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "from carryscope.cli.main import main\n"
        f"sys.argv = ['carryscope', 'certify', {str(where)!r}, '--workers', '1', '--json']\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("numba is not installed") == 1
    found = json.loads(done.stdout)
    assert found["found_with"] == ["torch"]
    assert int(found["proved_right"]) + int(found["proved_wrong"]) > 0
