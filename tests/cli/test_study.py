"""A study and its minute of certificate: spent once, and spent to its end."""

from pathlib import Path

import pytest
from report.certificates import certificate

from carryscope import api
from carryscope.core.storage import write_json
from carryscope.model.files import weights_hash
from carryscope.run import Run
from carryscope.stages import CERTIFICATE
from carryscope.training.loop import train
from carryscope.training.presets import run_config


def made(directory: Path, **fields) -> Run:
    train(run_config("tiny", {"steps": 2, "d_model": 24, **fields}), directory)
    return Run(directory)


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory) -> Run:
    return made(tmp_path_factory.mktemp("runs") / "tiny")


@pytest.fixture
def calls(monkeypatch) -> list[dict]:
    """What the search is called with; it is not made here."""
    heard: list[dict] = []

    def certify(run, progress, **settings):
        heard.append(settings)
        return certificate(2)

    monkeypatch.setattr(Run, "certificate", certify)
    return heard


def left_behind(run: Run, **fields) -> None:
    fields = {"weights_sha256": weights_hash(run.model()), "model": run.config.model, **fields}
    write_json(run.directory / CERTIFICATE.file, certificate(2, wrong=3, undecided=5, **fields))


def test_a_run_without_a_certificate_gets_a_minute(tiny_run, calls):
    (tiny_run.directory / CERTIFICATE.file).unlink(missing_ok=True)
    api.first_proof(tiny_run, workers=2)
    assert calls == [{"minutes": 1.0, "workers": 2, "again": False}]


def test_a_proof_of_the_same_weights_is_used_instead_of_a_search(tmp_path, calls, monkeypatch):
    run = made(tmp_path / "run")
    about = {"weights_sha256": run.weights_sha256, "model": run.config.model}
    kept = certificate(2, wrong=3, undecided=5, **about)
    monkeypatch.chdir(tmp_path)
    write_json(Path("certificates/other.json"), certificate(2, wrong=3, undecided=5))
    Path("certificates/mine.json").write_text("of another kind")
    write_json(Path("certificates/same.json"), kept)
    assert api.first_proof(run) == kept == run.there(CERTIFICATE)
    assert not calls


@pytest.mark.parametrize(
    "fields",
    [
        {"ended": "decided", "seconds": 1.0},
        {"ended": "time", "seconds": 60.4},
        {"ended": "asked to", "seconds": 3000.0},
        {"ended": "still running", "seconds": 120.0},
        {"ended": "time", "seconds": 60.4, "log_version": 0},
    ],
)
def test_a_minute_that_was_spent_is_not_spent_again(fields, tiny_run, calls):
    left_behind(tiny_run, **fields)
    assert api.first_proof(tiny_run) == tiny_run.read(CERTIFICATE).found
    assert calls == []


def test_what_was_stopped_gets_the_rest_of_its_minute(tiny_run, calls):
    left_behind(tiny_run, ended="asked to", seconds=15.0)
    api.first_proof(tiny_run)
    assert calls == [{"minutes": 0.75, "workers": None, "again": False}]


@pytest.mark.parametrize(
    "fields",
    [
        {"weights_sha256": "0", "ended": "decided", "seconds": 900.0},
        {"log_version": 0, "ended": "asked to", "seconds": 15.0},
    ],
)
def test_what_cannot_be_continued_is_started_again(fields, tiny_run, calls):
    left_behind(tiny_run, **fields)
    api.first_proof(tiny_run)
    assert calls == [{"minutes": 1.0, "workers": None, "again": True}]


def test_a_model_of_two_layers_gets_none(tmp_path, calls):
    assert api.first_proof(made(tmp_path / "deep", layers=2)) is None
    assert calls == []
