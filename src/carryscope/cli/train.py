"""`carryscope train` and `carryscope presets`."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter
from docstring_parser import parse_from_object
from rich.table import Table

from carryscope.cli.console import (
    TrainingProgress,
    print_json,
    print_plain,
    program,
    screen,
    stop_on_signal,
)
from carryscope.core.errors import CallError
from carryscope.model.config import ModelConfig
from carryscope.training.config import CHECKPOINT_SECONDS, RunConfig, TrainingConfig
from carryscope.training.presets import DEFAULT_PRESET, PRESETS, changed, run_config

if TYPE_CHECKING:
    from carryscope.training.summary import TrainingSummary


_NOT_TYPED = ("start_weights",)
"""Fields that follow from other options: the hash of the weights, from `--start-from`."""


def _options(config: type[msgspec.Struct], group: str, hidden: tuple[str, ...] = ()) -> Any:
    """A dataclass with every field of a config as an optional command-line option.

    A hidden one is not in the help: it can be typed, to be told what to do instead.
    """
    about = {field.arg_name: field.description for field in parse_from_object(config).params}
    fields = []
    for field in msgspec.structs.fields(config):
        if field.name in _NOT_TYPED:
            continue
        parameter = Parameter(
            help=about[field.name],
            group=group,
            show=field.name not in hidden,
            show_default=False,
            consume_multiple=True,
        )
        optional = Annotated[field.type | None, parameter]  # type: ignore[name-defined]
        fields.append((field.name, optional, None))
    made = dataclasses.make_dataclass(f"{config.__name__}Options", fields, frozen=True)
    made.__module__ = __name__
    return Annotated[made, Parameter(name="*")]


ModelOptions: Any = _options(ModelConfig, "Model (default: the preset's)")
TrainingOptions: Any = _options(TrainingConfig, "Training (default: the preset's)")
SeedsTrainingOptions: Any = _options(
    TrainingConfig, "Training (default: the preset's)", hidden=("seed", "renew")
)
"""For many seeds at once, each from nothing."""


def train(
    *,
    out: Path,
    preset: str | None = None,
    start_from: Path | None = None,
    until_loss: float | None = None,
    threads: int | None = None,
    checkpoint_every: float = CHECKPOINT_SECONDS,
    json: bool = False,
    model: ModelOptions = None,
    training: TrainingOptions = None,
) -> None:
    """Train a model, or go on with a training that was stopped.

    Start from a preset and change any field of it: `carryscope train --preset paper-5
    --heads 4 --out runs/four`. The same command goes on where a run was stopped or killed,
    and ends with the very weights an uninterrupted run gives.

    With `--start-from` the weights come from another run; `--renew mlp --freeze embeddings
    attention readout` then draws the MLP anew and trains it alone. The parts are embeddings,
    attention (with ln1), mlp (with ln2), and readout (the final LayerNorm and the unembedding).

    Parameters
    ----------
    out
        The run directory to write, or to go on with.
    preset
        The recipe to start from (see `carryscope presets`). Default: the run's own, or fast-5.
    start_from
        A run to take the weights and the model from, and the recipe unless a preset is named.
    until_loss
        Stop as soon as the loss on the fixed held-out questions is at most this.
    threads
        Processor threads. Default: all cores.
    checkpoint_every
        Seconds between checkpoints: the most that a kill can cost.
    json
        Print the summary as JSON.
    """
    overrides = {**_given(model), **_given(training)}
    config = wanted_config(out, preset, overrides, start_from)
    again = f"{program()} train --out {shlex.quote(str(out))}"
    again += "" if until_loss is None else f" --until-loss {until_loss}"
    again += "" if threads is None else f" --threads {threads}"
    summary = train_with_progress(
        config,
        out,
        again=again,
        start_from=start_from,
        until_loss=until_loss,
        threads=threads,
        checkpoint_every=checkpoint_every,
    )
    if json:
        print_json(summary)
    else:
        show_summary(summary, out)


def _given(options: Any) -> dict[str, Any]:
    """The options that were set on the command line."""
    if options is None:
        return {}
    return {name: value for name, value in vars(options).items() if value is not None}


def wanted_config(
    directory: Path,
    preset: str | None,
    overrides: dict[str, Any],
    start_from: Path | None = None,
) -> RunConfig:
    """What the call asks for: a run that is there keeps its own recipe unless told otherwise."""
    from carryscope.core.storage import read_json
    from carryscope.model.files import CONFIG_FILE, check_version
    from carryscope.training.starting import started_config

    if start_from is not None:
        return started_config(start_from, overrides, preset)
    if preset is None and (directory / CONFIG_FILE).exists():
        check_version(directory)
        found = read_json(directory / CONFIG_FILE, RunConfig)
        if found.training is None:
            raise CallError(
                f"The model at {directory} was imported: there is no training to go on."
            )
        return changed(found, overrides)
    return run_config(preset or DEFAULT_PRESET, overrides)


def train_with_progress(
    config: RunConfig,
    directory: Path,
    *,
    again: str,
    start_from: Path | None = None,
    until_loss: float | None = None,
    threads: int | None = None,
    checkpoint_every: float = CHECKPOINT_SECONDS,
) -> TrainingSummary:
    """Train with a bar; Ctrl-C saves and says with which command to go on."""
    from carryscope.core.progress import Stopped
    from carryscope.training.loop import train as train_run

    assert config.training is not None
    recipe, names = config.training, config.model.layout.answer_names
    with stop_on_signal() as stopped, TrainingProgress(recipe, names) as bar:
        try:
            return train_run(
                config,
                directory,
                start_from=start_from,
                until_loss=until_loss,
                threads=threads,
                checkpoint_every=checkpoint_every,
                on_step=bar,
                should_stop=stopped,
            )
        except Stopped as stop:
            raise Stopped(f"{stop} Go on with: {again}") from stop


def show_summary(summary: TrainingSummary, directory: Path) -> None:
    """What the training came to, for a person."""
    loss, share = summary.held_out_loss, summary.uniform_correct
    table = Table(title=f"Trained: {summary.steps:,} steps, {summary.questions_seen:,} questions")
    table.add_column("measured")
    table.add_column("value", justify="right")
    table.add_column("95 % interval", justify="right")
    table.add_column("questions", justify="right")
    table.add_row(
        "held-out loss (teacher-forced)",
        f"{loss.estimate:.4f}",
        f"{loss.low:.4f} to {loss.high:.4f}",
        f"{loss.of:,}",
    )
    rows = {"uniform questions right (free-running)": share}
    rows |= {f"curated, {name} (free-running)": s for name, s in summary.curated_correct.items()}
    for name, row in rows.items():
        interval = f"{row.low:.2%} to {row.high:.2%}"
        table.add_row(name, f"{row.estimate:.1%}", interval, f"{row.of:,}")
    table.caption = (
        "Curated questions are chosen to be hard, nines everywhere, and are never trained on."
    )
    screen.print(table)
    worst = max(zip(summary.held_out_digit_loss, summary.answer_names, strict=True))
    print_plain(f"Hardest answer digit: {worst[1]}, held-out loss {worst[0]:.4f}.")
    print_plain(directory)


def presets(*, json: bool = False) -> None:
    """List the training recipes.

    Parameters
    ----------
    json
        Print the recipes, with every field, as JSON.
    """
    if json:
        print_json({name: preset._asdict() for name, preset in PRESETS.items()})
        return
    table = Table(title=f"Recipes (default: {DEFAULT_PRESET})", show_lines=True)
    table.add_column("preset", no_wrap=True)
    for column in ("model", "steps x batch", "what it is for"):
        table.add_column(column)
    for name, preset in PRESETS.items():
        model, training = preset.model, preset.training
        shape = f"{model.digits} digits, {model.heads} heads, d_model {model.d_model}"
        batch = str(training.batch)
        batch += f" to {training.final_batch}" if training.final_batch else ""
        table.add_row(name, shape, f"{training.steps:,} x {batch}", preset.about)
    screen.print(table)
