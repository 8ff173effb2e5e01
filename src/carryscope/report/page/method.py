"""Method and provenance: how every number came about, how to make it again, what was not run.

In: the shelf of a run. Out: a section. `STAGES` is the one list of what a run can have had done.
"""

from __future__ import annotations

import platform
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import torch

from carryscope.certificate.certify import UNTIL
from carryscope.certificate.finding import Certificate
from carryscope.core.errors import CallError
from carryscope.dissection.findings import PARTS, Dissection
from carryscope.report.page.parts import (
    Commands,
    Facts,
    Folded,
    Missing,
    Note,
    Part,
    Section,
    Table,
    Text,
)
from carryscope.report.page.proof import unfinished
from carryscope.report.shelf import Shelf
from carryscope.training.config import RunConfig
from carryscope.training.presets import run_config
from carryscope.version import __version__


def _seed(found: Any) -> str:
    return f" --seed {found.seed}" if getattr(found, "seed", 0) else ""


@dataclass(frozen=True)
class Stage:
    """Something that can be done with a run."""

    record: str
    """The field of the shelf that holds what it left."""
    name: str
    command: str
    gives: str
    """What a reader of the report would get from it."""
    asked: Callable[[Any], str]
    """How many questions are behind what it left."""
    options: Callable[[Any], str] = _seed
    """What must be typed after the command to get the same."""
    anew: str = ""
    """What must be typed where something is left that cannot be used."""


def _dissected(found: Dissection) -> str:
    counts = {name: getattr(getattr(found, name), "questions", None) for name in PARTS}
    told = [f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items() if count]
    told += [f"subtasks {found.subtasks.pairs:,} pairs"] if found.subtasks else []
    return ", ".join(told)


def _bounded(found: Certificate) -> str:
    checked = f", {found.spot_checks:,} questions asked to check them" if found.spot_checks else ""
    return f"{found.boxes:,} boxes bounded{checked}"


def _as_long(found: Certificate) -> str:
    until = f" --until {found.until:g}" if found.until != UNTIL else ""
    minutes = "" if found.ended == "decided" else f" --minutes {max(1, round(found.seconds / 60))}"
    return until + minutes


STAGES = (
    Stage(
        "training",
        "training",
        "train --out",
        "How it learnt",
        lambda found: (
            f"{found.questions_seen:,} trained on, {found.held_out_loss.of:,} held out, "
            f"{found.uniform_correct.of:,} uniform"
        ),
    ),
    Stage("dissection", "dissection", "dissect", "How it adds, part by part", _dissected),
    Stage(
        "risk",
        "risk",
        "risk",
        "How often it fails over all questions, and on which",
        lambda found: f"{found.evaluated:,} of {int(found.questions):,}",
    ),
    Stage(
        "faithfulness",
        "faithfulness",
        "faithful",
        "Whether it runs the paper's algorithm",
        lambda found: f"{found.questions:,}",
    ),
    Stage(
        "certificate",
        "certificate",
        "certify",
        "Proved bounds on its accuracy over every question",
        _bounded,
        _as_long,
        " --again",
    ),
)
"""In the order of the work. A stage without a command of its own does not stand here."""

INTERVALS = {
    "Shares of questions": "Wilson intervals: they never claim certainty from a sample.",
    "Rates over all questions": "gamma intervals (Fay and Feuer 1997) of stratified samples, each "
    "stratum weighed by its exact probability; up to three digits every question is asked.",
    "Means": "normal intervals. All intervals are 95 %.",
    "Proved": "holds for every question, with no interval: bounded, not sampled.",
    "Teacher-forced": "each digit is predicted after the true ones before it, as in training.",
    "Free-running": "each digit is predicted after the model's own, as a user gets it.",
}


def missing(shelf: Shelf) -> list[Missing]:
    """What was not run, or cannot be used, with the command that runs it."""
    return [
        Missing(
            stage.gives,
            f"carryscope {stage.command} {shlex.quote(shelf.where)}"
            + (stage.anew if stage.record in shelf.refused else ""),
            shelf.refused.get(stage.record, ""),
        )
        for stage in STAGES
        if getattr(shelf, stage.record) is None and _can_run(stage, shelf)
    ] + [*_missing_parts(shelf), *unfinished(shelf)]


