"""The node maps, side by side with TransformerLens.

A node map says which of 1,000 questions are answered right without one node, ablated to its
mean; the shipped model has 24. Both sides get the same weights, questions and nodes, and must
find the same questions failing, or the comparison is void.

Counted on neither side, because it is done once before any map: loading the weights (with it
our tables of the first layer, a hundredth of a second), the means over the questions, and the
answers with every node in place.
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
from benchmarks.speed import Measure, in_turns, peer_process, threads, timed
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

SMALL_BATCH = 125
"""A batch that suits TransformerLens better than all questions at once: the memory of its
activations is used again, not asked of the system anew."""

SINGLES = 12
"""Passes of one question each in a turn. All 24,000 would take minutes; those of all turns,
some 300, are a random sample of them."""

TIES = 2
"""Questions by which two counts may differ: where two digits are as likely as each other, the
order in which a sum is rounded decides which of them is said."""

PER_QUESTION, OURS = "one pass per question", "carryscope"
PER_QUESTION_TARGET, BATCHED_TARGET = 100.0, 20.0

Pass = tuple[int, int, int]
"""A node by its number, and the questions from one up to another."""


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
        """Write down what TransformerLens needs to make the same maps."""
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
    """What the process with TransformerLens says about some passes."""

    seconds: float
    right: list[list[bool]]


class PeerMaps:
    """The same maps on TransformerLens: a few passes a turn, and what they said."""

    def __init__(
        self, ask: Callable[[str], str], turns: Iterator[list[Pass]], shape: tuple[int, ...]
    ) -> None:
        self._ask, self._turns = ask, turns
        self.right, self.asked = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        self._turns_taken, self._answers = 0, 0

    def take_turns(self, count: int) -> float:
        """Make the passes of so many turns; the seconds they took."""
        passes = [one for _ in range(count) for one in next(self._turns)]
        answer = self._ask(msgspec.json.encode(passes).decode())
        reply = msgspec.json.decode(answer, type=Reply)
        for (node, first, last), right in zip(passes, reply.right, strict=True):
            self.right[node, first:last] = right
            self.asked[node, first:last] = True
            self._answers += last - first
        self._turns_taken += count
        return reply.seconds

    def seconds_for_all(self, seconds_per_turn: float) -> float:
        """How long all the maps take at this speed."""
        return seconds_per_turn * self.right.size * self._turns_taken / self._answers


def batches(nodes: int, questions: int, size: int) -> Iterator[list[Pass]]:
    """Turns of one node each, again and again, its questions in batches of a size."""
    starts = range(0, questions, size)
    for node in cycle(range(nodes)):
        yield [(node, start, min(start + size, questions)) for start in starts]


def singles(nodes: int, questions: int, generator: np.random.Generator) -> Iterator[list[Pass]]:
    """Turns of a dozen passes, each of a random node on one random question."""
    while True:
        drawn = generator.integers((nodes, questions), size=(SINGLES, 2)).tolist()
        yield [(node, question, question + 1) for node, question in drawn]


def failing(
    clean: Bool[Array, " batch"], right: Bool[Array, "node batch"], asked: Bool[Array, "node batch"]
) -> list[int]:
    """For each node, how many of the questions asked were right before and are no longer."""
    counts: list[int] = (clean & ~right & asked).sum(1).tolist()
    return counts


def check_same(
    how: str, clean: Bool[Array, " batch"], ours: Bool[Array, "node batch"], theirs: PeerMaps
) -> None:
    """Refuse a comparison in which the two sides do not find the same."""
    asked = theirs.asked
    counts = failing(clean, ours, asked), failing(clean, theirs.right, asked)
    if max(abs(a - b) for a, b in zip(*counts, strict=True)) > TIES:
        raise WorkError(
            f"The node maps of TransformerLens with {how} are not ours, so their times cannot be "
            f"compared. Failing without each node: {counts[1]}, here {counts[0]}."
        )


def node_map_speed(model: Transformer, python: Path) -> list[Measure]:
    """Our node maps against those of TransformerLens, batched and question by question."""
    maps = NodeMaps(model, Samples(model.config.digits, 0).varied[:QUESTIONS])
    nodes, clean, ours = len(maps.nodes), maps.clean(), maps.right()
    schedules = {
        PER_QUESTION: singles(nodes, QUESTIONS, np.random.default_rng(0)),
        "all questions in one batch": batches(nodes, QUESTIONS, QUESTIONS),
        f"batches of {SMALL_BATCH}": batches(nodes, QUESTIONS, SMALL_BATCH),
    }
    with tempfile.TemporaryDirectory() as directory:
        maps.leave_work(Path(directory))
        with peer_process(python, peer_nodes.__file__, threads(), directory) as ask:
            peers = {how: PeerMaps(ask, turns, ours.shape) for how, turns in schedules.items()}
            contestants = {how: theirs.take_turns for how, theirs in peers.items()}
            times = in_turns({**contestants, OURS: timed(maps.right)}, nodes, turn=1)
    for how, theirs in peers.items():
        check_same(how, clean, ours, theirs)
    whole = {how: theirs.seconds_for_all(times[how]) for how, theirs in peers.items()}
    return node_map_rows(nodes, whole, times[OURS])


def node_map_rows(nodes: int, theirs: dict[str, float], ours: float) -> list[Measure]:
    """The ratios, and the seconds behind them as a remark."""
    what = f"node maps ({nodes} nodes, {QUESTIONS:,} questions)"
    rows = [
        Measure.at_least(
            f"{what}, speed, TransformerLens with {how} = 1",
            seconds / ours,
            PER_QUESTION_TARGET if how == PER_QUESTION else BATCHED_TARGET,
            "x",
        )
        for how, seconds in theirs.items()
    ]
    rows.append(Measure(name=what, value=ours, unit="s"))
    for how, seconds in theirs.items():
        note = f", reckoned from {SINGLES * nodes} passes" if how == PER_QUESTION else ""
        name = f"the same on TransformerLens with {how}{note}"
        rows.append(Measure(name=name, value=seconds, unit="s"))
    return rows
