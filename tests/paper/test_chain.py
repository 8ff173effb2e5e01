"""Models that take something over from each other, made one after the other by one worker."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from carryscope.core.pool import Crew
from carryscope.core.storage import only_writer, write_bytes
from carryscope.stages import Run
from carryscope.sweep import side_by_side
from carryscope.sweep.side_by_side import Progress
from carryscope.sweep.stages import Sign, trained
from carryscope.training.config import RunConfig
from carryscope.training.loop import train
from carryscope.training.losses import StepRecord
from carryscope.training.presets import run_config
from carryscope.training.trainer import Trainer
from paper import reproduce as module
from paper.plan import (
    BEGINNING,
    MLP_STUDY,
    STAGES,
    STUDIED,
    Planned,
    stages_left,
)
from paper.reproduce import reproduce

STEPS = {BEGINNING: 4, STUDIED: 10}
CHAIN = (BEGINNING, STUDIED, MLP_STUDY)


def small_recipe(name: str, *, quick: bool) -> RunConfig:
    return run_config(name, {"digits": 1, "d_model": 24, "steps": STEPS[name]})


def only_trained(config: RunConfig, directory: Path, *, threads: int, sign: Sign) -> Run:
    """A run whose other stages have left their files, with nothing in them."""
    run = trained(config, directory, threads=threads, sign=sign)
    for file in STAGES.values():
        if not (directory / file).exists():
            write_bytes(directory / file, b"")
    return run


@contextmanager
def in_this_process(*_: object) -> Iterator[Crew]:
    with ThreadPoolExecutor(1) as executor:
        yield Crew(executor, lambda: 1)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, few_questions: None) -> None:
    """Small models and few steps, made here: what a process of its own would not hear of."""
    monkeypatch.setattr(module, "recipe", small_recipe)
    monkeypatch.setattr(module, "bring_to_end", only_trained)
    monkeypatch.setattr(module, "examine", lambda _: None)
    monkeypatch.setattr(Run, "report", lambda _: None)
    monkeypatch.setattr(side_by_side, "at_work", in_this_process)
    monkeypatch.setattr("paper.mlp.study.QUESTIONS", 10)
    monkeypatch.setattr("paper.mlp.study.UNIFORM_QUESTIONS", 10)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The steps that are made, each with how many its training has."""
    steps: list[tuple[int, int]] = []
    advance = Trainer.advance

    def noted(trainer: Trainer) -> StepRecord:
        record = advance(trainer)
        steps.append((trainer.recipe.steps, record.step))
        return record

    monkeypatch.setattr(Trainer, "advance", noted)
    return steps


def reproduced(runs: Path) -> Progress[str, None]:
    planned = [Planned(name, stages_left(name, runs), 1.0) for name in CHAIN]
    return reproduce(planned, runs, quick=False, workers=1, threads=1)


def weights(run: Path) -> bytes:
    return (run / "model.safetensors").read_bytes()


def test_a_chain_makes_the_steps_that_two_models_share_once(
    tmp_path: Path, made: list[tuple[int, int]]
) -> None:
    reached = reproduced(tmp_path / "runs")
    assert (list(reached.done), reached.failed, reached.not_begun) == (list(CHAIN), {}, {})
    assert made[:10] == [(4, step) for step in (1, 2, 3, 4)] + [(10, n) for n in range(5, 11)]
    train(small_recipe(STUDIED, quick=False), tmp_path / "whole")
    assert weights(tmp_path / "runs" / STUDIED) == weights(tmp_path / "whole")
    assert stages_left(MLP_STUDY, tmp_path / "runs") == ()


def test_a_longer_run_that_cannot_be_handed_to_fails_by_itself(tmp_path: Path) -> None:
    write_bytes(tmp_path / STUDIED / "notes.txt", b"")
    reached = reproduced(tmp_path)
    assert list(reached.done) == [BEGINNING]
    assert list(reached.failed) == [STUDIED]
    assert "holds no run, but it is not empty" in reached.failed[STUDIED]
    assert reached.not_begun == {MLP_STUDY: f"it needs {STUDIED}"}


def test_a_longer_run_that_another_process_has_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = only_writer(tmp_path / STUDIED)
    other.__enter__()

    def free_once_the_beginning_is_done(run: Run) -> None:
        if run.directory.name == BEGINNING:
            other.__exit__(None, None, None)

    monkeypatch.setattr(module, "examine", free_once_the_beginning_is_done)
    reached = reproduced(tmp_path)
    assert (list(reached.done), reached.failed) == (list(CHAIN), {})
