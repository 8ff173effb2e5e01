import json
from pathlib import Path

import pytest
import torch

from benchmarks import certificate
from benchmarks.boxes import Boxes, RowBoxes, count_boxes
from benchmarks.certificate_figure import ROW, TOTAL, boxes_by_digits
from carryscope.cli.main import run
from carryscope.core.evidence import Mean
from carryscope.stages import SHIPPED, Run
from carryscope.training.presets import run_config
from carryscope.training.trainer import Trainer


def mean(estimate: float) -> Mean:
    return Mean(estimate, 16, 0.9 * estimate, 1.1 * estimate)


def boxes(digits: int, *counts: float, decided: float = 0.97) -> Boxes:
    """An estimate with so many boxes for each answer digit, the highest first."""
    names = [f"A{digits - i}" for i in range(len(counts))]
    rows = [
        RowBoxes(digit=name, settled=9, boxes=mean(count), decided=Mean(decided, 16, 0.9, 1.0))
        for name, count in zip(names, counts, strict=True)
    ]
    total = mean(sum(counts))
    return Boxes(digits=digits, small=1e-7, rows=rows, total=total, looked_at=99)


FOUND = [boxes(3, 400.0, 700.0, 2500.0, 900.0), boxes(5, 1e5, 2e5, 3e6, 100.0, 5e3, 9e4)]


def test_every_row_has_its_interval_and_no_target():
    rows = certificate.box_rows(FOUND)
    assert len(rows) == 2 * (4 + 1) + 2 * (6 + 1)
    assert all(row.target is None and row.met is None for row in rows)
    assert rows[0].name == "boxes at 3 digits, down to 1e-07 of all questions, in all"
    assert (rows[0].value, rows[0].low, rows[0].high) == pytest.approx((4500, 4050, 4950))
    assert (rows[1].name, rows[1].value) == (
        "share decided at 3 digits, mean of the answer digits",
        pytest.approx(0.97),
    )
    assert [row.name for row in rows[2:4]] == [
        "boxes for A3 of 3 digits",
        "share decided for A3 of 3 digits",
    ]


def test_a_box_is_timed_in_turns_with_questions_on_one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        ratio, box, question = certificate.box_speed(Trainer(tiny()).model, 2, small=0.01)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert ratio.value == pytest.approx(box.value / question.value)
    assert (ratio.unit, box.unit, question.unit) == ("x", "ms", "ms")
    assert box.value > 0
    assert question.value > 0


def tiny(**changes):
    return run_config("tiny", {"d_model": 24, **changes})


def test_the_models_follow_one_recipe_and_the_five_digit_one_is_shipped(tmp_path):
    assert certificate.recipe(5).training == Run().config.training
    assert certificate.recipe(5).model == Run().config.model
    assert certificate.recipe(10).training == Run().config.training
    assert certificate.recipe(10).model.digits == 10
    assert certificate.model_directory(tmp_path, 5) == SHIPPED
    assert certificate.model_directory(tmp_path, 7) == tmp_path / "fast-7"


def test_the_figure_shows_totals_with_intervals_and_every_answer_digit():
    figure = boxes_by_digits(FOUND)
    lines = figure.csv().splitlines()
    assert lines[0] == "what,digits,answer digit,boxes,low,high,decided"
    assert f'"{TOTAL}",3,all,4500,4050,4950,0.97' in lines
    assert f"{ROW},5,A3,3000000,2700000,3300000,0.97" in lines
    assert len(lines) == 1 + 2 + 4 + 6
    assert "At 3 digits 4,500 (4,050 to 4,950) boxes in all: A3 400, A2 700" in figure.description
    assert "97.0 % decided" in figure.svg()


def test_the_figure_never_says_that_a_sample_is_decided_entirely():
    drawn = boxes_by_digits([boxes(1, 10.0, 20.0, decided=1.0)]).svg()
    assert "over 99.9 % decided" in drawn


def test_a_figure_of_nothing_is_refused():
    with pytest.raises(ValueError, match="Got no estimates"):
        boxes_by_digits([])


def test_the_command_trains_what_is_missing_counts_and_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(certificate, "DIGITS", (2, 5))
    monkeypatch.setattr(certificate, "recipe", lambda digits: tiny(digits=digits, steps=2))
    monkeypatch.setattr(
        certificate,
        "box_speed",
        lambda model, rounds: [certificate.Measure(name="time", value=float(rounds), unit="ms")],
    )
    monkeypatch.setattr(
        "benchmarks.boxes.count_boxes",
        lambda model, **settings: count_boxes(model, small=0.3, repeats=2, most=2, **settings),
    )
    call = ["bench", "--only", "certificate", "--models", str(tmp_path), "--rounds", "3"]
    assert run([*call, "--out", str(tmp_path / "cost.svg"), "--json"]) == 0
    printed = capsys.readouterr()
    rows = json.loads(printed.out)
    assert rows[0] == {**rows[0], "name": "time", "value": 3.0, "low": None}
    assert {row["name"] for row in rows} >= {"boxes for A2 of 2 digits", "boxes for A5 of 5 digits"}
    assert (tmp_path / "fast-2" / "model.safetensors").exists()
    assert "<svg" in (tmp_path / "cost.svg").read_text()
    assert "training" in printed.err
    assert run(call) == 0
    again = capsys.readouterr()
    assert "training" not in again.err
    assert "boxes for A2 of 2 digits" in " ".join(again.out.split())


def test_a_model_of_another_recipe_is_not_taken_for_ours(tmp_path, capsys):
    Path(tmp_path / "fast-3").mkdir()
    other = (SHIPPED / "config.json").read_bytes()
    Path(tmp_path / "fast-3" / "config.json").write_bytes(other)
    assert run(["bench", "--only", "certificate", "--models", str(tmp_path)]) == 2
    assert "is none of fast-5 for 3 digits: model.digits is 5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["--only", "certificate", "--out", "cost.txt"], "saved as .svg, .png or .pdf"),
        (["--only", "risk", "--out", "cost.svg"], "--out is for the figure of the certificate"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_refused_before_any_work(call, message, capsys):
    assert run(["bench", *call]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
