"""Repair: what is missing is found, the copy is mended, and nothing is lost on the way."""

import shutil

import msgspec
import numpy as np
import pytest
from built_adder import built_adder
from watching import Watched

import carryscope as cs
from carryscope import repairing
from carryscope.cli.main import run as call
from carryscope.core.errors import CallError
from carryscope.core.progress import Stopped
from carryscope.core.storage import read_json, write_json
from carryscope.dissection.attention import study_attention
from carryscope.dissection.engine import Engine
from carryscope.dissection.samples import Samples
from carryscope.repairing import REPAIR, failing_patterns, repair
from carryscope.report.findings import parts_of
from carryscope.stages import RISK
from carryscope.task.columns import Columns
from carryscope.task.sampling import with_patterns
from carryscope.training.config import RunConfig
from carryscope.verification.before_after import BlindDigit, blind_digits, blind_words

ONE_HEAD = {"heads": 1, "d_model": 48, "steps": 300, "seed": 1}
"""Two digits and one head: it cannot read both columns."""


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """A trained run that fails, because one head cannot read two columns."""
    return cs.train(tmp_path_factory.mktemp("runs") / "one-head", "tiny", **ONE_HEAD)


def shortened(patch, **changes):
    """A repair whose rounds are short."""
    patch.setattr(repairing, "RECIPE", msgspec.structs.replace(repairing.RECIPE, **changes))


@pytest.fixture(scope="module")
def repaired(failing, tmp_path_factory):
    """The same run, repaired."""
    out = tmp_path_factory.mktemp("runs") / "repaired"
    files = {path: path.read_bytes() for path in failing.directory.rglob("*") if path.is_file()}
    with pytest.MonkeyPatch.context() as patch:
        shortened(patch, steps=900)
        found = repair(failing, out, minutes=5.0, threads=1)
    assert files == {p: p.read_bytes() for p in failing.directory.rglob("*") if p.is_file()}
    return out, found


def read_of(model):
    samples = Samples(model.config.digits, 0)
    return study_attention(Engine(model, samples.varied), samples)


def test_a_model_that_lacks_a_head_gets_it_and_is_proved_right_on_every_question(repaired):
    out, found = repaired
    before, after = found.rounds[0], found.rounds[-1]
    assert before.heads == 1
    assert before.wrong.estimate > 0.02
    assert after.heads == 2
    assert after.wrong.high == 0
    assert found.proved_right == found.questions == "10000"
    assert "All 10,000 questions are proved right." in found.statement
    run = cs.load(out)
    assert run.model().config.heads == 2
    assert run.ask("99+1").answer == "100"
    assert run.read(REPAIR).found == found


def test_it_says_which_column_no_head_reads(repaired):
    _, found = repaired
    assert found.rounds[0].blind
    assert all(one.columns for one in found.rounds[0].blind)
    assert "no head reads column" in found.statement
    assert not found.rounds[-1].blind


def test_a_repair_that_is_called_again_trains_nothing(repaired, failing, monkeypatch):
    shortened(monkeypatch, steps=900)
    out, found = repaired
    watched = Watched()
    again = repair(failing, out, minutes=5.0, threads=1, progress=watched)
    assert "training" not in [name for name, *_ in watched.begun]
    assert again.rounds == found.rounds


def test_a_stopped_repair_continues_to_the_same_weights(failing, tmp_path, monkeypatch):
    shortened(monkeypatch, steps=20)
    monkeypatch.setattr(repairing, "MOST_ROUNDS", 1)
    whole = repair(failing, tmp_path / "whole", minutes=5.0, threads=1)
    with pytest.raises(Stopped, match="the same training continues from it"):
        repair(failing, tmp_path / "parts", minutes=5.0, threads=1, progress=Watched(stop_after=12))
    again = repair(failing, tmp_path / "parts", minutes=5.0, threads=1)
    assert again.weights_sha256 == whole.weights_sha256
    assert "0 are proved right and 0 proved wrong; 10,000 are undecided." in again.statement


def test_when_the_time_is_up_the_same_command_continues(failing, tmp_path, capsys):
    arguments = ["repair", str(failing.directory), "--out", str(tmp_path), "--minutes", "0.0001"]
    assert call(arguments) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "of all 10,000 questions get a wrong answer" in said, "what is left is said"
    assert "The time is up. The same command with more minutes continues." in said
    assert cs.load(tmp_path).weights_sha256 == failing.weights_sha256


