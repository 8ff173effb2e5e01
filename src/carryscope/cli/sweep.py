"""`carryscope sweep`: many seeds of one recipe, side by side."""

from __future__ import annotations

import re
from pathlib import Path

from carryscope.cli.bars import bars
from carryscope.cli.console import print_json, print_plain, screen
from carryscope.cli.options import Json
from carryscope.cli.train import ModelOptions, SeedsTrainingOptions, given
from carryscope.core.errors import CallError, WorkError
from carryscope.training.presets import DEFAULT_PRESET, run_config

MOST_SEEDS = 10_000
"""More seeds than anybody means to name."""


def sweep(
    *,
    out: Path,
    seeds: str,
    preset: str = DEFAULT_PRESET,
    workers: int | None = None,
    threads: int | None = None,
    cluster: str | None = None,
    json: Json = False,
    model: ModelOptions = None,
    training: SeedsTrainingOptions = None,
) -> None:
    """Train and study many seeds side by side: do they add the same way?

    Each seed is a run of its own, OUT/seed-0 and so on: trained, dissected, its risk measured,
    compared with the paper's algorithm. A seed that fails is tried once more and then reported;
    the others go on. After a stop or a kill the same command continues, and no seed is done
    twice. Writes OUT/sweep.json, sweep.md and sweep.html, a page about the seeds of this call.

    Parameters
    ----------
    out
        The directory of the sweep.
    seeds
        Which seeds: 0..31, or 3,5,8..12.
    preset
        The recipe (see `carryscope presets`). Any field of it can be changed, as in `train`.
    workers
        Local processes, each with one seed. Default: one for each core. Not with --cluster.
    threads
        Processor threads of each worker. Default: the cores divided among the workers; on a
        cluster 1. With another number sums are rounded differently.
    cluster
        Address of a dask scheduler (tcp://host:8786) whose workers do the work instead. They
        must see OUT under the same path, on a disk that all share, and have this version of
        carryscope. Each of a worker's threads takes a seed: start them with --nthreads 1.
    """
    config, named = run_config(preset, given(model, training)), parse_seeds(seeds)
    from carryscope.report.terminal import show
    from carryscope.sweeps.page import PAGE_FILE, summary_parts
    from carryscope.sweeps.running import sweep as sweep_seeds

    with bars() as progress:
        found = sweep_seeds(
            config,
            named,
            out,
            workers=workers,
            threads=threads,
            cluster=cluster,
            progress=progress,
        )
    if json:
        print_json(found)
    else:
        show(summary_parts(found), screen)
        print_plain(out / PAGE_FILE)
    if found.failures:
        seed, why = next(iter(found.failures.items()))
        raise WorkError(f"{len(found.failures)} of {len(named)} seeds failed; seed {seed}: {why}")


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
