"""What a sweep found: is the algorithm the same in all seeds?

In: the findings of its seeds. Out: `Sweep`, kept as JSON. Each property has the share of seeds
that have it, with a Wilson interval over seeds; each number has its median and range. An interval
here is about other seeds of the same recipe. What is known of one seed has its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import msgspec

from carryscope.core.evidence import Share
from carryscope.core.machine import machine
from carryscope.core.words import between
from carryscope.sweeps.properties import (
    AGREEMENT,
    AGREES,
    CASCADES_FAIL,
    ERRORS_PREDICTED,
    NUMBERS,
    PROPERTIES,
    STAIRCASE,
    Ask,
)
from carryscope.sweeps.seeds import SeedFinding
from carryscope.training.config import RunConfig
from carryscope.verification.faithfulness import PREDICTS_ANSWERS
from carryscope.version import __version__

SWEEP_FILE = Path("sweep.json")

TAIL = 0.025
"""Each tail of a 95 % interval."""

NO_WINNER = "no clear winner"
"""In place of the algorithm that agrees best, where the runner-up may agree as well."""


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
        ordered = sorted(values)
        rank = _median_rank(len(ordered))
        return cls(
            name=name,
            of=len(ordered),
            median=median(ordered),
            least=ordered[0],
            most=ordered[-1],
            low=None if rank is None else ordered[rank],
            high=None if rank is None else ordered[-1 - rank],
        )


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
    digits = recipe.model.digits
    found = Sweep(
        package_version=__version__,
        machine=machine(),
        recipe=recipe,
        seeds=list(seeds),
        results=list(results),
        failures=list(failures),
        properties=[_property(name, ask, results, digits) for name, ask in PROPERTIES.items()],
        numbers=_numbers(results),
        roles=_groups(results, roles_text),
        algorithms=_groups(results, best_text),
        statement="",
    )
    return msgspec.structs.replace(found, statement=_statement(found))


def resummarised(found: Sweep) -> Sweep:
    """The same seeds, summarised by this version; where and by whom they were made stays."""
    anew = summarised(found.recipe, found.seeds, found.results, found.failures)
    made = {"package_version": found.package_version, "machine": found.machine}
    return msgspec.structs.replace(anew, **made)


def _median_rank(count: int) -> int | None:
    """The rank, from 0, of the value that is below the median with 97.5 % confidence."""
    below, rank = 0.0, -1
    for k in range(count):
        below += math.comb(count, k) / 2**count
        if below > TAIL:
            break
        rank = k
    return rank if rank >= 0 else None


def _property(name: str, ask: Ask, results: Sequence[SeedFinding], digits: int) -> Group:
    answers = {seed.seed: ask(seed, digits) for seed in results}
    holding = [seed for seed, answer in answers.items() if answer]
    applies = sum(answer is not None for answer in answers.values())
    return Group(name=name, share=Share.measured(len(holding), applies), seeds=holding)


def _numbers(results: Sequence[SeedFinding]) -> list[Spread]:
    values: dict[str, list[float]] = {}
    for seed in results:
        for name, take in NUMBERS.items():
            values.setdefault(name, []).extend(v for v in [take(seed)] if v is not None)
        for one in seed.depths:
            name = f"wrong: {depth_text(one.depth, one.carrying)}"
            values.setdefault(name, []).append(one.wrong.estimate)
    return [Spread.measured(name, found) for name, found in values.items() if found]


def depth_text(depth: int, carrying: bool) -> str:
    """A look-ahead in words."""
    nines = {0: "no nine", 1: "1 nine"}.get(depth, f"{depth} nines")
    return f"{nines}, {'carrying' if carrying else 'quiet'}"


def roles_text(seed: SeedFinding) -> str:
    """What the heads of a seed read: "own column, one below, two below"."""
    layers = {head.layer for head in seed.heads}
    return ", ".join(
        f"{f'L{head.layer} ' if len(layers) > 1 else ''}{head.role or 'no staircase'}"
        for head in seed.heads
    )


def best_text(seed: SeedFinding) -> str:
    """The algorithm that agrees best, if its lead is more than chance."""
    fit = seed.algorithm
    return NO_WINNER if fit.clear_lead is False else fit.best or "none"


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
    sentences = [
        f"A double staircase is present in {_seeds(held[STAIRCASE])}.",
        f"In {_seeds(roles.share)} the heads read: {roles.name}.",
        _agreement(found, held[AGREES]),
        f"{ERRORS_PREDICTED} in {_seeds(held[ERRORS_PREDICTED])}.",
        _winner(found.algorithms[0]),
        f"Cascades fail in {_seeds(cascades)}." if cascades.of else "",
        f"Failed seeds: {', '.join(str(one.seed) for one in found.failures)}."
        if found.failures
        else "",
    ]
    return " ".join(filter(None, sentences))


def _agreement(found: Sweep, held: Share) -> str:
    """ "No seed agrees with Algorithm 1 on 99% of its answers (median 98.8%)"."""
    median = next(one.median for one in found.numbers if one.name == AGREEMENT)
    who = f"{held.count} of {held.of} seeds agree" if held.count else "No seed agrees"
    of = f"on {PREDICTS_ANSWERS:.0%} of {'their' if held.count else 'its'} answers"
    return f"{who} with Algorithm 1 {of} (median {100 * median:.3g}%)."


def _winner(largest: Group) -> str:
    """The algorithm that most seeds agree best with."""
    if largest.name == NO_WINNER:
        return f"In {_seeds(largest.share)} no stated algorithm clearly agrees best."
    return f"Most often {largest.name} agrees best, in {_seeds(largest.share)}."


def _seeds(share: Share) -> str:
    if not share.of:
        return "no seed to which it applies"
    return f"{share.count} of {share.of} seeds ({between(share)})"