def test_a_model_that_does_not_fail_is_not_trained(repaired, tmp_path):
    out, _ = repaired
    found = repair(cs.load(out), tmp_path / "again", minutes=5.0, threads=1)
    assert len(found.rounds) == 1
    assert found.statement.startswith("Nothing was trained: All 10,000 questions were tested")


def test_the_next_round_trains_on_the_patterns_that_fail(failing, tmp_path):
    shutil.copytree(failing.directory, tmp_path / "run")
    patterns = failing_patterns(cs.load(tmp_path / "run"))
    assert set(patterns) <= {a + b for a in "KPG" for b in "KPG"}
    drawn = with_patterns(np.random.default_rng(0), 400, ["KPG*G"])
    states = Columns.of(drawn).state
    assert (states[:, [4, 3, 2, 0]] == [0, 1, 2, 2]).all()
    assert set(states[:, 1]) == {0, 1, 2}


def test_the_finding_shows_itself(repaired):
    _, found = repaired
    statement, rounds, depths = parts_of(found)
    assert statement.text == found.statement
    assert [row[1] for row in rounds.rows] == [str(one.heads) for one in found.rounds]
    assert all(row[-1] == "0%" for row in depths.rows)
    assert "proved right" in found._repr_html_()


def test_blind_columns_are_those_below_a_digit_that_no_head_reads():
    model = built_adder(digits=5, reach=1)
    found = blind_digits(read_of(model), model.config.layout)
    columns = {one.digit: one.columns for one in found}
    assert columns == {"A5": [3, 2, 1, 0], "A4": [2, 1, 0], "A3": [1, 0], "A2": [0]}
    words = blind_words(
        [BlindDigit(digit="A3", columns=[1, 0]), BlindDigit(digit="A2", columns=[0])]
    )
    assert words == "To write A3 no head reads columns 1 and 0. To write A2 no head reads column 0."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"minutes": 0.0}, "minutes must be above 0. Got 0.0."),
        ({"out": "."}, "A repair works on a copy outside the run. Choose another --out."),
        ({"layers": 2}, "A repair is for models of 1 layer"),
        ({"other": True}, "holds the repair of another model"),
        ({"taken": True}, "is not empty"),
    ],
)
def test_what_cannot_be_repaired_is_refused_in_one_line(failing, tmp_path, change, message):
    source, out = failing, tmp_path / "out"
    if "layers" in change:
        source = cs.train(tmp_path / "deep", "tiny", layers=2, d_model=16, steps=1)
    if "other" in change:
        other = cs.train(tmp_path / "other", "tiny", d_model=16, steps=1)
        shutil.copytree(other.directory, out / "rounds" / "0")
    if "taken" in change:
        out.mkdir()
        (out / "thesis.txt").write_text("mine")
    if "out" in change:
        out = source.directory
    with pytest.raises(CallError, match=message):
        repair(source, out, minutes=change.get("minutes", 5.0), threads=1)


def test_a_risk_of_other_weights_is_measured_again(failing, tmp_path):
    true = failing.risk()
    shutil.copytree(failing.directory, tmp_path / "run")
    lie = msgspec.structs.replace(true, weights_sha256="0" * 64, evaluated=1)
    write_json(tmp_path / "run" / RISK.file, lie)
    found = repair(cs.load(tmp_path / "run"), tmp_path / "out", minutes=0.0001, threads=1)
    assert found.rounds[0].evaluated == true.evaluated
    assert found.rounds[0].wrong == true.teacher_forced


def test_an_imported_model_is_repaired_without_a_recipe(failing, tmp_path):
    shutil.copytree(failing.directory, tmp_path / "imported")
    path = tmp_path / "imported" / "config.json"
    config = msgspec.structs.replace(read_json(path, RunConfig), training=None, preset=None)
    path.write_bytes(msgspec.json.encode(config))
    with pytest.raises(Stopped):
        repair(cs.load(tmp_path / "imported"), tmp_path / "out", progress=Watched(stop_after=12))
    assert read_json(tmp_path / "out/rounds/1/config.json", RunConfig).model.heads == 2
