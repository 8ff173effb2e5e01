"""Runs from elsewhere, spoiled in every way we know: each call ends well or in one clear line.

No traceback, nothing lost, the run as it was. The cases come from one table (`damage.py`): kind of
damage, file, command.
"""

import os
import shutil
from itertools import product
from pathlib import Path

import pytest
from hostile.damage import BYTES, COMMANDS, FILES, JSON_FILES, VALUES, Command, Damage, spoiled

from carryscope.cli.main import run
from carryscope.run import Run
from carryscope.training.loop import train
from carryscope.training.presets import run_config

SEEDS = 2
"""Places in a record that are spoiled in each way."""


@pytest.fixture(scope="session")
def sound(tmp_path_factory) -> Path:
    """A run with every finding."""
    directory = tmp_path_factory.mktemp("sound") / "run"
    train(run_config("tiny", {"digits": 1, "d_model": 12, "steps": 5}), directory, threads=1)
    made = Run(directory)
    made.dissection()
    made.risk()
    made.faithfulness()
    made.certificate(minutes=0.01, workers=1)
    (directory / ".lock").unlink(missing_ok=True)
    return directory


def contents(directory: Path) -> dict[str, object]:
    """Everything in a directory, whatever it is, but for the lock."""
    found = {}
    for where, folders, files in os.walk(directory):
        for name in (*folders, *files):
            path = Path(where) / name
            plain = path.is_file() and not path.is_symlink()
            found[str(path.relative_to(directory))] = path.read_bytes() if plain else "no file"
    return {name: content for name, content in found.items() if name != ".lock"}


def call(sound: Path, directory: Path, file: str, damage: Damage, command: Command) -> int:
    """Spoil one file of a copy, call a command, and see what it left; returns its exit code."""
    shutil.copytree(sound, directory)
    damage(directory / file)
    before = contents(directory)
    code = run([word.replace("RUN", str(directory)) for word in command.words])
    after = contents(directory)
    for name in before.keys() | after.keys():
        if not name.startswith(command.writes or ("nothing",)):
            assert before.get(name) == after.get(name), f"{name} has changed"
    return code


def check_words(code: int, printed: str) -> None:
    """An error is one line, and nothing that steers a terminal is printed."""
    assert code in (0, 1, 2)
    errors = [line for line in printed.splitlines() if line.startswith("carryscope: ")]
    assert len(errors) == (code != 0)
    assert "Traceback" not in printed
    assert not set(printed) & set("\x1b\x07\u202e")


@pytest.mark.parametrize(("file", "damage"), list(product(FILES, BYTES)))
def test_a_file_that_is_damaged_is_refused_or_made_again(sound, tmp_path, capsys, file, damage):
    for name, command in COMMANDS.items():
        needed = file in command.needs
        if not needed and file not in ("metrics.jsonl", *JSON_FILES):
            continue
        code = call(sound, tmp_path / name, file, BYTES[damage], command)
        printed = capsys.readouterr()
        check_words(code, printed.out + printed.err)
        assert code or not needed, f"{name} cannot work without {file}"
