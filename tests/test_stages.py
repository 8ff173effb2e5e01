"""One mechanism reads, checks, makes and keeps findings."""

import contextlib
import dataclasses

import msgspec
import pytest

import carryscope.stages
from carryscope.core.errors import CallError, WorkError
from carryscope.core.storage import only_writer, read_json, write_json
from carryscope.run import Run
from carryscope.stages import CERTIFICATE, RISK, Stage
from carryscope.training.loop import train
from carryscope.training.presets import run_config
from carryscope.version import __version__


class Count(msgspec.Struct, frozen=True):
    weights_sha256: str
    number: int
    package_version: str = __version__


COUNT = Stage("count", "a count", Count, ("count",))
DEAR = Stage("dear", "a dear count", Count, ("count",), costly=True)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs") / "tiny"
    train(run_config("tiny", {"steps": 2, "d_model": 24}), place)
    return place


@pytest.fixture
def run(directory):
    for path in (directory / "findings").glob("*.json"):
        if path.stem != "training":
            path.unlink()
    return Run(directory)


def counted(run, number, calls):
    def make(known, keep):
        calls.append(known)
        return Count(run.weights_sha256, number)

    return make


def test_a_finding_is_made_once_and_then_read(run):
    calls = []
    assert run.find(COUNT, counted(run, 1, calls)).number == 1
    assert run.find(COUNT, counted(run, 2, calls)).number == 1
    assert calls == [None]
    assert read_json(run.directory / COUNT.file, Count).number == 1
    assert run.find(COUNT, counted(run, 3, calls), again=True).number == 3


def test_what_is_there_but_not_enough_is_made_again_from_what_is_known(run):
    calls = []
    run.find(COUNT, counted(run, 1, calls))
    run.find(COUNT, counted(run, 2, calls), enough=lambda known: known.number > 1)
    assert [known and known.number for known in calls] == [None, 1]


@pytest.mark.parametrize(
    "kept",
    [
        {"weights_sha256": "0", "number": 7, "package_version": __version__},
        {"weights_sha256": 0},
        {"number": 7},
    ],
    ids=["other weights", "damaged", "a field missing"],
)
def test_what_cannot_be_used_is_made_again_unless_it_is_costly(kept, run):
    for stage in (COUNT, DEAR):
        write_json(run.directory / stage.file, kept)
    assert run.find(COUNT, counted(run, 1, [])).number == 1
    with pytest.raises(CallError, match="Make it again: .*--again"):
        run.find(DEAR, counted(run, 1, []))
    assert run.find(DEAR, counted(run, 1, []), again=True).number == 1


def test_a_finding_of_another_version_is_shown_but_not_taken_as_current(run):
    write_json(run.directory / COUNT.file, Count(run.weights_sha256, 7, "0.0.1"))
    assert run.read(COUNT).found.number == 7
    assert run.known(COUNT) is None
    assert run.find(COUNT, counted(run, 1, [])).number == 1


def test_what_was_kept_on_the_way_survives_a_failure(run):
    def make(known, keep):
        keep(Count(run.weights_sha256, 1))
        raise WorkError("half-way")

    with pytest.raises(WorkError, match="half-way"):
        run.find(COUNT, make)
    assert run.known(COUNT).number == 1


def test_a_second_writer_is_refused_but_readers_are_not(run):
    run.find(COUNT, counted(run, 1, []))
    with only_writer(run.directory):
        assert run.find(COUNT, counted(run, 2, [])).number == 1
        with pytest.raises(WorkError, match="Another process is working on"):
            run.find(COUNT, counted(run, 2, []), again=True)


def test_a_run_loads_and_hashes_its_model_once(run, monkeypatch):
    loaded, hashed = [], []
    load, hash_ = carryscope.stages.load_model, carryscope.stages.weights_hash
    monkeypatch.setattr(carryscope.stages, "load_model", lambda d: loaded.append(d) or load(d))
    monkeypatch.setattr(carryscope.stages, "weights_hash", lambda m: hashed.append(m) or hash_(m))
    run.find(COUNT, counted(run, 1, []))
    run.find(COUNT, counted(run, 1, []))
    run.known(RISK)
    run.known(CERTIFICATE)
    assert len(loaded) == len(hashed) == 1


def test_a_run_without_weights_can_find_nothing(tmp_path, run):
    (tmp_path / "config.json").write_bytes((run.directory / "config.json").read_bytes())
    with pytest.raises(CallError, match="has no model"):
        Run(tmp_path).find(COUNT, counted(run, 1, []))


def test_what_knows_less_does_not_replace_what_knows_more(run):
    stage = dataclasses.replace(COUNT, knows=lambda found: found.number)
    run.find(stage, lambda *_: Count(run.weights_sha256, 7))
    for number, enough in ((3, False), (8, False), (2, True)):
        found = Count(run.weights_sha256, number)
        with contextlib.suppress(WorkError):
            run.find(stage, lambda *_, f=found: f, enough=lambda _, e=enough: e, again=True)
        assert run.there(stage).number == {3: 7, 8: 8, 2: 2}[number]
