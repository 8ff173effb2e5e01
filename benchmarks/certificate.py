"""What a certificate costs: boxes per second of both engines, and what its first minutes prove.

The two engines bound the same boxes in turns. The rest is measured with as many workers as cores.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch

import carryscope
from benchmarks.measure import Measure, Turn, in_turns, timed
from carryscope.certificate.certify import ProofSearch, certify
from carryscope.certificate.checking import ClaimedBoxes, claims_of, verify
from carryscope.certificate.finding import Certificate
from carryscope.certificate.proof import Engine
from carryscope.certificate.subject import ROWS_KEPT
from carryscope.core.workers import worker_count
from carryscope.model.transformer import Transformer

MINUTES = 1.0
"""How long the shipped model is certified."""

SAMPLED = 10
"""Boxes of a row and query that each engine bounds in a turn; torch takes 10 to 30 ms for each."""

TURNS = 3

ENGINES: tuple[Engine, ...] = ("numba", "torch")


def certificate_cost(*, minutes: float = MINUTES) -> Iterator[Measure]:
    """All rows about the certificate, of the shipped model that fails."""
    model, before = carryscope.load("fast-5").model(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield set_up(model)
        found = certify(model, minutes=minutes, until=1.0, workers=worker_count(None))
        yield from first_minutes(found, minutes)
        yield engines_in_turns(model, found)
    finally:
        torch.set_num_threads(before)


def set_up(model: Transformer) -> Measure:
    """The time to the tables of a first row and query."""
    began = time.perf_counter()
    search = ProofSearch(model, engine="numba")
    proof = search.proofs[0]
    reading, _ = next(proof.space.readings(proof.boxes[proof.open_boxes()]))
    search.subject.decider(0, reading)
    ready = time.perf_counter() - began
    return Measure(name="set-up before the first box", value=ready, unit="s", at_most=5, how="once")


def first_minutes(found: Certificate, minutes: float) -> Iterator[Measure]:
    """What the first minutes decide, tables and workers included."""
    how = f"{worker_count(None)} workers, {found.seconds:.0f} s, about {found.about}"
    name = f"questions decided after {minutes:g} min"
    yield Measure(name=name, value=100 * found.decided, unit="%", at_least=90, how=how)
    digits = [1 - int(digit.undecided) / int(found.questions) for digit in found.per_digit]
    name = f"answer digits decided after {minutes:g} min, mean"
    yield Measure(name=name, value=100 * float(np.mean(digits)), unit="%", how=how)


def engines_in_turns(model: Transformer, found: Certificate) -> Measure:
    """Boxes per second of the compiled engine against torch: claims of a proof, bounded again."""
    searches = {engine: ProofSearch(model, found, engine=engine) for engine in ENGINES}
    claims = sampled_claims(searches["numba"])
    turns: dict[str, Turn] = {
        name: timed(partial(_verify, one, claims)) for name, one in searches.items()
    }
    seconds = in_turns(turns, TURNS)  # tables are built and loops compiled before the first turn
    ratio = seconds["torch"] / seconds["numba"]
    how = f"in turns, {sum(len(some.boxes) for some in claims)} decided boxes"
    return Measure(name="boxes bounded, torch = 1", value=ratio, unit="x", at_least=8, how=how)


def sampled_claims(search: ProofSearch) -> list[ClaimedBoxes]:
    """A few decided boxes of as many rows and queries as a process keeps tables of."""
    generator, rows = np.random.default_rng(0), range(len(search.proofs))
    claims = [claimed for row in rows for claimed in claims_of(search, row)]
    some = generator.permutation(len(claims))[:ROWS_KEPT]
    return [claims[n][generator.permutation(len(claims[n].boxes))[:SAMPLED]] for n in some]


def _verify(search: ProofSearch, claims: list[ClaimedBoxes]) -> None:
    for claimed in claims:
        verify(search.subject, claimed)
