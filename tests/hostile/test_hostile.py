"""Runs from elsewhere, spoiled in every way we know: each call ends well or in one clear line.

No traceback, nothing lost, the run as it was. The cases come from one table (`damage.py`): kind of
damage, file, command.
"""

import contextlib
import json
import os
import random
import shutil
from itertools import product
from pathlib import Path

import pytest
from hostile.damage import (
    BYTES,
    COMMANDS,
    FILES,
    JSON_FILES,
    VALUES,
    Command,
    Damage,
    spoiled,
    torn,
)

from carryscope import repairing
from carryscope.cli.main import run
from carryscope.core.errors import CallError
from carryscope.core.storage import RUN_FOLDERS, write_bytes
from carryscope.report.markdown import markdown
from carryscope.report.sections.report import report_sections
from carryscope.run import Run
from carryscope.training.loop import train
from carryscope.training.presets import run_config
from carryscope.verification import own_function

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
        if code or not name.startswith(command.writes or ("nothing",)):
            assert before.get(name) == after.get(name), f"{name} has changed"
    return code


def check_words(code: int, printed: str) -> None:
    """An error is one line, and nothing that steers a terminal is printed."""
    assert code in (0, 1, 2)
    errors = [line for line in printed.splitlines() if line.startswith("carryscope: ")]
    assert len(errors) == (code != 0)
    assert "Traceback" not in printed
    assert not set(printed) & set("\x1b\x07\u202e")


CASES = [
    (damage, file, name)
    for damage, file, (name, command) in product(BYTES, FILES, COMMANDS.items())
    if file in command.needs
]


@pytest.mark.parametrize(("damage", "file", "name"), CASES)
def test_without_a_file_that_it_needs_a_command_fails_in_one_line(
    damage, file, name, sound, tmp_path, capsys
):
    code = call(sound, tmp_path / "run", file, BYTES[damage], COMMANDS[name])
    printed = capsys.readouterr()
    check_words(code, printed.out + printed.err)
    assert code


def test_a_run_whose_name_is_not_utf_8_has_its_pages(sound, tmp_path, capsys):
    directory = tmp_path / os.fsdecode(b"r\xff")
    shutil.copytree(sound, directory)
    for words in (["report"], ["explorer", "--json"], ["compare", str(sound), "--out", "c.html"]):
        words[1:1] = [str(directory)]
        words[-1] = words[-1].replace("c.html", str(tmp_path / "c.html"))
        assert run(words) == 0, capsys.readouterr().err


STEPS = {**BYTES, "torn early": torn(0.1), "torn in the middle": torn(0.5), "torn late": torn(0.9)}


@pytest.mark.parametrize("damage", STEPS)
def test_steps_that_cannot_be_read_tell_no_story(damage, sound, tmp_path, capsys):
    command = Command(("dissect", "RUN", "--only", "story", "--again"), (), ("findings",))
    code = call(sound, tmp_path / "run", "metrics.jsonl", STEPS[damage], command)
    printed = capsys.readouterr()
    check_words(code, printed.out + printed.err)


ABOUT = {
    "config.json": ("ask", "sites", "risk", "train"),
    "findings/training.json": ("train", "report"),
    "findings/dissection.json": ("show", "faithful", "report"),
    "findings/risk.json": ("risk", "report"),
    "findings/faithfulness.json": ("faithful", "report"),
    "findings/certificate.json": ("certify", "check", "report"),
}
"""The commands that read each record. `report` stands for its text, without the figures."""

RECORDS = [
    (how, file, name, seed)
    for how, file, seed in product(VALUES, JSON_FILES, range(SEEDS))
    for name in ABOUT[file]
    if (how, name) != ("dicts emptied", "train")  # which leaves the recipe of a long training
]


@pytest.mark.parametrize(("how", "file", "name", "seed"), RECORDS)
def test_a_record_that_does_not_fit_is_shown_as_far_as_it_goes_or_refused(
    how, file, name, seed, sound, tmp_path, capsys
):
    check_record(spoiled(how, seed), file, name, sound, tmp_path / "run", capsys)


def check_record(
    damage: Damage, file: str, name: str, sound: Path, directory: Path, capsys
) -> None:
    if name == "report":
        shutil.copytree(sound, directory)
        damage(directory / file)
        with contextlib.suppress(CallError):
            assert markdown(report_sections(Run(directory).shelf()))
    else:
        code = call(sound, directory, file, damage, COMMANDS[name])
        printed = capsys.readouterr()
        check_words(code, printed.out + printed.err)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_a_hundred_more(part, sound, tmp_path, capsys):
    """2,000 in all: drawn from the table, with other places in the records."""
    draw = random.Random(part)
    for number in range(100):
        file = draw.choice(FILES)
        damage = draw.choice([*(list(BYTES.values()) + [torn(draw.random())] * 5)])
        if file in JSON_FILES and draw.random() < 0.7:
            damage = spoiled(draw.choice(list(VALUES)), draw.randrange(10**9))
        # Without its recipe a config is that of a long training.
        name = draw.choice([*COMMANDS.keys() - {"train"}, "report"])
        check_record(damage, file, name, sound, tmp_path / str(number), capsys)


