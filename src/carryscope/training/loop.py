"""The training of one run, from wherever it stands to its end.

In: a `RunConfig` and a directory. Out: `model.safetensors`, `metrics.jsonl`, the finding and
the card of the training stage. Killed at any moment and started again, it ends with exactly
the weights of a run that was never interrupted.
"""

from __future__ import annotations

import math
import shutil
import time
from pathlib import Path

from carryscope.core.errors import CallError, WorkError, require
from carryscope.core.machine import check_memory, use_machine
from carryscope.core.progress import Progress, Stopped, silent
from carryscope.core.storage import only_writer, read_json, write_bytes, write_json
from carryscope.model.files import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    check_free,
    check_version,
    load_model,
    save_weights,
    weights_hash,
)
from carryscope.model.transformer import Transformer
from carryscope.training.checkpoint import (
    CHECKPOINT_FILE,
    MOST_KEPT,
    MetricsWriter,
    keep_weights,
    load_checkpoint,
    note_in_checkpoint,
    read_metrics,
    save_checkpoint,
    steps_to_keep,
)
from carryscope.training.config import CHECKPOINT_SECONDS, RunConfig, differences
from carryscope.training.losses import RecentLoss, StepRecord
from carryscope.training.summary import CARD_FILE, FINDING_FILE, TrainingSummary, card, summarise
from carryscope.training.trainer import Trainer, memory_needed


def train(
    config: RunConfig,
    directory: Path,
    *,
    start_from: Path | None = None,
    threads: int | None = None,
    checkpoint_every: float = CHECKPOINT_SECONDS,
    keep_checkpoints: int = 0,
    progress: Progress = silent,
) -> TrainingSummary:
    """Train a run to its end.

    `start_from` is the run whose weights the config starts from, if any; it is needed only once.
    `threads` holds for the whole process. Another number rounds sums differently, so a training
    that was stopped continues with the number it began with, unless another is given. A checkpoint
    is written every `checkpoint_every` seconds, and when `progress` stops the work. The weights of
    `keep_checkpoints` steps on the way are kept. A finished run is not trained again.
    """
    require(checkpoint_every >= 0, "checkpoint_every must be at least 0", checkpoint_every)
    few = 0 <= keep_checkpoints <= MOST_KEPT
    require(few, f"keep_checkpoints must be between 0 and {MOST_KEPT}", keep_checkpoints)
    check_memory(memory_needed(config), "This training")
    if threads is None:
        threads = note_in_checkpoint(directory, "threads") or None
    use_machine(threads)
    with only_writer(directory):
        _claim(config, directory)
        if not is_finished(directory):
            trainer = Trainer(config)
            seconds = _begin(trainer, config, directory, start_from)
            kept = steps_to_keep(trainer.recipe.steps, keep_checkpoints)
            seconds = _run(trainer, directory, seconds, checkpoint_every, kept, progress)
            _finish(trainer, config, directory, seconds)
        shutil.rmtree((directory / CHECKPOINT_FILE).parent, ignore_errors=True)
        return read_json(directory / FINDING_FILE, TrainingSummary)


def is_finished(directory: Path) -> bool:
    """Whether the training of a run has left all its results."""
    return (directory / WEIGHTS_FILE).exists() and (directory / FINDING_FILE).exists()


def _claim(config: RunConfig, directory: Path) -> None:
    """Write the config of a new run; refuse to continue a run with another config."""
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


def _begin(trainer: Trainer, config: RunConfig, directory: Path, start_from: Path | None) -> float:
    """Bring the trainer to where the run stands; return how long it has been training.

    Weights of another run are kept in a checkpoint of no steps, so that this run can continue
    without the other.
    """
    if trainer.recipe.start_weights and not (directory / CHECKPOINT_FILE).exists():
        trainer.start_from(donor(config, start_from))
        save_checkpoint(trainer, 0.0, directory)
    return load_checkpoint(trainer, directory)


def donor(config: RunConfig, run: Path | None) -> Transformer:
    """The model whose weights the config starts from, which must have its hash."""
    assert config.training is not None
    if run is None:
        raise CallError(
            f"This training starts from the weights of '{config.source}'. Name that run: "
            "--start-from RUN."
        )
    model = load_model(run)
    if weights_hash(model) != config.training.start_weights:
        raise CallError(
            f"The run at {run} has other weights than this training starts from. Name the run it "
            "started from, or choose another --out."
        )
    return model


def _run(
    trainer: Trainer,
    directory: Path,
    seconds: float,
    checkpoint_every: float,
    kept: set[int],
    progress: Progress,
) -> float:
    """Make the remaining steps, saving on the way; return the seconds spent training in all."""
    recipe, saved_at = trainer.recipe, time.monotonic()
    recent = RecentLoss(trainer.model.config.layout.answer_names)

    def save() -> None:
        metrics.flush()
        save_checkpoint(trainer, seconds, directory)

    with (
        MetricsWriter(directory, trainer.step) as metrics,
        progress("training", recipe.expected_questions, "questions") as advance,
    ):
        try:
            if trainer.step in kept:
                keep_weights(trainer, directory)
            if trainer.step:
                advance(recipe.questions_in(trainer.step), f"continued at step {trainer.step}")
            while trainer.step < recipe.steps:
                began = time.perf_counter()
                record = trainer.advance()
                metrics.write(record)
                seconds += time.perf_counter() - began
                _check_finite(record)
                if trainer.step in kept:
                    keep_weights(trainer, directory)
                note = f"step {record.step}/{recipe.steps} {recent.after(record)}"
                advance(recipe.batch_at(record.step - 1), note)
                if time.monotonic() - saved_at > checkpoint_every:
                    save()
                    saved_at = time.monotonic()
        except Stopped as stop:
            save()
            raise Stopped(
                f"Stopped at step {trainer.step} of {recipe.steps}. The checkpoint in {directory} "
                "is kept, and the same training continues from it."
            ) from stop
        save()
    return seconds


def _check_finite(record: StepRecord) -> None:
    """Give up on a training that has diverged: no later step brings it back."""
    if not math.isfinite(record.loss):
        raise WorkError(
            f"The loss is not a number at step {record.step}. Train a new run with a lower "
            "--learning-rate or with --clip 1."
        )


def _finish(trainer: Trainer, config: RunConfig, directory: Path, seconds: float) -> None:
    """Write the weights, the card and the finding. The finding comes last: it means "done"."""
    save_weights(trainer.model, directory)
    summary = summarise(trainer.model.eval(), config, read_metrics(directory), seconds)
    write_bytes(directory / CARD_FILE, card(summary, config).encode())
    write_json(directory / FINDING_FILE, summary)
