"""The training of one run, from wherever it stands to its end.

In: a `RunConfig` and a directory. Out: `model.safetensors`, `metrics.jsonl`, the finding and
the card of the training stage. Killed at any moment and started again, it ends with exactly
the weights of a run that was never interrupted.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from carryscope.core.errors import CallError, WorkError
from carryscope.core.progress import Stopped
from carryscope.core.storage import only_writer, read_json, write_json
from carryscope.model.files import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    check_free,
    check_version,
    read_tensors,
    save_weights,
)
from carryscope.model.prediction import predict
from carryscope.model.process import keep_freed_memory, use_threads
from carryscope.training.checkpoint import (
    CHECKPOINT_FILE,
    MetricsWriter,
    load_checkpoint,
    read_metrics,
    save_checkpoint,
)
from carryscope.training.config import CHECKPOINT_SECONDS, RunConfig, differences
from carryscope.training.data import held_out_questions
from carryscope.training.losses import StepRecord
from carryscope.training.starting import starting_weights
from carryscope.training.summary import FINDING_FILE, TrainingSummary, summarise, write_summary
from carryscope.training.trainer import Trainer

LOOK_EVERY = 50
"""Steps between looks at the held-out loss when there is a target to stop at."""


def train(
    config: RunConfig,
    directory: Path,
    *,
    start_from: Path | None = None,
    until_loss: float | None = None,
    threads: int | None = None,
    checkpoint_every: float = CHECKPOINT_SECONDS,
    on_step: Callable[[StepRecord], object] = lambda _: None,
    on_last_step: Callable[[], object] = lambda: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> TrainingSummary:
    """Train a run to its end, or until its held-out loss is at most `until_loss`.

    For the whole process it sets the number of `threads` and keeps freed memory. The number
    of threads is not part of the recipe, but with another one sums are rounded differently.
    A checkpoint is written every `checkpoint_every` seconds. `on_step` hears of every step, and
    `on_last_step` of the last one while its checkpoint stands; `should_stop` is asked after each
    one. A finished run is not trained again. `start_from` is
    the run whose weights the config starts from, if any; once begun, a run has its own.
    """
    if checkpoint_every < 0:
        raise CallError(f"checkpoint_every must be at least 0. Got {checkpoint_every}.")
    keep_freed_memory()
    use_threads(threads)
    with only_writer(directory):
        claim(config, directory)
        if is_finished(directory) and _met(directory, until_loss, config):
            _drop_checkpoint_of_a_whole_run(directory, config)
            return read_json(directory / FINDING_FILE, TrainingSummary)
        # A run that had stopped at a target goes on: what it had found is no longer true.
        (directory / FINDING_FILE).unlink(missing_ok=True)
        trainer = Trainer(config)
        seconds = _begin(trainer, config, directory, start_from)
        seconds = _run(
            trainer,
            directory,
            seconds=seconds,
            until_loss=until_loss,
            checkpoint_every=checkpoint_every,
            on_step=on_step,
            should_stop=should_stop,
        )
        on_last_step()
        return _finish(trainer, config, directory, seconds)


def _begin(trainer: Trainer, config: RunConfig, directory: Path, start_from: Path | None) -> float:
    """Bring the trainer to where the run stands; how long it had been training.

    The weights of another run are taken over once and kept in a checkpoint of no steps, so that
    whatever becomes of that run, this one can be gone on with.
    """
    if trainer.recipe.start_weights and not (directory / CHECKPOINT_FILE).exists():
        trainer.start_from(starting_weights(config, start_from))
        save_checkpoint(trainer, 0.0, directory)
    return load_checkpoint(trainer, directory)


def is_finished(directory: Path) -> bool:
    """Whether the training stage of a run has left all its results."""
    return (directory / WEIGHTS_FILE).exists() and (directory / FINDING_FILE).exists()


def steps_made(directory: Path) -> int:
    """The step from which a training that was stopped goes on; 0 without a checkpoint."""
    path = directory / CHECKPOINT_FILE
    return int(read_tensors(path)[1].get("step", 0)) if path.exists() else 0


def claim(config: RunConfig, directory: Path) -> None:
    """Write the config of a new run; refuse to go on with another run's."""
    path = directory / CONFIG_FILE
    if not path.exists():
        check_free(directory)
        write_json(path, config)
        return
    check_version(directory)
    different = differences(config, read_json(path, RunConfig))
    if different:
        raise CallError(
            f"The run at {directory} was started differently: {'; '.join(different)}. "
            "Ask for the same, or choose another --out."
        )


def _met(directory: Path, until_loss: float | None, config: RunConfig) -> bool:
    """Whether a finished run is all that is asked for: every step made, or the target reached."""
    assert config.training is not None
    summary = read_json(directory / FINDING_FILE, TrainingSummary)
    reached = until_loss is not None and summary.held_out_loss.estimate <= until_loss
    return reached or summary.steps == config.training.steps


def _run(
    trainer: Trainer,
    directory: Path,
    *,
    seconds: float,
    until_loss: float | None,
    checkpoint_every: float,
    on_step: Callable[[StepRecord], object],
    should_stop: Callable[[], bool],
) -> float:
    """Make the remaining steps, saving on the way; the seconds spent training in all."""
    metrics = MetricsWriter(directory, trainer.step)
    saved_at = time.monotonic()

    def save() -> None:
        metrics.flush()
        save_checkpoint(trainer, seconds, directory)

    with metrics:
        while trainer.step < trainer.recipe.steps and not _has_reached(trainer, until_loss):
            began = time.perf_counter()
            record = trainer.advance()
            metrics.write(record)
            seconds += time.perf_counter() - began
            on_step(record)
            _check_finite(record)
            if should_stop():
                save()
                raise Stopped(f"Stopped at step {trainer.step} of {trainer.recipe.steps}; saved.")
            if time.monotonic() - saved_at > checkpoint_every:
                save()
                saved_at = time.monotonic()
        save()
    return seconds


def _check_finite(record: StepRecord) -> None:
    """Give up on a training that has diverged: no later step brings it back."""
    if not math.isfinite(record.loss):
        raise WorkError(
            f"The loss is not a number at step {record.step}. Train a new run with a lower "
            "--learning-rate or with --clip 1."
        )


def _has_reached(trainer: Trainer, target: float | None) -> bool:
    """Whether the held-out loss, looked at every so many steps, is at or below the target.

    Asked before every step, so that a run killed at its target stops there again.
    """
    looks = target is not None and trainer.step > 0 and trainer.step % LOOK_EVERY == 0
    return looks and held_out_loss(trainer) <= (target or 0.0)


def held_out_loss(trainer: Trainer) -> float:
    """The mean loss on the fixed held-out questions."""
    questions = held_out_questions(trainer.model.config.digits)
    return float(predict(trainer.model, questions, free_running=False).loss.mean())


def _finish(
    trainer: Trainer, config: RunConfig, directory: Path, seconds: float
) -> TrainingSummary:
    """Write the weights and the summary."""
    save_weights(trainer.model, directory)
    summary = summarise(trainer.model.eval(), config, read_metrics(directory), seconds)
    write_summary(summary, config, directory)
    _drop_checkpoint_of_a_whole_run(directory, config)
    return summary


def _drop_checkpoint_of_a_whole_run(directory: Path, config: RunConfig) -> None:
    """Nothing can follow the last step, so its checkpoint is of no more use."""
    assert config.training is not None
    if read_json(directory / FINDING_FILE, TrainingSummary).steps == config.training.steps:
        shutil.rmtree((directory / CHECKPOINT_FILE).parent, ignore_errors=True)
