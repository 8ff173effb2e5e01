"""The command line as a user meets it: what it prints, and how it ends."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from carryscope.cli.main import COMMANDS, run
from carryscope.model.transformer_lens import read_state_dict, write_state_dict
from carryscope.run import Run
from carryscope.training.presets import PRESETS, preset, run_config

CARRYSCOPE = [sys.executable, "-m", "carryscope"]


def test_help_answers_in_under_half_a_second_of_processor_time():
    seconds, printed = processor_time([*CARRYSCOPE, "--help"])
    assert seconds < 0.5
    assert all(name in printed for name in COMMANDS)


def test_ask_answers_in_a_second_and_a_half_of_processor_time():
    seconds, printed = processor_time([*CARRYSCOPE, "ask", "445+555", "--csv"])
    assert seconds < 1.5
    assert printed.splitlines()[1].startswith("445+555,")


def processor_time(command: list[str]) -> tuple[float, str]:
    """The least of three calls, because other work on the machine can only add to it."""
    taken = []
    for _ in range(3):
        before = os.times()
        ended = subprocess.run(command, check=True, capture_output=True, text=True)
        after = os.times()
        spent = after.children_user - before.children_user
        taken.append(spent + after.children_system - before.children_system)
    return min(taken), ended.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command, capsys):
    assert run([command, "--help"]) == 0
    told = capsys.readouterr().out
    assert "--json" in told
    assert COMMANDS[command][1].split(":")[0][:20] in told


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["ask", ""], 2, "Type a sum such as 445+555"),
        (["ask", "12x+5"], 2, "only digits and one '+'. Got 'x'"),
        (["ask", "-5+3"], 2, "minus sign in '-5+3'"),
        (["ask", "5-3"], 2, "minus sign in '5-3'"),
        (["ask", "123456+1"], 2, "at most 5 digits. Got 123456"),
        (["ask", "1+1", "--loud"], 2, "There is no option --loud"),
        (["ask", "fast-5"], 2, 'optionally after a run: carryscope ask fast-5 "445+555".'),
        (["ask", "."], 2, 'optionally after a run: carryscope ask . "445+555".'),
        (["ask", "abc"], 2, "No run at abc"),
        (["ask", "--file", "nothing.txt"], 2, "Cannot read nothing.txt"),
        (["ask", "1+1", "--without", "H9"], 2, "H9"),
        (["train", "--out", "x", "--heads", "1000"], 2, "heads must be at most 512"),
        (["train", "--out", "x", "--checkpoint-every", "-1"], 2, "must be at least 0. Got -1"),
        (["ask"], 2, 'Type a sum, optionally after a run: carryscope ask "445+555".'),
        (["ask", "1", "+", "1"], 2, 'Put each sum in quotes: carryscope ask "445+555".'),
        (["ask", "nowhere", "1+1"], 2, "No run at nowhere"),
        (["sites", "nowhere"], 2, "No run at nowhere"),
        (["dissect", "nowhere"], 2, "No run at nowhere"),
        (["dissect"], 2, "dissect needs RUN. See carryscope dissect --help."),
        (["presets", "foo"], 2, "presets takes no foo. See carryscope presets --help."),
        (["export", "nowhere"], 2, "No run at nowhere"),
        (["import", "nothing.pth", "--out", "x"], 2, "Cannot read nothing.pth"),
        (["train"], 2, "train needs --out. See carryscope train --help."),
        (["train", "--out"], 2, "train needs --out. See carryscope train --help."),
        (["train", "--colour", "red"], 2, "train needs --out and has no --colour."),
        (["train", "--out", "x", "--preset", "slow"], 2, "preset must be one of fast-5"),
        (["train", "--out", "x", "--heads", "7", "--d-model", "510"], 2, "heads must divide"),
        (["train", "--out", "x", "--heads", "many"], 2, "many"),
        (["train", "--out", "x", "--colour", "red"], 2, "--colour"),
        (["train", "--out", "x", "--steps", "0"], 2, "steps must be at least 1. Got 0."),
        (["train", "--out", "x", "--format", "reversed"], 2, "reversed"),
        (["train", "--out", "x", "--seed", "99999999999"], 2, "seed must be at most"),
        (["fly"], 2, "There is no command 'fly'. The commands are study, train, ask,"),
    ],
)
def test_a_wrong_call_gets_one_clear_line(arguments, code, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == code
    told = capsys.readouterr().err
    assert told.startswith("carryscope: ")
    assert told.count("\n") == 1
    assert message in told
    assert not list(tmp_path.iterdir())


def test_ask_answers_from_the_shipped_model_digit_by_digit(capsys):
    assert run(["ask", "445+555", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["question"], told["truth"]) == ("445+555", "001000")
    assert told["correct"] == (told["answer"] == told["truth"])
    assert [digit["name"] for digit in told["digits"]] == ["A5", "A4", "A3", "A2", "A1", "A0"]
    assert [digit["task"] for digit in told["digits"]] == ["BA", "BA", "UC1", "US9", "US9", "BA"]
    assert [digit["look_ahead"] for digit in told["digits"]] == [0, 0, 2, 1, 0, 0]
    assert "".join(digit["predicted"] for digit in told["digits"]) == told["answer"]
    assert all(0 < digit["probability"] <= 1 for digit in told["digits"])
    assert all(len(digit["attention"]) == 3 for digit in told["digits"])


@pytest.mark.parametrize("question", ["0+0", "12345+54321", "25+79", "99999+99999"])
def test_the_shipped_model_adds(question, capsys):
    assert run(["ask", question, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["correct"]


def test_ask_shows_a_person_where_each_head_looks(capsys, tiny_run):
    assert run(["ask", str(tiny_run), "45+55"]) == 0
    shown = capsys.readouterr().out
    assert "H0 reads" in shown
    assert "a carry through one nine" in shown


def test_ask_takes_several_sums_a_file_and_standard_input(capsys, tmp_path, monkeypatch):
    (tmp_path / "sums.txt").write_text("25+79\n\n 12345 + 54321\n")
    assert run(["ask", "0+0", "--file", str(tmp_path / "sums.txt"), "--csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "question,answer,truth,correct"
    assert [line.split(",")[0] for line in lines[1:]] == ["0+0", "25+79", "12345+54321"]
    monkeypatch.setattr("sys.stdin", io.StringIO("1+2\n3+4\n"))
    assert run(["ask", "fast-5", "-", "--json"]) == 0
    assert [one["truth"] for one in json.loads(capsys.readouterr().out)] == ["000003", "000007"]
    assert run(["ask", "1+2", "445+555"]) == 0
    shown = capsys.readouterr().out
    assert "1+2" in shown
    assert "445+555" in shown


def test_help_works_as_a_command(capsys):
    assert run(["help"]) == 0
    assert "certify" in capsys.readouterr().out
    assert run(["help", "risk"]) == 0
    assert "--budget" in capsys.readouterr().out


def test_presets_can_be_read_by_people_and_machines(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["presets"]) == 0
    shown = capsys.readouterr().out
    assert "paper-5-heads-4" in shown
    assert "minutes" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert run(["presets", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tiny"]["model"]["digits"] == 2


def test_sites_lists_what_can_be_read_or_changed(capsys, tiny_run):
    assert run(["sites", str(tiny_run)]) == 0
    assert "blocks.0.attn.hook_pattern" in capsys.readouterr().out
    assert run(["sites", str(tiny_run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "hook_embed"


def test_train_makes_a_run_and_goes_on_with_it_without_being_told_the_recipe(capsys, tmp_path):
    where = str(tmp_path / "run")
    quick = ["--steps", "20", "--d-model", "24", "--threads", "1"]
    assert run(["train", "--preset", "tiny", *quick, "--out", where, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 20
    assert run(["train", "--out", where]) == 0
    assert where in capsys.readouterr().out.replace("\n", "")
    assert run(["train", "--out", where, "--seed", "8"]) == 2
    assert "training.seed is 0, asked for 8" in capsys.readouterr().err


def test_training_without_a_terminal_logs(capsys, tmp_path):
    where = str(tmp_path / "a [b] run")
    quick = ["--steps", "60", "--d-model", "24", "--threads", "1"]
    assert run(["train", "--preset", "tiny", *quick, "--out", where]) == 0
    told = capsys.readouterr()
    assert "After 60 steps" in told.out
    assert told.out.endswith(f"{where}\n")
    assert "step 60/60 loss" in told.err


def test_an_imported_model_can_be_asked_and_exported_but_not_trained(capsys, tmp_path, tiny_run):
    write_state_dict(Run(tiny_run).model(), tmp_path / "model.pth")
    where = str(tmp_path / "run")
    assert run(["import", str(tmp_path / "model.pth"), "--out", where]) == 0
    assert "Imported: 2 digits, 1 layer, 2 heads." in capsys.readouterr().out
    assert run(["ask", where, "1+2", "--json"]) == 0
    capsys.readouterr()
    assert run(["export", where, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["config"]["n_heads"] == 2
    assert read_state_dict(Path(told["path"])).config == Run(tiny_run).model().config
    assert run(["train", "--out", where]) == 2
    assert "was imported" in capsys.readouterr().err
    assert run(["import", str(tmp_path / "model.pth"), "--out", where]) == 2
    assert "There is a run at" in capsys.readouterr().err


def test_study_ends_with_the_verdict_and_a_link_to_the_report(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quick = preset("tiny")._replace(
        training=run_config("tiny", {"steps": 20}).training,
        model=run_config("tiny", {"d_model": 24}).model,
    )
    monkeypatch.setitem(PRESETS, "tiny", quick)
    monkeypatch.setattr("carryscope.api.PROOF_MINUTES", 0.05)
    assert run(["study", "--preset", "tiny", "--threads", "1"]) == 0
    told, remarks = capsys.readouterr()
    assert told.startswith("Right in ")
    assert "carryscope ask runs/study" in told
    page = (tmp_path / "runs/study/report.html").as_uri()
    assert told.splitlines()[-1] == page
    assert Path("runs/study/report.html").exists()
    assert "certify" in remarks
    assert run(["study", "--verbose"]) == 0
    told, remarks = capsys.readouterr()
    assert "What each node carries" in told
    assert "certify" not in remarks, "what is proved is not proved again"
    assert run(["study", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["training"]["steps"] == 20
    assert told["dissection"]["subtasks"]["pairs"] == 2000
    assert told["risk"]["evaluated"] == 10_000
    assert told["faithfulness"]["verdict"]
    assert told["certificate"]["questions"] == "10000"
    assert "log" not in told["certificate"]
    assert told["report"] == page


def test_dissect_shows_what_each_node_carries_and_ends_with_the_path(capsys, tiny_run):
    assert run(["dissect", str(tiny_run), "--only", "nodes,subtasks", "--threads", "1"]) == 0
    told = capsys.readouterr()
    assert "What each node carries" in told.out
    assert told.out.rstrip().endswith("dissection.json")
    assert "nodes: " in told.err
    assert run(["dissect", str(tiny_run), "--only", "nodes", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["nodes"]["how"] == "mean"
    assert "nodes" not in told.err, "what is there is not made again"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "legs"], "has the parts attention, edges"),
        (["--threads", "0"], "threads must be at least 1. Got 0."),
        (["--seed", "-1"], "seed must be at least 0. Got -1."),
    ],
)
def test_dissect_refuses_what_makes_no_sense(options, message, capsys, tiny_run):
    assert run(["dissect", str(tiny_run), *options]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1


def test_risk_ends_in_a_verdict_and_is_not_measured_twice(capsys, tiny_run):
    assert run(["risk", str(tiny_run), "--threads", "1"]) == 0
    told = capsys.readouterr()
    words = " ".join(told.out.split())
    assert "of all 10,000 questions get a wrong answer" in words
    assert "all were tested" in words
    assert told.out.rstrip().endswith("risk.json")
    assert run(["risk", str(tiny_run), "--json"]) == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert found["questions"] == "10000"
    assert set(found["teacher_forced"]) == {"estimate", "low", "high"}
    assert {"digits", "strata", "cases", "evaluated"} <= set(found)
    assert told.err == "", "what is known is not measured again"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--width", "-1"], "width must be between 0 and 2. Got -1.0."),
        (["--budget", "-5"], "budget must be at least 1. Got -5."),
        (["--seed", "-1"], "seed must be at least 0. Got -1."),
    ],
)
def test_risk_refuses_what_makes_no_sense(options, message, capsys, tiny_run):
    assert run(["risk", str(tiny_run), "--again", *options]) == 2
    assert message in capsys.readouterr().err


def test_figures_writes_those_that_the_findings_allow(capsys, tiny_run, tmp_path):
    assert run(["dissect", str(tiny_run), "--only", "attention", "--threads", "1"]) == 0
    capsys.readouterr()
    assert run(["figures", str(tiny_run), "--only", "staircase", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "staircase.svg").read_text().startswith("<svg")
    assert run(["figures", str(tiny_run), "--only", "edges", "--out", str(tmp_path)]) == 2
    assert "carryscope dissect" in capsys.readouterr().err
    assert run(["figures", str(tiny_run), "--only", "moon", "--out", str(tmp_path)]) == 2
    assert "moon" in capsys.readouterr().err


def test_faithful_compares_and_takes_an_algorithm_of_ones_own(capsys, tiny_run, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\n"
        "def no_carries(columns):\n"
        "    return np.pad(columns.sums % 10, ((0, 0), (0, 1)))\n"
    )
    assert run(["faithful", str(tiny_run), "--algorithm", f"{file}:no_carries"]) == 0
    told = capsys.readouterr().out
    assert "no_carries" in told
    assert told.rstrip().endswith("faithfulness.json")
    assert run(["faithful", str(tiny_run), "--json"]) == 0
    names = [a["name"] for a in json.loads(capsys.readouterr().out)["agreement"]["algorithms"]]
    assert "no_carries" not in names
    assert run(["faithful", str(tiny_run), "--json"]) == 0
    assert capsys.readouterr().err == "", "what is known is not compared again"
    assert run(["faithful", str(tiny_run), "--algorithm", f"{file}:all_carries"]) == 2
    assert "has no function 'all_carries'. It has: no_carries" in capsys.readouterr().err
