"""`python -m paper`: the plan, one small draw from training to record, and wrong calls."""

from functools import partial

import pytest

from carryscope.core.errors import CallError, WorkError
from carryscope.core.progress import silent
from carryscope.core.storage import read_json, write_bytes
from carryscope.training.presets import preset, run_config
from paper import __main__ as command
from paper.claims import authors_seed, frozen
from paper.plan import QUICK_STEPS, STUDY, chosen, make_draw, minutes, plan
from paper.study import Study, write_record

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


def test_a_draw_is_trained_and_measured(small_draw):
    record, _ = small_draw
    assert (record.recipe, record.seed, record.steps) == ("paper-10", 129000, 4)
    asked = {"columns_read", "top_column_lead", "steps_to_learn", "through_all_wrong"}
    assert set(record.numbers) == {*asked, "uniform_right"}
    assert len(record.printed["loss"]) == 4


def writes(text, directory, threads, progress):
    """A job that leaves a file in its run."""
    assert threads == 1
    write_bytes(directory / "made", text.encode())
    return {"text": text, "third": 1 / 3}


def fails(directory, threads, progress):
    raise WorkError("Disk full.")


def study(*rounds):
    """A study of these jobs; its page counts the records."""
    return Study("tried", dict, lambda records: {"page.md": str(len(records))}, lambda _: rounds)


def test_a_study_keeps_a_short_record_of_each_run_and_makes_none_twice(tmp_path):
    runs, results, records = tmp_path / "runs", tmp_path, tmp_path / "tried"
    jobs = {"a/1": partial(writes, "one"), "b": partial(writes, "two")}
    write_record(records / "b.json", {"text": "done before"})
    tried = study(jobs)
    assert tried.left(jobs, results) == [("a/1", records / "a/1.json")]
    tried.make(runs, results, silent, workers=1)
    assert read_json(records / "a/1.json", dict) == {"text": "one", "third": 0.333333}
    assert read_json(records / "b.json", dict) == {"text": "done before"}
    assert not (runs / "tried" / "b").exists()
    assert tried.write_pages(results).read_text() == "2"


def test_a_run_that_fails_is_reported_and_the_others_are_kept(tmp_path):
    jobs = {"bad": fails, "good": partial(writes, "one")}
    with pytest.raises(WorkError, match="bad failed: Disk full"):
        study(jobs).make(tmp_path / "runs", tmp_path, silent, workers=1)
    assert [file.name for file in (tmp_path / "tried").iterdir()] == ["good.json"]


def test_the_plan_has_the_authors_draws_first():
    everything = plan(chosen(None))
    assert len(everything) == 6 + sum(map(len, frozen().seeds.values()))
    assert list(everything)[:6] == [f"{r}/{authors_seed(r)}" for r in chosen(None)]
    two = plan(["paper-5"], draws=2)
    assert list(two) == ["paper-5/129000", "paper-5/201", "paper-5/202"]
    assert [config.training.seed for config in two.values()] == [129000, 201, 202]


def test_a_quick_plan_is_short():
    planned = plan(chosen(None), quick=True)
    assert [config.training.steps for config in planned.values()] == [QUICK_STEPS] * 6


def test_minutes_count_only_steps_that_are_left(small_draw, monkeypatch):
    monkeypatch.setattr("paper.plan.MEASURING", 0)
    config, (_, directory) = run_config("paper-10", SMALL), small_draw
    assert minutes(config, directory) == 0
    whole = run_config("paper-10", {})
    assert minutes(whole, directory.parent / "fresh") == 2 * preset("paper-10").minutes


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
    record, _ = small_draw
    two = {f"paper-10/{s}": run_config("paper-10", SMALL) for s in (129000, 201)}
    monkeypatch.setattr("paper.plan.plan", lambda *_, **__: two)
    out = tmp_path / "out"

    def stopped(jobs, runs, **_):
        assert list(jobs) == list(two)
        write_record(out / "draws/paper-10/129000.json", record)
        raise WorkError("paper-10/201 failed: Disk full.")

    monkeypatch.setattr("paper.study.side_by_side", stopped)
    call = ["--only", "paper-10", "--runs", str(tmp_path / "runs"), "--out", str(out)]
    assert command.run(call) == 1
    told = capsys.readouterr()
    assert "129000, 201" in told.err
    assert told.err.endswith("paper: paper-10/201 failed: Disk full.\n")
    assert [draw.seed for draw in STUDY.read(out)] == [129000]
    assert "A smoke test" in (out / "README.md").read_text()
    assert (out / "strips" / "three-columns-longer.svg").exists()
    assert command.run(["--pages", "--out", str(out)]) == 0
    assert "on 0 of 62 planned draws" in capsys.readouterr().out
