"""What a certificate costs: boxes per second of both engines, and what its first minutes prove.

The two engines bound the same boxes in turns. The rest is measured with as many workers as cores.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import torch

import carryscope
from benchmarks.measure import Measure
from carryscope.certificate.boxes import Reading
from carryscope.certificate.certify import ProofSearch, certify
from carryscope.certificate.proof import Engine, RowProof
from carryscope.core.workers import worker_count
from carryscope.model.transformer import Transformer
from carryscope.task.operation import PAIRS

MINUTES = 1.0
"""How long the shipped model is certified."""

SAMPLED = 40
"""Boxes that each engine bounds in a turn; the torch engine takes 10 to 30 ms for each."""

TURNS = 3

SMALL = 1e-5
"""The share of all questions that the sampled boxes hold, at most: most boxes are this small."""


def certificate_cost(*, minutes: float = MINUTES) -> Iterator[Measure]:
    """All rows about the certificate, of the shipped model that fails."""
    model, before = carryscope.load("fast-5").model(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield from engines_in_turns(model)
        yield from first_minutes(model, minutes)
    finally:
        torch.set_num_threads(before)


def first_minutes(model: Transformer, minutes: float) -> Iterator[Measure]:
    """What the first minutes decide, tables and workers included."""
    found = certify(model, minutes=minutes, until=1.0, workers=worker_count(None))
    how = f"{worker_count(None)} workers, {found.seconds:.0f} s, about {found.about}"
    name = f"questions decided after {minutes:g} min"
    yield Measure(name=name, value=100 * found.decided, unit="%", at_least=90, how=how)
    digits = [1 - int(digit.undecided) / int(found.questions) for digit in found.per_digit]
    name = f"answer digits decided after {minutes:g} min, mean"
    yield Measure(name=name, value=100 * float(np.mean(digits)), unit="%", how=how)


def engines_in_turns(model: Transformer) -> Iterator[Measure]:
    """The time to the first box, and boxes per second of the compiled engine against torch."""
    began = time.perf_counter()
    search = ProofSearch(model, engine="numba")
    pieces = sampled_boxes(search)
    _decide(search, pieces[:1])
    ready = time.perf_counter() - began
    yield Measure(name="set-up before the first box", value=ready, unit="s", at_most=5, how="once")
    slow = ProofSearch(model, engine="torch")
    for one in (search, slow):
        _decide(one, pieces)  # tables are built, loops are compiled
    seconds: dict[Engine, float] = {"numba": 0.0, "torch": 0.0}
    for _ in range(TURNS):
        for one in (search, slow):
            began = time.perf_counter()
            _decide(one, pieces)
            seconds[one.engine] += time.perf_counter() - began
    ratio = seconds["torch"] / seconds["numba"]
    how = f"in turns, {len(pieces)} boxes of all rows, each bounded alone"
    yield Measure(name="boxes bounded, torch = 1", value=ratio, unit="x", at_least=8, how=how)


Boxes = list[tuple[int, Reading, np.ndarray]]
"""Rows, what they read last, and boxes."""


def sampled_boxes(search: ProofSearch) -> Boxes:
    """Boxes of all rows, found by splitting at random until they are small."""
    generator, found = np.random.default_rng(0), Boxes()
    for row, proof in enumerate(search.proofs):
        for _ in range(-(-SAMPLED // len(search.proofs))):
            box = _small_box(proof, generator)
            found += [(row, reading, box) for reading, _ in proof.space.readings(box)]
    return found


def _small_box(proof: RowProof, generator: np.random.Generator) -> np.ndarray:
    space, at = proof.space, proof.open_boxes()
    box = proof.boxes[generator.choice(at)][None]
    while space.share(box)[0] > max(SMALL, 1.5 * float(PAIRS) ** -space.columns):
        parts, _ = space.children(box, generator.integers(space.columns, size=1))
        box = parts[generator.integers(len(parts))][None] if len(parts) else box
    return np.asarray(box)


def _decide(search: ProofSearch, boxes: Boxes) -> None:
    for row, reading, box in boxes:
        search.subject.decider(row, reading).decide(box, small=2.0, most=1, guard=0.0)
