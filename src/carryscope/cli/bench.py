"""`carryscope bench`: the speed table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.progress import Progress
from rich.table import Table

from carryscope.cli.console import log, print_json, screen
from carryscope.errors import CallError

if TYPE_CHECKING:
    from carryscope.benchmark.speed import Measure

PEER = Path(".venv-tl/bin/python")
"""Where `make bench` puts a Python with TransformerLens 2.18."""


Part = Literal["training", "dissection", "risk"]


def bench(
    *,
    only: Part | None = None,
    peer: Path = PEER,
    seeds: int = 3,
    rounds: int = 20,
    json: bool = False,
) -> None:
    """Measure speed, side by side with TransformerLens.

    Every ratio comes from things done in turns in this one run. `make bench` first makes the
    Python with TransformerLens that this needs. Takes about half an hour on two cores, a good
    part of it for the dissections at 10 and 15 digits.

    Parameters
    ----------
    only
        Measure only training, dissection or risk.
    peer
        A Python that has TransformerLens 2.x.
    seeds
        How many seeds of fast-5 to train.
    rounds
        How many turns each contestant gets in the comparison of steps. Node maps have their own.
    json
        Print the table as JSON.
    """
    if seeds < 1 or rounds < 1:
        raise CallError(f"seeds and rounds must be at least 1. Got {seeds} and {rounds}.")
    if not peer.exists():
        raise CallError(f"There is no Python with TransformerLens at {peer}. Make it: make bench")
    rows: list[Measure] = []
    if only in (None, "training"):
        rows += _measure_training(peer, seeds, rounds)
    if only in (None, "dissection"):
        rows += _measure_dissection(peer)
    if only in (None, "risk"):
        rows += _measure_risk()
    if json:
        print_json(rows)
    else:
        _show(rows)


def _measure_training(python: Path, seeds: int, rounds: int) -> list[Measure]:
    from carryscope.benchmark import speed
    from carryscope.model.process import keep_freed_memory
    from carryscope.runs import Run
    from carryscope.training.presets import preset

    keep_freed_memory()
    steps = preset("fast-5").training.steps
    with Progress(console=log) as bar, speed.peer_steps(python, speed.threads()) as tl:
        comparing = bar.add_task("comparing steps", total=1)
        rows, tl_step = speed.step_speed(tl, rounds)
        bar.update(comparing, completed=1)
        training = bar.add_task(f"training {seeds} seeds", total=seeds * steps)
        runs, tl_steps = [], [tl_step]
        for seed in range(seeds):
            runs.append(speed.time_to_loss(seed, lambda: bar.advance(training)))
            tl_steps.append(tl(speed.TURN) / speed.TURN)
        rows += speed.loss_rows(runs, speed.PAPER_STEPS * sum(tl_steps) / len(tl_steps))
    with Progress(console=log) as bar:
        rest = bar.add_task("predictions and memory", total=3)
        rows += speed.prediction_speed(Run().model(), 20_000)
        bar.advance(rest)
        for name, limit in (("paper-5", 1.0), ("paper-15", 2.0)):
            rows.append(speed.peak_memory(name, limit))
            bar.advance(rest)
    return rows


def _measure_dissection(python: Path) -> list[Measure]:
    from carryscope.benchmark import dissection
    from carryscope.benchmark.node_maps import node_map_speed
    from carryscope.runs import Run

    with Progress(console=log) as bar:
        maps = bar.add_task("comparing node maps", total=1)
        rows = node_map_speed(Run().model(), python)
        bar.advance(maps)
        whole = bar.add_task("whole dissections", total=1 + len(dissection.LONGER))
        rows += dissection.shipped_rows()
        bar.advance(whole)
        for digits in dissection.LONGER:
            rows += dissection.longer_rows(digits)
            bar.advance(whole)
    return rows


def _measure_risk() -> list[Measure]:
    from carryscope.benchmark.risk import risk_rows
    from carryscope.runs import Run

    with Progress(console=log) as bar:
        task = bar.add_task("risk", total=1)
        rows = risk_rows(Run().model())
        bar.advance(task)
    return rows


def _show(rows: list[Measure]) -> None:
    table = Table(title="Speed")
    for column in ("measured", "value", "target", ""):
        table.add_column(column, justify="right" if column == "value" else "left")
    for row in rows:
        met = {True: "met", False: "[red]missed[/]", None: ""}[row.met]
        value = f"{row.value:,.0f}" if row.value >= 1000 else f"{row.value:.3g}"
        table.add_row(row.name, f"{value} {row.unit}", row.target or "", met)
    screen.print(table)
