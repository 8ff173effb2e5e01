"""The command, with every benchmark cut to a few seconds."""

import signal
import subprocess
import sys

import pytest

from benchmarks import __main__ as command
from benchmarks import certificate, commands, training
from benchmarks.measure import Measure
from carryscope.certificate.certify import certify
from carryscope.core.errors import WorkError
from carryscope.training.presets import run_config
from carryscope.training.trainer import Trainer

STEP, ON = "training step of paper-5", "on TransformerLens"

FOUND = [
    Measure(name="step", value=4.61, unit="x", at_least=4, how="20 turns"),
    Measure(name="memory", value=1.2, unit="GB", at_most=1, how="a fresh process"),
    Measure(name="boxes", value=4500.0, how="sampled"),
]


@pytest.fixture
def found(monkeypatch):
    """A command that measures nothing."""
    monkeypatch.setattr(command, "measures", lambda *_: iter(FOUND))


def test_the_table_says_what_was_met(found, capsys):
    assert command.run(["--only", "commands"]) == 0
    printed = capsys.readouterr()
    assert "4.61 x" in printed.out
    assert "NO" in printed.out
    assert "boxes: 4,500" in printed.err


def test_the_page_has_the_table_and_the_command(found, tmp_path, monkeypatch, capsys):
    page = tmp_path / "speed.md"
    monkeypatch.setattr(command.sys, "argv", ["__main__.py", "--only", "commands"])
    assert command.run(["--only", "commands", "--out", str(page)]) == 0
    text = page.read_text()
    assert "`python -m benchmarks --only commands`" in text
    assert "| step | 4.61 x | at least 4 | yes | 20 turns |" in text
    assert "| memory | 1.2 GB | at most 1 | NO | a fresh process |" in text
    assert "| boxes | 4,500 |  |  | sampled |" in text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["--seeds", "0"], "seeds must be at least 1. Got 0."),
        (["--only", "training", "--peer", "nowhere"], "no Python with TransformerLens at nowhere"),
        (["--only", "everything"], "everything"),
    ],
)
def test_a_wrong_call_is_refused_in_one_line(call, message, capsys):
    assert command.run(call) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


# Each group of measures, on something small


def tiny(**changes):
    return run_config("tiny", {"d_model": 24, **changes})


def test_answers_are_measured():
    forced, free = commands.answer_speed(rounds=2, turn=64)
    assert "teacher-forced" in forced.name
    assert "free-running" in free.name
    assert (forced.unit, free.unit) == ("/s", "/s")


def test_steps_are_measured_in_turns_with_a_peer_and_beside_busy_processes(monkeypatch):
    monkeypatch.setattr(training, "TURN", 1)
    heard = []
    turns = training.contestants(lambda: 1.0, heard.append)
    assert all(turn() > 0 for turn in turns.values())
    assert heard == [signal.SIGCONT, signal.SIGSTOP]


def test_threads_of_a_benchmark_sleep_while_they_wait():
    """Torch reads how long to spin when it is loaded: carryscope must have said so before."""
    order = "import sys, benchmarks.training; print(*sys.modules)"
    command = [sys.executable, "-c", order]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert loaded.index("carryscope.core.machine") < loaded.index("torch")


def test_every_row_follows_from_the_steps_and_their_times():
    seconds = {"TransformerLens": 0.25, "paper-5": 0.05, "bare": 0.025, "busy": 0.1, "fast-5": 0.06}
    rows = {row.name: row for row in training.step_rows(seconds)}
    reached = [{0.016: 900.0, 0.009: 1200.0}, {0.016: 1000.0, 0.009: 3000.0}]
    rows |= {row.name: row for row in training.mark_rows(reached, seconds)}
    value = {name: row.value for name, row in rows.items()}
    ours, peer = value[STEP], value[f"{STEP} {ON}"]
    assert value["training steps per second, TransformerLens = 1"] == peer / ours == 5
    assert value["training step, its bare matrix products = 1"] == pytest.approx(2)
    assert value["training step beside 2 busy processes, alone = 1"] == pytest.approx(2)
    for mark, steps, met in (("0.016", 1000, True), ("0.009", 3000, False)):
        name = f"fast-5 to held-out loss {mark}"
        share = rows[f"{name}, 5,000 steps {ON} = 1"]
        assert value[name] == pytest.approx(steps * 0.06)
        assert share.value == pytest.approx(value[name] / (5000 * peer / 1e3))
        assert share.met is met
        took, step = (float(rows[row].text.split()[0]) for row in (name, f"{STEP} {ON}"))
        printed = float(share.text)
        assert printed == pytest.approx(took / (5000 * step / 1e3), rel=0.01), "as a reader divides"


def test_the_steps_to_a_loss_are_counted(monkeypatch):
    monkeypatch.setattr(training, "run_config", lambda preset, changes: tiny(steps=2, **changes))
    monkeypatch.setattr(training, "MARKS", {100.0: "any", 0.0: "never"})
    assert training.steps_to_marks(0) == {100.0: 2, 0.0: float("inf")}


def test_the_cost_of_a_command_is_that_of_a_fresh_process():
    (row,) = commands.command_costs([commands.Command("presets", gigabytes=1.0)])
    assert row.name == "carryscope presets, peak memory"
    assert 0.01 < row.value < 1
    with pytest.raises(WorkError, match="carryscope fly failed: carryscope: There is no command"):
        commands.cost_of("fly")


def test_a_certificate_is_measured_and_its_boxes_are_bounded_by_both_engines_in_turns(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr(certificate, "SAMPLED", 4)
    model = Trainer(tiny(digits=2)).model
    assert certificate.set_up(model).value > 0
    found = certify(model, until=0.1)
    whole, digits = certificate.first_minutes(found, 1.0)
    assert 10 <= whole.value <= 100
    assert 0 < digits.value <= 100
    assert certificate.engines_in_turns(model, found).value > 1


def test_two_workers_are_compared_with_one(monkeypatch):
    clock = iter([0.0, 100.0, 100.0, 150.0, 150.0, 240.0, 240.0, 300.0])
    monkeypatch.setattr("benchmarks.measure.time.perf_counter", lambda: next(clock))
    called = []
    monkeypatch.setattr(commands, "cost_of", lambda words: called.append(words[-1]))
    seed, ratio = commands.sweep_speed(2)
    assert called == ["1", "2", "1", "2"]
    assert (ratio.value, seed.value) == (pytest.approx(95 / 55), 47.5)