@pytest.mark.parametrize("folder", RUN_FOLDERS)
def test_no_folder_of_a_run_may_be_a_link(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / folder).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CallError, match="not an ordinary file"):
        write_bytes(tmp_path / folder / "x", b"")
    assert not list((tmp_path / "elsewhere").iterdir())


TARGETS = {
    "findings/dissection.json": ("dissect", "RUN", "--again"),
    "findings/risk.json": ("risk", "RUN", "--again"),
    "findings/faithfulness.json": ("faithful", "RUN", "--again"),
    "findings/certificate.json": ("certify", "RUN", "--again"),
    "behaviors.json": ("export", "RUN"),
    "model.pth": ("export", "RUN"),
}
"""What each command would write."""

TRAPS = ("a directory", "a pipe", "a link to nowhere", "a link to itself")


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("file", TARGETS)
def test_what_is_no_file_is_not_written_to(file, trap, sound, tmp_path, capsys):
    def damage(path: Path) -> None:
        path.touch()
        BYTES[trap](path)

    code = call(sound, tmp_path / "run", file, damage, Command(TARGETS[file], ()))
    check_words(code, "".join(capsys.readouterr()))
    assert code == 2


def test_a_folder_of_findings_that_is_a_link_is_not_written_to(sound, tmp_path, capsys):
    elsewhere, directory = tmp_path / "elsewhere", tmp_path / "run"
    shutil.copytree(sound, directory)
    (directory / "findings").rename(elsewhere)
    (directory / "findings").symlink_to(elsewhere)
    before = contents(elsewhere)
    assert run(["risk", str(directory), "--again"]) == 2
    check_words(2, capsys.readouterr().err)
    assert contents(elsewhere) == before


OUT = {
    "report": ("report", "RUN"),
    "explorer": ("explorer", "RUN"),
    "export": ("export", "RUN"),
}
PLACES = {
    "its config": "RUN/config.json",
    "its weights": "RUN/model.safetensors",
    "its metrics": "RUN/metrics.jsonl",
    "a finding": "RUN/findings/risk.json",
    "a way around": "RUN/findings/../config.json",
    "a directory": "RUN",
    "a device": os.devnull,
    "nowhere": "",
    "below a file": "RUN/config.json/page",
}


@pytest.mark.parametrize("name", OUT)
@pytest.mark.parametrize("place", PLACES)
def test_output_never_goes_over_a_run_or_what_is_no_file(place, name, sound, tmp_path, capsys):
    words = (*OUT[name], "--out", PLACES[place])
    code = call(sound, tmp_path / "run", "metrics.jsonl", lambda path: None, Command(words, ()))
    printed = capsys.readouterr()
    check_words(code, printed.out + printed.err)
    assert code


OPTIONS = {
    "train --out NEW --digits": ("2.5", "0", "21", "nan", "", "1e1", "9" * 5000, "[/x]"),
    "train --out NEW --seed": ("1.9", "-1", "nan", "", "0x1"),
    "train --out NEW --learning-rate": ("nan", "-1", "0", "", "x"),
    "train --out NEW --d-model": ("1000000000", "-4", "2.0"),
    "train --out NEW --layers": ("1000000000", "0"),
    "train --out NEW --batch": ("1000000000000", "0"),
    "train --out NEW --threads": ("0", "-1", "1.5"),
    "train --out NEW --betas": ("0.9", "0.9 2", "nan 0.9"),
    "train --out NEW --preset": ("", "[/x]", "\x1b[2J"),
    "train --out NEW --checkpoint-every": ("nan", "-1"),
    "risk RUN --width": ("nan", "0", "2", "-1", ""),
    "risk RUN --budget": ("0", "-1", "1e6", "1.5"),
    "risk RUN --seed": ("-1", "0.5", ""),
    "certify RUN --until": ("0", "1.1", "nan", "-1"),
    "certify RUN --minutes": ("0", "nan", "-1"),
    "certify RUN --workers": ("0", "-1", "1.5"),
    "certify RUN --check --workers": ("0", "-1"),
    "certify RUN --again --cluster": ("", "nonsense", "tcp://127.0.0.1:1"),
    "dissect RUN --only": ("", "everything", "[/x]"),
    "faithful RUN --algorithm": ("", "none.py:f", "x", "config.json:"),
    "figures RUN --out": ("",),
    "sweep --seeds 0 --out": ("",),
    "train --out NEW --keep-checkpoints": ("-1", "1000000000", "0.5"),
    "repair RUN --out": ("", "RUN", "RUN/new", "RUN/findings/new", "RUN/config.json"),
    "repair RUN --out NEW --minutes": ("0", "-1", "nan"),
    "compare RUN RUN --out": ("", "RUN/findings/page", os.devnull),
    "ask": ("9" * 5000 + "+1", "1+" + "9" * 5000),
    "ask RUN": ("", "9" * 5000 + "+1", "1+", "1+2+3", "\x1b[2J", "1+2 --without [/x]"),
}


