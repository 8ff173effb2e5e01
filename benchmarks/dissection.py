"""What a whole dissection costs: seconds and memory of a fresh process, imports included.

The targets are for the shipped model. At 10 and 15 digits an untrained model of the paper's shape
is used. It gives an upper bound: nothing is found in it, so the search tries every set of heads.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

import carryscope
from benchmarks.measure import Measure, cost_of
from carryscope.dissection.dissect import dissect
from carryscope.model.config import ModelConfig
from carryscope.model.process import keep_freed_memory
from carryscope.model.transformer import Transformer, initialise

SHIPPED = "shipped"
SUBJECTS = {
    SHIPPED: "of the shipped model",
    "10": "at 10 digits, untrained: an upper bound",
    "15": "at 15 digits, untrained: an upper bound",
}
SECONDS, GIGABYTES = 60, 2
"""The targets for the shipped model."""

UNTRAINED_SEED = 1
"""Other weights than those of the dissection's own untrained control."""


def untrained(config: ModelConfig) -> Transformer:
    """A model that has learnt nothing."""
    return initialise(Transformer(config), torch.Generator().manual_seed(UNTRAINED_SEED))


def dissect_subject(subject: str) -> None:
    """Make every part of a dissection: of the shipped model, or at a number of digits."""
    keep_freed_memory()
    if subject == SHIPPED:
        run = carryscope.load()
        parts = dissect(run.model(), run.metrics)
    else:
        parts = dissect(untrained(ModelConfig(digits=int(subject))))
    for _ in parts:
        pass


def dissection_cost(subject: str) -> Iterator[Measure]:
    """Seconds and peak memory of one dissection."""
    cost = cost_of(__name__, dissect_subject.__name__, subject)
    name, how = f"whole dissection {SUBJECTS[subject]}", "a fresh process"
    seconds, gigabytes = (SECONDS, GIGABYTES) if subject == SHIPPED else (None, None)
    yield Measure(name=name, value=cost.seconds, unit="s", at_most=seconds, how=how)
    name += ", peak memory"
    yield Measure(name=name, value=cost.gigabytes, unit="GB", at_most=gigabytes, how=how)
