"""Node maps, measured in turns with TransformerLens.

A node map says which of 1,000 questions are answered right while one node is ablated to its
mean. The shipped model has 24 nodes. Both sides get the same weights, questions and nodes. They
must find the same questions failing, or the comparison is refused.

Neither side is charged for what happens once, before the first map: loading the weights (and
building our tables of the first layer, a hundredth of a second), the means, and the answers with
every node in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import numpy as np
from jaxtyping import Bool

import carryscope
from benchmarks.measure import Measure, Turn, in_turns, timed
from benchmarks.other_side import Reply, peer_process
from carryscope.core.errors import WorkError
from carryscope.dissection.engine import Engine
from carryscope.dissection.interventions import all_nodes
from carryscope.dissection.samples import Samples
from carryscope.task.operation import Array

QUESTIONS = 1000
"""Questions in a node map."""

BATCHES = {"one batch": QUESTIONS, "batches of 125": 125}
"""Batch sizes of TransformerLens. All questions at once is the usual choice. Small batches suit
it better: it reuses the memory of its activations instead of getting it from the system."""

TIES = 2
"""Questions by which two counts may differ: where two digits are equally likely, rounding decides
between them."""

AT_LEAST = 20
"""The target: how many times faster than TransformerLens."""


def peer_turn(ask: Callable[[str], Reply], batch: int, right: Bool[Array, "node batch"]) -> Turn:
    """A turn that makes the map of the next node on TransformerLens and fills it into `right`."""
    nodes = cycle(range(len(right)))

    def turn() -> float:
        node = next(nodes)
        reply = ask(f"node {node} {batch}")
        right[node] = reply.right
        return reply.seconds

    return turn


def check_same(
    how: str,
    clean: Bool[Array, " batch"],
    ours: Bool[Array, "node batch"],
    theirs: Bool[Array, "node batch"],
) -> None:
    """Refuse a comparison in which other questions fail without a node on the other side."""
    counts = [(clean & ~right).sum(1) for right in (ours, theirs)]
    if np.abs(counts[0] - counts[1]).max() > TIES:
        raise WorkError(
            f"Node maps must be the same on both sides to compare their times. Failing without "
            f"each node: {counts[0].tolist()} here, {counts[1].tolist()} on TransformerLens with "
            f"{how}."
        )


def node_map_speed(python: Path) -> Iterator[Measure]:
    """Our node maps against those of TransformerLens: the ratios, and the seconds of all maps."""
    model = carryscope.load().model()
    questions = Samples(model.config.digits, 0).varied[:QUESTIONS]
    engine, nodes = Engine(model, questions), all_nodes(model.config)
    changes = [node.ablated() for node in nodes]
    clean, ours = engine.answers(questions).correct[0], engine.answers(questions, changes).correct
    theirs = {how: np.zeros_like(ours) for how in BATCHES}
    with peer_process(python, model, questions) as ask:
        turns = {how: peer_turn(ask, size, theirs[how]) for how, size in BATCHES.items()}
        turns["ours"] = timed(lambda: engine.answers(questions, changes), items=len(nodes))
        seconds = in_turns(turns, len(nodes))
    how_measured = f"{len(nodes)} turns of one node each"
    for how, right in theirs.items():
        check_same(how, clean, ours, right)
        yield Measure(
            name=f"node maps, TransformerLens with {how} = 1",
            value=seconds[how] / seconds["ours"],
            unit="x",
            at_least=AT_LEAST,
            how=how_measured,
        )
    name = f"{len(nodes)} node maps of {QUESTIONS:,} questions"
    yield Measure(name=name, value=len(nodes) * seconds["ours"], unit="s", how=how_measured)
