"""Node maps, measured in turns with TransformerLens.

A node map says which of 1,000 questions are answered right while one node is ablated to its
mean. The shipped model has 24 nodes. Both sides get the same weights, questions and nodes. They
must find the same questions failing, or the comparison is refused.

Neither side is charged for what happens once, before the first map: loading the weights (and
building our tables of the first layer, a hundredth of a second), the means, and the answers with
every node in place.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import msgspec
import numpy as np
import torch
from jaxtyping import Bool

from benchmarks import peer_nodes
from benchmarks.measure import Measure, Turn, in_turns, peer_process, timed
from carryscope.core.errors import WorkError
from carryscope.dissection.engine import Engine
from carryscope.dissection.interventions import all_nodes
from carryscope.dissection.nodes import NODE_HOW
from carryscope.dissection.samples import Samples
from carryscope.model.transformer import Transformer
from carryscope.model.transformer_lens import hooked_transformer_config, write_state_dict
from carryscope.task.operation import Array
from carryscope.task.questions import Questions

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


class NodeMaps:
    """The node maps of one model, by our engine."""

    def __init__(self, model: Transformer, questions: Questions) -> None:
        self.model, self.questions = model, questions
        self.nodes = all_nodes(model.config)
        self._engine = Engine(model, questions)

    def clean(self) -> Bool[Array, " batch"]:
        """Which questions are answered right with every node in place."""
        return np.asarray(self._engine.answers(self.questions).correct[0])

    def right(self) -> Bool[Array, "node batch"]:
        """Which questions are answered right without each node."""
        changes = [node.ablated(NODE_HOW) for node in self.nodes]
        return self._engine.answers(self.questions, changes).correct

    def leave_work(self, directory: Path) -> None:
        """Write the files from which TransformerLens makes the same maps."""
        config = self.model.config
        work = {
            "config": hooked_transformer_config(config),
            "tokens": torch.from_numpy(config.layout.encode(self.questions)),
            "answer_length": config.layout.answer_length,
            "nodes": [(node.site, node.row, node.head) for node in self.nodes],
        }
        write_state_dict(self.model, directory / peer_nodes.WEIGHTS_FILE)
        torch.save(work, directory / peer_nodes.WORK_FILE)


class Reply(msgspec.Struct, frozen=True):
    """What the process with TransformerLens returns for one node."""

    seconds: float
    right: list[bool]


def peer_turn(ask: Callable[[str], str], batch: int, right: Bool[Array, "node batch"]) -> Turn:
    """A turn that makes the map of the next node on TransformerLens and fills it into `right`."""
    nodes = cycle(range(len(right)))

    def turn() -> float:
        node = next(nodes)
        reply = msgspec.json.decode(ask(f"{node} {batch}"), type=Reply)
        right[node] = reply.right
        return reply.seconds

    return turn


def failing(clean: Bool[Array, " batch"], right: Bool[Array, "node batch"]) -> list[int]:
    """For each node, how many questions are right with it and wrong without it."""
    counts: list[int] = (clean & ~right).sum(1).tolist()
    return counts


def check_same(
    how: str,
    clean: Bool[Array, " batch"],
    ours: Bool[Array, "node batch"],
    theirs: Bool[Array, "node batch"],
) -> None:
    """Refuse a comparison in which the two sides find different maps."""
    counts = failing(clean, ours), failing(clean, theirs)
    if max(abs(a - b) for a, b in zip(*counts, strict=True)) > TIES:
        raise WorkError(
            f"Node maps must be the same on both sides to compare their times. Failing without "
            f"each node: {counts[0]} here, {counts[1]} on TransformerLens with {how}."
        )


def node_map_speed(model: Transformer, python: Path) -> Iterator[Measure]:
    """Our node maps against those of TransformerLens."""
    maps = NodeMaps(model, Samples(model.config.digits, 0).varied[:QUESTIONS])
    count, ours = len(maps.nodes), maps.right()
    theirs = {how: np.zeros_like(ours) for how in BATCHES}
    with tempfile.TemporaryDirectory() as directory:
        maps.leave_work(Path(directory))
        threads = torch.get_num_threads()
        with peer_process(python, peer_nodes.__file__, threads, directory) as ask:
            turns = {how: peer_turn(ask, size, theirs[how]) for how, size in BATCHES.items()}
            turns["ours"] = timed(maps.right, items=count)
            seconds = in_turns(turns, count)
    for how, right in theirs.items():
        check_same(how, maps.clean(), ours, right)
    yield from node_map_rows(count, seconds)


def node_map_rows(count: int, seconds: dict[str, float]) -> Iterator[Measure]:
    """The ratios, and the seconds of all maps, from the seconds of one."""
    ours, turns = seconds["ours"], f"{count} turns of one node each"
    for how in BATCHES:
        yield Measure(
            name=f"node maps, TransformerLens with {how} = 1",
            value=seconds[how] / ours,
            unit="x",
            at_least=AT_LEAST,
            how=turns,
        )
    what = f"{count} node maps of {QUESTIONS:,} questions"
    yield Measure(name=what, value=count * ours, unit="s", how=turns)
