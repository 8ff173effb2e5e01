"""`carryscope sweep`: many seeds of one recipe, side by side."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

from carryscope.cli.console import (
    WorkProgress,
    print_json,
    print_plain,
    program,
    screen,
    stop_on_signal,
)
from carryscope.cli.train import ModelOptions, SeedsTrainingOptions
from carryscope.core.errors import CallError, WorkError
from carryscope.training.presets import DEFAULT_PRESET, run_config

if TYPE_CHECKING:
    from carryscope.sweep.finding import Sweep
    from carryscope.sweep.seeds import SeedFinding
    from carryscope.sweep.side_by_side import Progress
    from carryscope.training.config import RunConfig

MOST_SEEDS = 10_000
"""More seeds than anybody means to ask for."""


def sweep(
    *,
    out: Path,
    seeds: str,
    preset: str = DEFAULT_PRESET,
    workers: int | None = None,
    threads: int | None = None,
    cluster: str | None = None,
    json: bool = False,
    model: ModelOptions = None,
    training: SeedsTrainingOptions = None,
) -> None:
    """Train and study many seeds side by side: is the algorithm the same?

    Each seed is a run of its own, OUT/seed-0 and so on: trained, dissected, its risk measured,
    held against the paper's algorithm. A seed that fails is tried once more and then reported;
    the others go on. Stopped or killed anywhere, the same command goes on from there, and no
    seed is done twice. Writes OUT/sweep.json, sweep.md and sweep.html, a page of small multiples
    about the seeds of this call.

    Parameters
    ----------
    out
        The directory of the sweep.
    seeds
        Which seeds: 0..31, or 3,5,8..12.
    preset
        The recipe (see `carryscope presets`). Any field of it can be changed, as in `train`.
    workers
        Local processes, each at one seed. Default: one for each core. Not with --cluster.
    threads
        Processor threads of each worker. Default: the cores shared out among the workers; on a
        cluster 1. With another number sums are rounded differently.
    cluster
        Address of a dask scheduler (tcp://host:8786) whose workers are to do the work instead.
        They must see OUT under the same path, on a disk that all share, and have this version
        of carryscope. Each of a worker's threads takes a seed: start them with --nthreads 1.
    json
        Print sweep.json.
    """
    config = _recipe(preset, model, training)
    found = sweep_with_progress(
        config, parse_seeds(seeds), out, workers=workers, threads=threads, cluster=cluster
    )
    if json:
        print_json(found)
    else:
        show_sweep(found, out)
    if found.failures:
        first = found.failures[0]
        raise WorkError(
            f"{len(found.failures)} of {len(found.seeds)} seeds failed; seed {first.seed}: "
            f"{first.reason}"
        )


def _recipe(preset: str, model: object, training: object) -> RunConfig:
    """The preset with what was set on the command line."""
    overrides = {
        name: value
        for options in (model, training)
        if options is not None
        for name, value in vars(options).items()
        if value is not None
    }
    if "seed" in overrides:
        raise CallError("A sweep has many seeds: say --seeds, not --seed.")
    if "renew" in overrides:
        raise CallError("A sweep trains from nothing: all parts are new, so leave out --renew.")
    return run_config(preset, overrides)


def parse_seeds(text: str) -> list[int]:
    """The seeds that a person named: `0..31`, or `3,5,8..12`."""
    seeds: list[int] = []
    for part in text.split(","):
        named = re.fullmatch(r"\s*(\d+)(?:\.\.(\d+))?\s*", part)
        if named is None:
            raise CallError(f"seeds must be like 0..31 or 3,5,8..12. Got '{text}'.")
        first, last = int(named[1]), int(named[2] or named[1])
        if last < first:
            raise CallError(f"seeds must go upwards, as in {last}..{first}. Got '{text}'.")
        if len(seeds) + last - first >= MOST_SEEDS:
            raise CallError(f"seeds must be at most {MOST_SEEDS:,} in all. Got '{text}'.")
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))


def sweep_with_progress(
    config: RunConfig,
    seeds: list[int],
    directory: Path,
    *,
    workers: int | None,
    threads: int | None,
    cluster: str | None,
) -> Sweep:
    """Sweep with a bar; Ctrl-C keeps all there is and says how to go on."""
    from carryscope.core.progress import Stopped
    from carryscope.sweep.sweep import sweep as sweep_seeds

    again = f"{program()} {shlex.join(sys.argv[1:])}"
    with stop_on_signal() as stopped, WorkProgress("sweep", len(seeds)) as bar:

        def on_progress(reached: Progress[int, SeedFinding]) -> bool:
            for seed, found in reached.done.items():
                loss, wrong = found.held_out_loss.estimate, found.failure.estimate
                bar.tell(f"seed {seed}", f"held-out loss {loss:.4f}, {wrong:.3%} of answers wrong")
            for seed, why in reached.failed.items():
                bar.tell(f"seed {seed}", f"failed: {why}")
            bar.show(len(reached.done) + len(reached.failed), reached.running)
            return stopped()

        try:
            return sweep_seeds(
                config,
                seeds,
                directory,
                workers=workers,
                threads=threads,
                cluster=cluster,
                on_progress=on_progress,
            )
        except Stopped as stop:
            raise Stopped(f"{stop} Go on with: {again}") from stop


def show_sweep(found: Sweep, directory: Path) -> None:
    """What the seeds come to, for a person."""
    from carryscope.sweep.page import PAGE_FILE

    table = Table(title="In how many seeds it holds", box=SIMPLE_HEAD, title_justify="left")
    for name in ("", "seeds", "95 % interval"):
        table.add_column(name, justify="right" if name else "left")
    for one in found.properties:
        if one.holds.of:
            interval = f"{one.holds.low:.0%} to {one.holds.high:.0%}"
            table.add_row(one.name, f"{one.holds.count} of {one.holds.of}", interval)
    screen.print(table)
    numbers = Table(title="Over the seeds", box=SIMPLE_HEAD, title_justify="left")
    for name in ("", "median", "least", "most"):
        numbers.add_column(name, justify="right" if name else "left")
    for spread in found.numbers:
        ends = (spread.median, spread.least, spread.most)
        numbers.add_row(spread.name, *(f"{value:.4g}" for value in ends))
    screen.print(numbers)
    print_plain(f"{found.statement}\n")
    print_plain(directory / PAGE_FILE)
