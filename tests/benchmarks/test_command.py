"""The command, with every benchmark cut to a few seconds."""

import json

import pytest
import torch

import carryscope
from benchmarks import __main__ as command
from benchmarks import certificate, dissection, risk, sweep, training
from benchmarks.measure import Cost, Measure
from carryscope.model.config import ModelConfig
from carryscope.model.transformer import Transformer, initialise
from carryscope.training.presets import run_config
from carryscope.training.trainer import Trainer

FOUND = [
    Measure(name="step", value=4.61, unit="x", at_least=4, how="20 turns"),
    Measure(name="memory", value=1.2, unit="GB", at_most=1, how="a fresh process"),
    Measure(name="boxes", value=4500.0, low=4050.0, high=4950.0, how="sampled"),
]


@pytest.fixture
def found(monkeypatch):
    """A command that measures nothing."""
    monkeypatch.setattr(command, "measures", lambda group, **settings: iter(FOUND))


def test_the_table_says_what_was_met(found, capsys):
    assert command.run(["--only", "risk"]) == 0
    printed = capsys.readouterr()
    assert "4.61 x" in printed.out
    assert "NO" in printed.out
    assert "boxes: 4,500 (4,050 to 4,950)" in printed.err


def test_the_page_has_the_table_and_the_command(found, tmp_path, monkeypatch, capsys):
    page = tmp_path / "speed.md"
    monkeypatch.setattr(command.sys, "argv", ["__main__.py", "--only", "risk"])
    assert command.run(["--only", "risk", "--out", str(page)]) == 0
    text = page.read_text()
    assert "`python -m benchmarks --only risk`" in text
    assert "| step | 4.61 x | at least 4 | yes | 20 turns |" in text
    assert "| memory | 1.2 GB | at most 1 | NO | a fresh process |" in text
    assert "| boxes | 4,500 (4,050 to 4,950) |  |  | sampled |" in text


def test_json_has_every_field(found, capsys):
    assert command.run(["--only", "sweep", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[0] == {**rows[0], "name": "step", "value": 4.61, "at_least": 4, "low": None}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["--rounds", "0"], "seeds and rounds must be at least 1. Got 3 and 0."),
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


def test_answers_and_risk_are_measured():
    model = Trainer(tiny(digits=1)).model
    forced, free, ratio = risk.answer_speed(model, rounds=2, turn=64)
    assert (forced.unit, free.unit, ratio.unit) == ("/s", "/s", "x")
    seconds, needed = risk.risk_cost(model, width=0.5)
    assert seconds.name == "risk to 50% relative width"
    assert needed.value == 0, "one digit is few enough to ask all questions"


def test_steps_are_measured_in_turns_with_a_peer(monkeypatch):
    monkeypatch.setattr(training, "TURN", 1)
    seconds = training.step_seconds(lambda: 1.0, 1)
    assert seconds["TransformerLens"] == 1.0
    assert min(seconds.values()) > 0
    rows = list(training.step_rows({**seconds, "carryscope": 0.2, "bare": 0.1}, "in turns"))
    assert [(row.value, row.met) for row in rows[:2]] == [(5.0, True), (2.0, False)]


def test_the_time_to_a_loss_is_that_of_the_worst_seed(monkeypatch):
    rows = list(training.mark_rows([{0.016: 50.0, 0.009: 70.0}, {0.016: 60.0, 0.009: 130.0}], 1e3))
    assert [row.value for row in rows] == pytest.approx([0.06, 55, 0.13, 100])
    assert [row.met for row in rows] == [True, None, False, None]
    monkeypatch.setattr(training, "run_config", lambda preset, changes: tiny(steps=2, **changes))
    monkeypatch.setattr(training, "MARKS", {100.0: "any", 0.0: "never"})
    reached = training.seconds_to_marks(0)
    assert 0 < reached[100.0] < reached[0.0] == float("inf")


def test_memory_is_that_of_a_training_in_a_fresh_process(monkeypatch):
    def cost_here(module, function, preset):
        assert module == training.__name__
        getattr(training, function)("tiny", "1")
        return Cost(9.0, {"paper-5": 0.5, "paper-15": 2.5}[preset])

    monkeypatch.setattr(training, "cost_of", cost_here)
    assert [(row.value, row.met) for row in training.training_memory()] == [
        (0.5, True),
        (2.5, False),
    ]


def test_the_untrained_model_is_not_the_control_of_its_own_dissection():
    from carryscope.dissection.rows import UNTRAINED_SEED

    config = ModelConfig(digits=2, d_model=24)
    control = initialise(Transformer(config), torch.Generator().manual_seed(UNTRAINED_SEED))
    assert not torch.equal(dissection.untrained(config).embed.W_E, control.embed.W_E)


def test_the_first_seconds_of_a_certificate_are_measured():
    speed, decided = certificate.first_minute(Trainer(tiny(digits=1)).model, minutes=0.02)
    assert speed.value > 0
    assert 0 <= decided.value <= 100


def test_the_boxes_of_missing_models_are_counted_after_training_them(tmp_path, monkeypatch):
    monkeypatch.setattr(certificate, "recipe", lambda digits: tiny(digits=digits, steps=2))
    model = certificate.trained(tmp_path, 2)
    assert carryscope.load(tmp_path / "fast-2").config.model.digits == 2
    boxes, decided = certificate.box_rows(model, small=0.1)
    assert boxes.name == "boxes at 2 digits"
    assert boxes.low <= boxes.value <= boxes.high
    assert 0 <= decided.value <= 100


def test_the_five_digit_model_is_the_shipped_one(tmp_path):
    shipped = carryscope.load().config
    assert certificate.recipe(5).training == shipped.training
    assert certificate.recipe(5).model == shipped.model
    assert certificate.trained(tmp_path, 5).config == shipped.model
    assert not list(tmp_path.iterdir())


def test_two_workers_are_compared_with_one(monkeypatch):
    clock = iter([0.0, 100.0, 100.0, 150.0, 150.0, 240.0, 240.0, 300.0])
    monkeypatch.setattr("benchmarks.measure.time.perf_counter", lambda: next(clock))
    called = []
    monkeypatch.setattr(sweep, "run_sweep", lambda workers, recipe: called.append(workers))
    ratio, seed = sweep.sweep_speed(2)
    assert called == [1, 2, 1, 2]
    assert (ratio.value, seed.value) == (pytest.approx(95 / 55), 47.5)
