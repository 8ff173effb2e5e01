"""`python -m paper`: the plan, one small draw from training to record, and wrong calls."""

import msgspec
import pytest

from carryscope.core.errors import CallError
from carryscope.core.progress import silent
from carryscope.core.storage import read_json
from carryscope.core.workers import Outcome
from carryscope.run import Run
from carryscope.training.presets import run_config
from paper import __main__ as command
from paper.claims import authors_seed, frozen
from paper.measure import measure
from paper.plan import QUICK_STEPS, Planned, chosen, made, make_draw, minutes, plan
from paper.records import DRAW, DrawRecord, read_records, write_records

SMALL = {"steps": 4, "d_model": 24, "batch": 8}


@pytest.fixture(scope="module")
def small_draw(tmp_path_factory):
    """A draw of a narrow model: what it learns is not the point."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("carryscope.dissection.samples.PER_CLASS", 20)
        patch.setattr("carryscope.dissection.samples.BATCHES", 1)
        patch.setattr("carryscope.training.summary.UNIFORM_QUESTIONS", 50)
        for name in ("paper.draw.QUESTIONS", "paper.estimands.QUESTIONS"):
            patch.setattr(name, 40)
        patch.setattr("paper.estimands.KEY_PAIRS", 60)
        config = run_config("paper-10", SMALL)
        directory = tmp_path_factory.mktemp("runs") / "paper-10-129000"
        yield make_draw(config, directory, 1, silent), directory


def test_a_draw_is_trained_measured_and_kept(small_draw):
    record, directory = small_draw
    assert (record.recipe, record.seed, record.steps) == ("paper-10", 129000, 4)
    asked = {"columns_read", "top_column_lead", "steps_to_learn", "through_all_wrong"}
    assert set(record.numbers) == {*asked, "uniform_right"}
    assert len(record.printed["loss"]) == 4
    assert read_json(directory / DRAW.file, DrawRecord) == record


def test_a_draw_that_is_measured_is_not_measured_again(small_draw, monkeypatch):
    record, directory = small_draw
    monkeypatch.setattr("paper.measure._measured", None)
    assert measure(Run(directory)) == record


def test_a_record_that_lacks_a_number_is_made_again(small_draw, monkeypatch):
    record, directory = small_draw
    poorer = msgspec.structs.replace(record, numbers={})
    (directory / DRAW.file).write_bytes(msgspec.json.encode(poorer))
    monkeypatch.setattr("paper.measure._measured", lambda draw: record)
    assert measure(Run(directory)) == record


def test_the_plan_has_the_authors_draws_first_and_leaves_out_what_is_done(tmp_path):
    runs, results = tmp_path / "runs", tmp_path / "results"
    everything = plan(chosen(None), runs, results, quick=False)
    assert len(everything) == 6 + sum(map(len, frozen().seeds.values()))
    assert [one.seed for one in everything[:6]] == [authors_seed(r) for r in chosen(None)]
    two = plan(["paper-5"], runs, results, quick=False, draws=2)
    assert [one.run.name for one in two] == ["paper-5-129000", "paper-5-201", "paper-5-202"]
    done = DrawRecord(
        package_version="",
        weights_sha256="",
        machine="",
        recipe="paper-5",
        seed=201,
        steps=5000,
        heads=[],
        held_out_loss=0.0,
        numbers={},
    )
    write_records([done], results)
    left = plan(["paper-5"], runs, results, quick=False, draws=2)
    assert [one.seed for one in left] == [129000, 202]
    assert made(left) == []


def test_a_quick_plan_is_short(tmp_path):
    planned = plan(chosen(None), tmp_path, tmp_path / "results", quick=True)
    assert [one.config.training.steps for one in planned] == [QUICK_STEPS] * 6


def test_minutes_count_only_steps_that_are_left(small_draw, monkeypatch):
    monkeypatch.setattr("paper.plan._step_seconds", lambda recipe: 6.0)
    monkeypatch.setattr("paper.plan.MEASURING", 0)
    config = run_config("paper-10", SMALL)
    _, directory = small_draw
    assert minutes(Planned("paper-10", 129000, config, directory)) == 0
    fresh = Planned("paper-10", 201, config, directory.parent / "fresh")
    assert minutes(fresh) == pytest.approx(0.4)


def test_recipes_are_chosen_by_name():
    assert chosen("paper-10, paper-5") == ["paper-5", "paper-10"]
    with pytest.raises(CallError, match="only must name some of paper-5, .* Got 'paper-6'"):
        chosen("paper-5,paper-6")


def test_a_wrong_call_is_one_line(capsys):
    assert command.run(["--only", "paper-6"]) == 2
    assert capsys.readouterr().err.startswith("paper: only must name some of paper-5")
    assert command.run(["--speed", "9"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_call_shows_its_plan_keeps_what_was_made_and_writes_the_page(
    tmp_path, capsys, monkeypatch, small_draw
):
    record, directory = small_draw
    planned = Planned("paper-10", 129000, run_config("paper-10", SMALL), directory)
    monkeypatch.setattr("paper.plan.plan", lambda *_, **__: [planned])
    monkeypatch.setattr("paper.plan._step_seconds", lambda recipe: 6.0)
    monkeypatch.setattr("paper.plan.make", lambda *_, **__: Outcome(failed={"b": "Disk full."}))
    out = tmp_path / "out"
    call = ["--only", "paper-10", "--runs", str(directory.parent), "--out", str(out)]
    assert command.run(call) == 1
    told = capsys.readouterr()
    assert "129000" in told.err
    assert told.err.endswith("paper: b failed: Disk full.\n")
    assert "on 0 of 62 planned draws" in told.out
    assert read_records(out) == [record]
    page = (out / "README.md").read_text()
    assert "A smoke test" in page
    assert (out / "strips" / "three-columns-longer.svg").exists()
