"""What many seeds come to: is the algorithm the same in all of them?

In: what each seed came to. Out: `Sweep`, kept as JSON: for each yes or no the seeds it holds in,
with a Wilson interval over seeds; for each number its median and range. An interval here is
about seeds not tried, under the same recipe; what is known of one seed has its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import msgspec

from carryscope.core.evidence import Share
from carryscope.core.machine import machine
from carryscope.dissection.attention import role_name
from carryscope.sweep.properties import NUMBERS, PROPERTIES, Ask
from carryscope.sweep.seeds import SeedFinding, SeedHead
from carryscope.training.config import RunConfig
from carryscope.version import __version__

SWEEP_FILE = Path("sweep.json")

TAIL = 0.025
"""Each tail of a 95 % interval."""

NOT_TOLD_APART = "not told apart"
"""In place of the algorithm that agrees best, where the runner-up may agree as well."""


class SeedFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A seed that could not be brought to its end."""

    seed: int
    tried: int
    reason: str


class Property(msgspec.Struct, frozen=True, kw_only=True):
    """A yes or no about each seed."""

    name: str
    holds: Share
    """Of the seeds to which the question applies."""
    seeds: list[int]
    """Those in which it holds."""


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
    """A 95 % interval of the median over all seeds, from the order of the values alone; null
    for fewer than six seeds, which are too few for one."""

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


class DepthSpread(msgspec.Struct, frozen=True, kw_only=True):
    """Wrong digits of one look-ahead over the seeds."""

    depth: int
    carrying: bool
    wrong: Spread


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Seeds that are alike in something."""

    name: str
    share: Share
    seeds: list[int]


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """Many seeds of one recipe."""

    package_version: str
    machine: str = ""
    """Where it was put together; sweeps of before this was written down do not say."""
    recipe: RunConfig
    """What all runs have in common; its own seed counts for nothing."""
    seeds: list[int]
    results: list[SeedFinding]
    failures: list[SeedFailure]
    properties: list[Property]
    numbers: list[Spread]
    depths: list[DepthSpread]
    roles: list[Group]
    """Seeds by what their heads read, the largest group first."""
    algorithms: list[Group]
    """Seeds by the stated algorithm that agrees best with them, if it can be told from the
    runner-up."""
    statement: str


def summarised(
    recipe: RunConfig,
    seeds: Sequence[int],
    results: Sequence[SeedFinding],
    failures: Sequence[SeedFailure],
) -> Sweep:
    """What the seeds come to together."""
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
        depths=_depths(results),
        roles=_groups(results, roles_text),
        algorithms=_groups(results, best_text),
        statement="",
    )
    return msgspec.structs.replace(found, statement=_statement(found))


def resummarised(found: Sweep) -> Sweep:
    """The same seeds, summarised by the questions and in the words of now."""
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


def _property(name: str, ask: Ask, results: Sequence[SeedFinding], digits: int) -> Property:
    answers = {seed.seed: ask(seed, digits) for seed in results}
    holding = [seed for seed, answer in answers.items() if answer]
    asked = sum(answer is not None for answer in answers.values())
    return Property(name=name, holds=Share.measured(len(holding), asked), seeds=holding)


def _numbers(results: Sequence[SeedFinding]) -> list[Spread]:
    spreads = []
    for name, take in NUMBERS.items():
        values = [value for seed in results if (value := take(seed)) is not None]
        if values:
            spreads.append(Spread.measured(name, values))
    return spreads


def _depths(results: Sequence[SeedFinding]) -> list[DepthSpread]:
    values: dict[tuple[int, bool], list[float]] = {}
    for seed in results:
        for one in seed.depths:
            values.setdefault((one.depth, one.carrying), []).append(one.wrong.estimate)
    return [
        DepthSpread(depth=d, carrying=c, wrong=Spread.measured(depth_text(d, c), at))
        for (d, c), at in values.items()
    ]


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
    """The algorithm that agrees best, if its lead is more than sampling can make."""
    fit = seed.algorithm
    return NOT_TOLD_APART if fit.told_apart is False else fit.best or "none"


def carries_text(head: SeedHead) -> str:
    """What a head carries: "BA of its own column for A2 A1 A0"."""
    told = [
        f"{c.kind} {'of its own column' if c.below == 0 else role_name(c.below)} "
        f"for {' '.join(c.digits)}"
        for c in head.carries
    ]
    return ", ".join(told) or "nothing found"


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
        return "No seed was brought to its end."
    by_name = {p.name: p.holds for p in found.properties}
    roles, best = found.roles[0], found.algorithms[0]
    agrees = (
        f"in {_counted(best.share)} the one that agrees best ({_leaders(found)}) cannot be told "
        "from the runner-up"
        if best.name == NOT_TOLD_APART
        else f"most often {best.name} agrees best, in {_counted(best.share)}"
    )
    told = [
        "A double staircase, of two heads or more, is there in "
        f"{_counted(by_name['double staircase'])}.",
        f"The heads of {_counted(roles.share)} read: {roles.name}.",
        f"Algorithm 1 tells the answers of {_counted(by_name['Algorithm 1 tells its answers'])}, "
        f"and the errors of {_counted(by_name['Algorithm 1 tells its errors'])}; {agrees}.",
    ]
    cascades = by_name["cascades fail"]
    told += [f"Cascades fail in {_counted(cascades)}."] if cascades.of else []
    told += [_failures(found)] if found.failures else []
    return " ".join(told)


def _leaders(found: Sweep) -> str:
    """Which algorithms lead where the lead may be chance: "exact addition in 10"."""
    unsure = [seed.algorithm for seed in found.results if best_text(seed) == NOT_TOLD_APART]
    counts = Counter(fit.best or "none" for fit in unsure)
    return ", ".join(f"{name} in {count}" for name, count in counts.most_common())


def _counted(share: Share) -> str:
    if not share.of:
        return "none, as none can be asked"
    return f"{share.count} of {share.of} seeds ({share.low:.0%} to {share.high:.0%})"


def _failures(found: Sweep) -> str:
    named = ", ".join(str(failure.seed) for failure in found.failures)
    return f"Not brought to their end: {named}."