def _can_run(stage: Stage, shelf: Shelf) -> bool:
    """A model that was imported has no training to be done again; not all can be certified."""
    if stage.record == "certificate":
        return not shelf.beyond_proof
    return stage.record != "training" or shelf.config.training is not None


def _missing_parts(shelf: Shelf) -> list[Missing]:
    """Parts that a dissection left out, and that it could have."""
    found = shelf.dissection
    if found is None:
        return []
    apt = [part for part in PARTS if part != "mlp" or found.model.d_mlp]
    apt = [part for part in apt if part != "story" or shelf.config.training is not None]
    parts = [part for part in apt if getattr(found, part) is None]
    what = f"Parts of the dissection: {', '.join(parts).replace('_', ' ')}"
    command = f"carryscope dissect {shlex.quote(shelf.where)} --only {','.join(parts)}"
    return [Missing(what, command)] if parts else []


def method_section(shelf: Shelf) -> Section:
    """The method, and where everything comes from."""
    parts: list[Part] = [_stages(shelf), *missing(shelf)]
    parts += [Note(shelf.beyond_proof, "No proved bounds")] if shelf.beyond_proof else []
    parts += [
        Text("To make all of this again:"),
        Commands(commands(shelf)),
        Facts(_versions(shelf)),
        Folded("Every setting", _settings(shelf.config)),
        Folded("How to read the numbers", [Facts(INTERVALS)]),
    ]
    return Section("method", "Method and provenance", "Method", parts)


def _stages(shelf: Shelf) -> Table:
    rows = []
    for stage in STAGES:
        found = getattr(shelf, stage.record)
        if found is not None:
            seed, version = getattr(found, "seed", ""), getattr(found, "package_version", "")
            rows.append([stage.name, stage.asked(found), f"{seed}", version])
    head = ["stage", "questions, or boxes of them", "seed", "carryscope"]
    return Table("stages", "What was run", head, rows, "", frozenset({2, 3}))


def commands(shelf: Shelf) -> list[str]:
    """The commands that make this report again from nothing."""
    where = shlex.quote(shelf.where)
    lines = [_made(shelf.config, where)]
    for stage in STAGES[1:]:
        found = getattr(shelf, stage.record)
        if found is not None:
            lines.append(f"carryscope {stage.command} {where}{stage.options(found)}")
    return [*lines, f"carryscope report {where}"]


def _made(config: RunConfig, where: str) -> str:
    if config.training is None:
        return f"carryscope import {shlex.quote(config.source or 'FILE.pth')} --out {where}"
    try:
        base = run_config(config.preset or "paper-5", {})
        preset = config.preset or "paper-5"
    except CallError:
        base, preset = run_config("paper-5", {}), "paper-5"
    options = [f"--preset {preset}", *_options(base, config)]
    return f"carryscope train {' '.join(options)} --out {where}"


def _options(base: RunConfig, config: RunConfig) -> list[str]:
    """The settings in which a run differs from a preset, as one types them."""
    pairs = [(base.model, config.model), (base.training, config.training)]
    started = config.training is not None and config.training.start_weights
    options = [f"--start-from {shlex.quote(config.source or 'RUN')}"] if started else []
    for theirs, ours in pairs:
        for name in type(ours).__struct_fields__ if ours is not None else ():
            value = getattr(ours, name)
            if name != "start_weights" and value != getattr(theirs, name):
                words = value if isinstance(value, tuple) else (value,)
                typed = " ".join(shlex.quote(str(word)) for word in words)
                options.append(f"--{name.replace('_', '-')} {typed}")
    return options


def _versions(shelf: Shelf) -> dict[str, str]:
    return {
        "Run": f"{shelf.name}, in {shelf.where}",
        "Weights": f"SHA-256 {shelf.weights_sha256}",
        "Made by": f"carryscope {shelf.config.package_version}",
        "Report by": f"carryscope {__version__}, Python {platform.python_version()}, torch "
        f"{torch.__version__}, numpy {np.__version__}",
        "The paper": "Philip Quirke and Fazl Barez, Understanding Addition in Transformers, ICLR "
        "2024, arXiv:2310.13121",
    }


def _settings(config: RunConfig) -> list[Part]:
    tables: list[Part] = []
    for name, record in {"model": config.model, "training": config.training}.items():
        if record is not None:
            rows = [[key, f"{value}"] for key, value in msgspec.structs.asdict(record).items()]
            tables.append(Table(f"config-{name}", f"The {name}", ["setting", "value"], rows))
    return tables