@pytest.mark.parametrize(("call_", "value"), [(c, v) for c, vs in OPTIONS.items() for v in vs])
def test_an_option_that_makes_no_sense_is_refused_whatever_is_there(
    call_, value, sound, tmp_path, capsys
):
    spaced = call_.endswith("betas") or "--without" in value
    words = (*call_.replace("NEW", "RUN-new").split(), *(value.split() if spaced else (value,)))
    code = call(sound, tmp_path / "run", "config.json", lambda path: None, Command(words, ()))
    printed = capsys.readouterr()
    check_words(code, printed.out + printed.err)
    assert code == 2
    assert not (tmp_path / "run-new").exists()


ALGORITHMS = {
    "raises BaseException": "raise BaseException('no')",
    "exits": "exit(3)",
    "ends its process": "os._exit(0)",
    "raises GeneratorExit": "raise GeneratorExit",
    "prints and fails": "print('x') or os.write(1, b'x\\n') * 0 or 1 / 0",
    "never returns": "while True: pass",
    "cannot be interrupted": "while not suppress(BaseException).__enter__(): sleep(9)",
    "closes the outputs and fails": "os.closerange(1, 3) or 1 / 0",
    "raises what has no words": "raise type('Mute', (Exception,), {'__str__': 1})",
    "answers with a generator": "yield columns",
    "asks for memory": "return np.ones(10**15)",
}
"""What a function of the user's own does."""


@pytest.mark.parametrize("line", ALGORITHMS.values(), ids=ALGORITHMS)
def test_an_algorithm_of_the_users_own_cannot_end_the_program_or_print_a_result(
    line, sound, tmp_path, capfd, monkeypatch
):
    monkeypatch.setattr(own_function, "SECONDS", 0.5)
    monkeypatch.setattr(own_function, "SECONDS_A_QUESTION", 0)
    here = Path.cwd()
    code = call_own(line, sound, tmp_path)
    printed = capfd.readouterr()
    check_words(code, printed.out + printed.err)
    assert (code, printed.out, Path.cwd()) == (2, "", here)


def test_an_algorithm_of_the_users_own_changes_nothing_but_its_process(sound, tmp_path, capfd):
    line = "os.write(1, b'x'); os.chdir('/'); os.environ.clear(); columns.sums[:] *= 1; " + (
        "return np.pad(columns.sums % 10, ((0, 0), (0, 1)))"
    )
    before = Path.cwd(), dict(os.environ)
    assert call_own(line, sound, tmp_path) == 0
    assert json.loads(capfd.readouterr().out)["agreement"]
    assert (Path.cwd(), dict(os.environ)) == before


def call_own(line: str, sound: Path, place: Path) -> int:
    """Compare the run with an algorithm of one line."""
    imports = "import os\nfrom contextlib import suppress\nfrom time import sleep\n"
    source = f"{imports}import numpy as np\nos.chdir('/')\ndef own(columns):\n    {line}\n"
    (place / "own.py").write_text(source)
    words = ("faithful", "RUN", "--json", "--algorithm", f"{place / 'own.py'}:own")
    return call(
        sound, place / "run", "config.json", lambda path: None, Command(words, (), ("findings",))
    )


def test_too_little_memory_is_one_line(sound, monkeypatch, capsys):
    def torch_fails(_: str) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to")

    monkeypatch.setattr("carryscope.cli.exchange.opened", torch_fails)
    assert run(["sites", str(sound)]) == 1
    check_words(1, capsys.readouterr().err)
    monkeypatch.setattr("resource.getrlimit", lambda _: (10**9, 10**9))
    assert run(["ask", str(sound), "1+2"]) == 2
    check_words(2, capsys.readouterr().err)


def test_a_repair_writes_through_no_link_and_a_killed_copy_does_not_block_it(sound, tmp_path):
    victim, out, source = tmp_path / "victim", tmp_path / "out", Run(sound)
    victim.write_text("mine")
    out.mkdir()
    (out / "rounds" / ".copying").mkdir(parents=True)
    copy = repairing._copied(source, out / "rounds" / "0")
    (out / "config.json").symlink_to(victim)
    with pytest.raises(CallError, match="not an ordinary file"):
        repairing._publish(copy, out, None)
    assert victim.read_text() == "mine"
    (out / "rounds" / "1").symlink_to(tmp_path)
    with pytest.raises(CallError, match="is a link"):
        repairing._check(source, out, 1)
