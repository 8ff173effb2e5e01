"""What a certificate costs: what its first minute proves, and how many boxes it takes at n digits.

Counts of boxes are estimates with intervals (`boxes.py`). They depend on the models alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

import carryscope
from benchmarks.boxes import SMALL, count_boxes
from benchmarks.measure import Measure, short
from carryscope.certificate.certify import certify
from carryscope.model.transformer import Transformer
from carryscope.training.config import RunConfig
from carryscope.training.loop import train
from carryscope.training.presets import run_config

DIGITS = (3, 5, 7, 10)
"""Digits of the models whose boxes are counted. The model with 5 is the shipped one."""

MINUTES = 1.0
"""How long the shipped model is certified."""


def first_minute(model: Transformer, *, minutes: float = MINUTES) -> Iterator[Measure]:
    """What one worker proves at first, tables included."""
    found = certify(model, minutes=minutes, workers=1)
    how = f"one worker, {found.seconds:.0f} s"
    name = "boxes bounded by certify, the first minute"
    yield Measure(name=name, value=found.boxes / found.seconds, unit="/s", how=how)
    decided = 1 - int(found.undecided) / int(found.questions)
    name = "questions decided by certify, the first minute"
    yield Measure(name=name, value=100 * decided, unit="%", how=how)


def recipe(digits: int) -> RunConfig:
    """The recipe of the shipped model, with another number of digits."""
    return run_config("fast-5", {"digits": digits})


def trained(models: Path, digits: int) -> Transformer:
    """The shipped model, or one of its recipe at other digits, trained if it is not there yet."""
    shipped = carryscope.load()
    if digits == shipped.config.model.digits:
        return shipped.model()
    directory = models / f"fast-{digits}"
    train(recipe(digits), directory, threads=1)
    return carryscope.load(directory).model()


def certificate_cost(models: Path) -> Iterator[Measure]:
    """All of it, on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield from first_minute(carryscope.load().model())
        for digits in DIGITS:
            yield from box_rows(trained(models, digits))
    finally:
        torch.set_num_threads(before)


def box_rows(model: Transformer, *, small: float = SMALL) -> Iterator[Measure]:
    """The boxes that a model takes, and how much they decide."""
    found, digits = count_boxes(model, small=small), model.config.digits
    how = f"sampled, down to {short(small)} of all questions"
    name, boxes = f"boxes at {digits} digits", found.boxes
    yield Measure(name=name, value=boxes.estimate, low=boxes.low, high=boxes.high, how=how)
    name = f"decided at {digits} digits, mean of the answer digits"
    yield Measure(name=name, value=100 * found.decided, unit="%", how=how)
