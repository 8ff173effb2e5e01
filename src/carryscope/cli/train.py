"""`carryscope train` and `carryscope presets`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from docstring_parser import parse_from_object

from carryscope.cli.bars import bars
from carryscope.cli.console import log, print_finding, print_json, print_plain, screen
from carryscope.cli.options import Json
from carryscope.model.config import ModelConfig
from carryscope.training.config import CHECKPOINT_SECONDS, TrainingConfig
from carryscope.training.presets import DEFAULT_PRESET, PRESETS


def _options(config: type[msgspec.Struct], group: str, without: tuple[str, ...] = ()) -> Any:
    """A dataclass with the fields of a config as optional command-line options."""
    about = {field.arg_name: field.description for field in parse_from_object(config).params}
    fields = []
    for field in msgspec.structs.fields(config):
        if field.name not in without:
            parameter = Parameter(
                help=about[field.name], group=group, show_default=False, consume_multiple=True
            )
            optional = Annotated[field.type | None, parameter]  # type: ignore[name-defined]
            fields.append((field.name, optional, None))
    made = dataclasses.make_dataclass(f"{config.__name__}Options", fields, frozen=True)
    made.__module__ = __name__
    return Annotated[made, Parameter(name="*")]


FOLLOWS = "start_weights"
"""A field that follows from `--start-from`: the hash of the weights."""

MODEL, TRAINING = "Model (default: the preset's)", "Training (default: the preset's)"

ModelOptions: Any = _options(ModelConfig, MODEL)
TrainingOptions: Any = _options(TrainingConfig, TRAINING, (FOLLOWS,))
SeedsTrainingOptions: Any = _options(TrainingConfig, TRAINING, (FOLLOWS, "seed", "renew"))
"""For many seeds at once, each from nothing."""


def train(
    *,
    out: Path,
    preset: str | None = None,
    start_from: Path | None = None,
    threads: int | None = None,
    checkpoint_every: float = CHECKPOINT_SECONDS,
    keep_checkpoints: int = 0,
    watch: bool = False,
    json: Json = False,
    model: ModelOptions = None,
    training: TrainingOptions = None,
) -> None:
    """Train a model, or continue a training that was stopped.

    Start from a preset and change any field of it: `carryscope train --preset paper-5
    --heads 4 --out runs/four`. The same command continues where a run was stopped or killed,
    and ends with exactly the weights of an uninterrupted run.

    With `--start-from` the weights come from another run. `--renew mlp --freeze embeddings
    attention readout` then draws a new MLP and trains it alone. The parts are embeddings,
    attention (with ln1), mlp (with ln2), and readout (the final LayerNorm and the unembedding).

    Parameters
    ----------
    out
        The run directory to write, or to continue.
    preset
        The recipe to start from (see `carryscope presets`). Default: the run's own, or fast-5.
    start_from
        A run to take the weights and the model from, and the recipe unless a preset is named.
        More layers, heads, neurons, tokens or another operation can be asked for: all that the run
        has is taken over, the rest is new and writes nothing at first.
    threads
        Processor threads. Default: all cores.
    checkpoint_every
        Seconds between checkpoints: the most that a kill can cost.
    keep_checkpoints
        Keep the weights of so many steps, in half precision. The explorer then shows how attention
        and accuracy changed over the training.
    watch
        Keep a page up to date while the training runs: live.html in the run, which reloads itself.
    """
    overrides = given(model, training)
    from carryscope.api import wanted_config
    from carryscope.training.loop import train as train_run

    config = wanted_config(out, preset, overrides, start_from)
    if start_from is not None:
        assert config.training is not None
        renewed = [f"its {part}" for part in config.training.renew]
        new = ", ".join([*renewed, *config.new_parts]) or "nothing"
        log.print(f"The weights come from {start_from}. New: {new}.", highlight=False)

    with bars() as shown:
        progress = shown
        if watch:
            from carryscope.report.live import LIVE_FILE, watched

            print_plain(f"Watch it: {out / LIVE_FILE}", to=log)
            progress = watched(shown, out, config.model.layout)
        summary = train_run(
            config,
            out,
            start_from=start_from,
            threads=threads,
            checkpoint_every=checkpoint_every,
            keep_checkpoints=keep_checkpoints,
            progress=progress,
        )
    print_finding(summary, out, json=json)


def given(*options: Any) -> dict[str, Any]:
    """The options that were set on the command line."""
    named = [vars(some) for some in options if some is not None]
    return {name: value for one in named for name, value in one.items() if value is not None}


def presets(*, json: Json = False) -> None:
    """List the training recipes."""
    if json:
        print_json({name: preset._asdict() for name, preset in PRESETS.items()})
        return
    from carryscope.report.tables import Table
    from carryscope.report.terminal import show

    table = Table.of(
        "presets",
        f"Recipes (default: {DEFAULT_PRESET})",
        PRESETS,
        {
            "preset": str,
            "digits, heads, width": lambda name: "{0.digits}, {0.heads}, {0.d_model}".format(
                PRESETS[name].model
            ),
            "steps": lambda name: f"{PRESETS[name].training.steps:,}",
            "minutes": lambda name: f"{PRESETS[name].minutes:g}",
            "what it is for": lambda name: PRESETS[name].about,
        },
        "Minutes of training on two idle cores, estimated.",
        text=["digits, heads, width"],
        prose=["what it is for"],
    )
    show([table], screen)
