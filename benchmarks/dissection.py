"""What a whole dissection costs: seconds and memory of a fresh process, imports included.

The shipped model is the one with targets. At 10 and 15 digits no trained model comes with the
package, so an untrained one of the paper's shape stands in. It is an upper bound: nothing is
found in it, and so the search goes on to every set of heads.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import NamedTuple

import torch

from benchmarks.speed import Measure, high_water_mark
from carryscope.core.errors import WorkError
from carryscope.dissection.dissect import dissect
from carryscope.model.config import ModelConfig
from carryscope.model.process import keep_freed_memory
from carryscope.model.transformer import Transformer, initialise
from carryscope.stages import Run

SHIPPED = "shipped"
LONGER = (10, 15)
"""The paper's other numbers of digits."""

SECONDS_TARGET, GIGABYTES_TARGET = 60.0, 2.0

_UNTRAINED_SEED = 1
"""Other weights than those of the dissection's own untrained control."""

_DISSECT_AND_TELL = """
import sys
from benchmarks.dissection import dissect_once
print(dissect_once(sys.argv[1]))
"""


class Cost(NamedTuple):
    """What one dissection took."""

    seconds: float
    gigabytes: float


def dissect_once(subject: str) -> float:
    """Do every part, as the command does; the most memory it took, in gigabytes.

    The subject is the shipped model, or a number of digits.
    """
    keep_freed_memory()
    if subject == SHIPPED:
        run = Run()
        parts = dissect(run.model(), run.metrics)
    else:
        parts = dissect(untrained(ModelConfig(digits=int(subject))))
    for _ in parts:
        pass
    return high_water_mark()


def untrained(config: ModelConfig) -> Transformer:
    """A model that has learnt nothing."""
    return initialise(Transformer(config), torch.Generator().manual_seed(_UNTRAINED_SEED))


def cost_of(subject: str) -> Cost:
    """Dissect in a process of its own."""
    began = time.perf_counter()
    command = [sys.executable, "-c", _DISSECT_AND_TELL, subject]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if ended.returncode:
        raise WorkError(f"Dissecting ({subject}) to measure its cost failed: {ended.stderr}")
    return Cost(seconds, float(ended.stdout))


def shipped_rows() -> list[Measure]:
    """The whole dissection of the shipped model."""
    cost = cost_of(SHIPPED)
    name = "whole dissection of the shipped model"
    return [
        Measure.at_most(name, cost.seconds, SECONDS_TARGET, "s"),
        Measure.at_most(f"{name}, peak memory", cost.gigabytes, GIGABYTES_TARGET, "GB"),
    ]


def longer_rows(digits: int) -> list[Measure]:
    """The same for an untrained model with more digits, as a remark."""
    cost = cost_of(str(digits))
    name = f"whole dissection at {digits} digits, untrained: an upper bound"
    return [
        Measure(name=name, value=cost.seconds, unit="s"),
        Measure(name=f"{name}, peak memory", value=cost.gigabytes, unit="GB"),
    ]
