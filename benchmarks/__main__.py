"""`python -m benchmarks`, or `make bench`: the speed table."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from cyclopts import App, Parameter
from rich.console import Console

from benchmarks.measure import Measure
from carryscope.cli.main import run as carried_out
from carryscope.core.errors import CallError
from carryscope.core.machine import machine
from carryscope.core.storage import write_output
from carryscope.report.markdown import markdown
from carryscope.report.tables import Table
from carryscope.report.terminal import show
from carryscope.version import __version__

PEER = Path(".venv-tl/bin/python")
"""Where `make bench` puts a Python with TransformerLens 2.18."""

Group = Literal["training", "nodes", "commands", "certificate"]
GROUPS: tuple[Group, ...] = ("training", "nodes", "commands", "certificate")
NEED_PEER = ("training", "nodes")


def bench(
    *, only: Group | None = None, peer: Path = PEER, seeds: int = 3, out: Path | None = None
) -> None:
    """Measure speed, side by side with TransformerLens.

    Every ratio comes from contestants that take turns in this one run.

    Parameters
    ----------
    only
        Measure only training steps, node maps, whole commands or the certificate.
    peer
        A Python that has TransformerLens 2.x.
    seeds
        How many seeds of fast-5 to train.
    out
        Where to write the table as Markdown.
    """
    if seeds < 1:
        raise CallError(f"seeds must be at least 1. Got {seeds}.")
    groups = GROUPS if only is None else (only,)
    if not peer.exists() and any(group in NEED_PEER for group in groups):
        raise CallError(f"There is no Python with TransformerLens at {peer}. Make it: make bench")
    log, found = Console(stderr=True), []
    for group in groups:
        log.print(f"measuring {group} ...", markup=False)
        for measure in measures(group, peer, seeds):
            log.print(f"  {measure.name}: {measure.text}", markup=False, soft_wrap=True)
            found.append(measure)
    if out is not None:
        write_output(out, page(found).encode())
    show([table(found)], Console())


def measures(group: Group, peer: Path, seeds: int) -> Iterator[Measure]:
    """Measure one group, row by row."""
    from benchmarks import certificate, commands, node_maps, training
    from carryscope.core.machine import keep_freed_memory

    keep_freed_memory()
    if group == "training":
        yield from training.training_speed(peer, seeds)
    elif group == "nodes":
        yield from node_maps.node_map_speed(peer)
    elif group == "commands":
        yield from commands.command_costs()
        yield from commands.answer_speed()
        yield from commands.sweep_speed()
    else:
        yield from certificate.certificate_cost()


def table(found: Sequence[Measure]) -> Table:
    """The table, for a terminal and for a page."""
    return Table.of(
        "speed",
        "Speed",
        found,
        {
            "measured": lambda one: one.name,
            "value": lambda one: one.text,
            "target": lambda one: one.target,
            "met": lambda one: {True: "yes", False: "NO", None: ""}[one.met],
            "how": lambda one: one.how,
        },
        text=["target", "met", "how"],
    )


def page(found: Sequence[Measure]) -> str:
    """The table as a page, with the command that made it."""
    command = f"python -m benchmarks {shlex.join(sys.argv[1:])}".rstrip()
    made = f"Written by `{command}` (carryscope {__version__}) on {machine()}."
    turns = "Ratios come from contestants that take turns in one run. Times are for this machine."
    return f"{markdown([table(found)], level=1)}\n\n{made}\n\n{turns}\n"


def run(arguments: Sequence[str]) -> int:
    """Carry out one call and return its exit code: 0 done, 1 failed, 2 a wrong call."""
    app = App(name="python -m benchmarks", default_parameter=Parameter(negative=()))
    app.default(bench)
    return carried_out(arguments, app)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
