"""Method and provenance: how every number was made, how to make it again, what was not run.

In: the shelf of a run. Out: a section.
"""

from __future__ import annotations

import platform
import shlex
from typing import Any

import numpy as np
import torch
from msgspec.structs import asdict

from carryscope.certificate.certify import UNTIL
from carryscope.certificate.finding import Certificate
from carryscope.dissection.dissect import EXPERIMENTS
from carryscope.report.parts import Absent, Commands, Facts, Folded, Part, Section, Text
from carryscope.report.sections.certificate import unfinished
from carryscope.report.shelf import Shelf
from carryscope.training.config import RunConfig
from carryscope.training.presets import PRESETS
from carryscope.version import __version__

ANY_PRESET = "paper-5"
"""Where the settings of a run start from that names no preset, or none that exists."""


MADE = {
    "training": "train",
    "dissection": "dissect",
    "risk": "risk",
    "faithfulness": "faithful",
    "certificate": "certify",
}
"""The records of a shelf in the order of the work, and the commands that make them."""

INTERVALS = {
    "Shares of questions": "Wilson intervals: they never claim certainty from a sample.",
    "Rates over all questions": "gamma intervals (Fay and Feuer 1997) of stratified samples, each "
    "stratum weighted by its exact probability; up to three digits every question is asked.",
    "Means": "normal intervals. All intervals are 95 %.",
    "Proved": "holds for every question, with no interval: bounded, not sampled.",
    "Teacher-forced": "each digit is predicted after the true ones before it, as in training.",
    "Free-running": "each digit is predicted after the model's own, as a user gets it.",
}


def method_section(shelf: Shelf) -> Section:
    """The method, and where everything comes from."""
    parts: list[Part] = [
        *missing(shelf),
        *(
            [Text(f"No proved bounds. {reason}", lead=True)]
            if (reason := shelf.beyond_proof)
            else []
        ),
        Text("To make all of this again:"),
        Commands(commands(shelf)),
        Facts(_versions(shelf)),
        Folded("How to read the numbers", [Facts(INTERVALS)]),
    ]
    title = "How every number was made, and how to make it again"
    return Section("method", title, "Method", parts, folded=True)


def missing(shelf: Shelf) -> list[Absent]:
    """What was not run, or not to its end, with the command that runs it."""
    never = {"training"} if shelf.config.training is None else set()
    never |= {"certificate"} if shelf.beyond_proof else set()
    stages = [absent for stage, absent in shelf.absent.items() if stage not in never]
    search = unfinished(shelf.certificate, shelf.where) if shelf.certificate is not None else []
    return [*stages, *_missing_parts(shelf), *search]


def _missing_parts(shelf: Shelf) -> list[Absent]:
    """Parts that a dissection left out, and that it could have."""
    found, trained = shelf.dissection, shelf.config.training is not None
    parts = found.missing(EXPERIMENTS, trained=trained) if found is not None else []
    what = f"Parts of the dissection: {', '.join(parts).replace('_', ' ')}"
    command = f"carryscope dissect {shlex.quote(shelf.where)} --only {','.join(parts)}"
    return [Absent(what, command)] if parts else []


def commands(shelf: Shelf) -> list[str]:
    """The commands that make this report again from nothing."""
    where = shlex.quote(shelf.where)
    lines = [_trained(shelf.config, where)]
    for name, command in MADE.items():
        found = getattr(shelf, name)
        if found is not None and name != "training":
            lines.append(f"carryscope {command} {where}{_settings_of(found)}")
    return [*lines, f"carryscope report {where}"]


def _settings_of(found: Any) -> str:
    """What must be typed after the command to get the same."""
    if not isinstance(found, Certificate):
        return f" --seed {found.seed}" if found.seed else ""
    until = f" --until {found.until:g}" if found.until != UNTIL else ""
    minutes = "" if found.ended == "decided" else f" --minutes {max(1, round(found.seconds / 60))}"
    return until + minutes


def _trained(config: RunConfig, where: str) -> str:
    if config.training is None:
        return f"carryscope import {shlex.quote(config.source or 'FILE.pth')} --out {where}"
    start = f" --start-from {shlex.quote(config.source or 'RUN')}" * bool(
        config.training.start_weights
    )
    return f"carryscope train {recipe_options(config)}{start} --out {where}"


def recipe_options(config: RunConfig, *unlike: str) -> str:
    """The options of a command that give this recipe, but for some fields."""
    assert config.training is not None
    preset = config.preset if config.preset and config.preset in PRESETS else ANY_PRESET
    base, options = PRESETS[preset], [f"--preset {preset}"]
    theirs = asdict(base.model) | asdict(base.training)
    for name, value in (asdict(config.model) | asdict(config.training)).items():
        if name not in ("start_weights", *unlike) and value != theirs[name]:
            words = value if isinstance(value, tuple) else (value,)
            typed = " ".join(shlex.quote(str(word)) for word in words)
            options.append(f"--{name.replace('_', '-')} {typed}")
    return " ".join(options)


def _versions(shelf: Shelf) -> dict[str, str]:
    found = [record for name in MADE if (record := getattr(shelf, name)) is not None]
    versions = {record.package_version for record in (shelf.config, *found)}
    return {
        "Run": f"{shelf.name}, in {shelf.where}",
        "Weights": f"SHA-256 {shelf.weights_sha256}",
        "Made by": f"carryscope {', '.join(sorted(versions))}",
        "Report by": f"carryscope {__version__}, Python {platform.python_version()}, torch "
        f"{torch.__version__}, numpy {np.__version__}",
        "The paper": "Philip Quirke and Fazl Barez, Understanding Addition in Transformers, ICLR "
        "2024, arXiv:2310.13121",
    }
