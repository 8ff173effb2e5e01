"""The dissection of a run: made part by part, kept, reused, and made again when it must be."""

from contextlib import nullcontext

import pytest
import torch

import carryscope as cs
from carryscope.api import import_model
from carryscope.core.progress import Stopped, unheard
from carryscope.dissection.dissect import Dissection
from carryscope.model.files import save_weights
from carryscope.run import Run
from carryscope.stages import DISSECTION
from carryscope.training.loop import train
from carryscope.training.presets import run_config

PARTS = ["attention", "nodes"]


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr("carryscope.dissection.samples.PER_CLASS", 20)
    monkeypatch.setattr("carryscope.dissection.samples.BATCHES", 1)


@pytest.fixture
def run(tmp_path) -> Run:
    train(run_config("tiny", {"steps": 2, "d_model": 24}), tmp_path / "run")
    return Run(tmp_path / "run")


def with_other_weights(run: Run) -> Run:
    model = run.model()
    with torch.no_grad():
        model.unembed.W_U.neg_()
    save_weights(model, run.directory)
    return Run(run.directory)


def test_a_second_call_makes_only_what_is_missing(run):
    made = []

    def progress(name, total=None, unit=""):
        made.append(name)
        return nullcontext(unheard)

    run.dissection("attention", progress=progress)
    run.dissection(PARTS, progress=progress)
    assert run.dissection("attention", progress=progress).edges is None
    assert made == PARTS


def test_again_makes_only_the_named_parts_again(run):
    before = run.dissection(PARTS)
    assert run.dissection("nodes", again=True) == before
    with pytest.raises(cs.CallError, match="The findings have seed 0. Leave out --only"):
        run.dissection("nodes", seed=1)
    assert run.known(DISSECTION) == before


def test_the_same_seed_gives_the_same_bytes(run):
    run.dissection(PARTS)
    first = (run.directory / DISSECTION.file).read_bytes()
    run.dissection(PARTS, again=True)
    assert (run.directory / DISSECTION.file).read_bytes() == first


def test_complete_findings_need_no_lock(run):
    run.dissection("attention")
    (run.directory / ".lock").unlink(missing_ok=True)
    run.dissection("attention")
    assert not (run.directory / ".lock").exists()


def test_findings_about_other_weights_are_made_again(run):
    before = run.dissection("nodes")
    other = with_other_weights(run)
    assert other.known(DISSECTION) is None
    after = other.dissection("nodes")
    assert after.weights_sha256 != before.weights_sha256
    assert after.nodes != before.nodes


def test_a_damaged_file_is_made_again(run):
    (run.directory / DISSECTION.file).write_text('{"seed": "none"}')
    assert run.known(DISSECTION) is None
    assert isinstance(run.dissection("attention"), Dissection)


def test_parts_found_before_a_stop_are_kept(run):
    def progress(name, total=None, unit=""):
        if name == "nodes":
            raise Stopped("Stopped.")
        return nullcontext(unheard)

    with pytest.raises(Stopped):
        run.dissection(PARTS, progress=progress)
    kept = run.known(DISSECTION)
    assert kept.attention is not None
    assert kept.nodes is None


def test_a_run_without_weights_cannot_be_dissected(run):
    (run.directory / "model.safetensors").unlink()
    with pytest.raises(cs.CallError, match=r"model\.safetensors"):
        Run(run.directory).dissection()


def test_an_imported_model_has_no_story(run, tmp_path):
    torch.save(run.model().state_dict(), tmp_path / "model.pth")
    imported = import_model(tmp_path / "model.pth", tmp_path / "imported")
    found = imported.dissection(["nodes", "story"])
    assert found.story is None
    assert found.nodes == run.dissection("nodes").nodes
    assert run.dissection("story").story.steps == 2
