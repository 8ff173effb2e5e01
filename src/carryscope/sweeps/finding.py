"""What a sweep found: is the algorithm the same in all seeds?

In: the findings of its seeds. Out: `Sweep`, kept as JSON. Each property has the share of seeds
that have it, with a Wilson interval over seeds; each number has its median and range. An interval
here is about other seeds of the same recipe. What is known of one seed has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import msgspec

from carryscope.core.evidence import Share
from carryscope.core.machine import machine
from carryscope.core.words import between, brief, percent
from carryscope.sweeps.seeds import (
    AGREEMENT,
    AGREES,
    CASCADES_FAIL,
    ERRORS_PREDICTED,
    NO_WINNER,
    PROPERTIES,
    STAIRCASE,
    SeedFinding,
)
from carryscope.training.config import RunConfig
from carryscope.verification.faithfulness import PREDICTS_ANSWERS
from carryscope.version import __version__

SWEEP_FILE = Path("sweep.json")

TAIL = 0.025
"""Each tail of a 95 % interval."""


class SeedFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A seed that failed."""

    seed: int
    tried: int
    reason: str


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Seeds that have something in common."""

    name: str
    share: Share
    """Of the seeds to which it applies."""
    seeds: list[int]


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A number over the seeds."""

    name: str
    of: int
    """Seeds that have it."""
    median: float
    least: float
    most: float
    low: float | None
    high: float | None
    """A 95 % interval of the median, from the order of the values alone; null for fewer than six
    seeds, which are too few."""

    @classmethod
    def measured(cls, name: str, values: Sequence[float]) -> Spread:
        """The spread of at least one value."""
        from scipy.stats import binom  # type: ignore[import-untyped]  # slow to import

        ordered, of = sorted(values), len(values)
        rank = int(binom.ppf(TAIL, of, 0.5)) - 1  # fewer values than this are below the median
        low, high = (ordered[rank], ordered[-1 - rank]) if rank >= 0 else (None, None)
        middle, least, most = median(ordered), ordered[0], ordered[-1]
        return cls(name=name, of=of, median=middle, least=least, most=most, low=low, high=high)


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """Many seeds of one recipe."""

    package_version: str
    machine: str = ""
    """Where it was summarised; unknown if empty."""
    recipe: RunConfig
    """What all runs have in common; its own seed does not matter."""
    seeds: list[int]
    results: list[SeedFinding]
    failures: list[SeedFailure]
    properties: list[Group]
    numbers: list[Spread]
    """Losses and shares, then wrong digits by look-ahead."""
    roles: list[Group]
    """Seeds by what their heads read, the largest group first."""
    algorithms: list[Group]
    """Seeds by the stated algorithm that agrees best with them."""
    statement: str


def summarised(
    recipe: RunConfig,
    seeds: Sequence[int],
    results: Sequence[SeedFinding],
    failures: Sequence[SeedFailure],
) -> Sweep:
    """The seeds of a recipe, summarised."""
    found = Sweep(
        package_version=__version__,
        machine=machine(),
        recipe=recipe,
        seeds=list(seeds),
        results=list(results),
        failures=list(failures),
        properties=[_property(name, results) for name in PROPERTIES],
        numbers=_spreads(results),
        roles=_groups(results, lambda seed: seed.roles),
        algorithms=_groups(results, lambda seed: seed.algorithm),
        statement="",
    )
    return msgspec.structs.replace(found, statement=_statement(found))


def _property(name: str, results: Sequence[SeedFinding]) -> Group:
    answers = {seed.seed: seed.holds[name] for seed in results}
    holding = [seed for seed, answer in answers.items() if answer]
    applies = sum(answer is not None for answer in answers.values())
    return Group(name=name, share=Share.measured(len(holding), applies), seeds=holding)


def _spreads(results: Sequence[SeedFinding]) -> list[Spread]:
    values: dict[str, list[float]] = {}
    for seed in results:
        for name, value in seed.numbers.items():
            values.setdefault(name, []).append(value)
    return [Spread.measured(name, found) for name, found in values.items()]


def _groups(results: Sequence[SeedFinding], name: Callable[[SeedFinding], str]) -> list[Group]:
    members: dict[str, list[int]] = {}
    for seed in results:
        members.setdefault(name(seed), []).append(seed.seed)
    groups = [
        Group(name=name, share=Share.measured(len(seeds), len(results)), seeds=seeds)
        for name, seeds in members.items()
    ]
    return sorted(groups, key=lambda group: (-len(group.seeds), group.name))


def _statement(found: Sweep) -> str:
    if not found.results:
        return "No seed was finished."
    held = {one.name: one.share for one in found.properties}
    roles, cascades = found.roles[0], held[CASCADES_FAIL]
    failed = ", ".join(str(one.seed) for one in found.failures)
    sentences = [
        f"A double staircase is present in {_seeds(held[STAIRCASE])}.",
        f"In {_seeds(roles.share)} the heads read: {roles.name}.",
        _agreement(found, held[AGREES]),
        f"{ERRORS_PREDICTED} in {_seeds(held[ERRORS_PREDICTED])}.",
        _winner(found.algorithms[0]),
        f"Cascades fail in {_seeds(cascades)}." if cascades.of else "",
        f"Failed seeds: {failed}." if failed else "",
    ]
    return " ".join(filter(None, sentences))


def _agreement(found: Sweep, held: Share) -> str:
    """ "No seed agrees with Algorithm 1 on 99% of its answers (median 98.8%)"."""
    middle = next(one.median for one in found.numbers if one.name == AGREEMENT)
    who = f"{held.count} of {held.of} seeds agree" if held.count else "No seed agrees"
    of = f"on {brief(PREDICTS_ANSWERS)} of {'their' if held.count else 'its'} answers"
    return f"{who} with Algorithm 1 {of} (median {percent(middle)})."


def _winner(largest: Group) -> str:
    """The algorithm that most seeds agree best with."""
    if largest.name == NO_WINNER:
        return f"In {_seeds(largest.share)} no stated algorithm clearly agrees best."
    return f"Most often {largest.name} agrees best, in {_seeds(largest.share)}."


def _seeds(share: Share) -> str:
    if not share.of:
        return "no seed to which it applies"
    return f"{share.count} of {share.of} seeds ({between(share)})"
