"""`carryscope bench`: the speed table."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from carryscope.cli.console import log, print_json, program, screen
from carryscope.cli.train import train_with_progress
from carryscope.core.errors import CallError

if TYPE_CHECKING:
    from benchmarks.speed import Measure
    from carryscope.stages import Run

PEER = Path(".venv-tl/bin/python")
"""Where `make bench` puts a Python with TransformerLens 2.18."""

MODELS = Path("runs/bench")
"""Where the models for other numbers of digits are kept."""

Part = Literal["training", "dissection", "risk", "certificate", "sweep"]


def bench(
    *,
    only: Part | None = None,
    peer: Path = PEER,
    seeds: int = 3,
    rounds: int = 20,
    models: Path = MODELS,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Measure speed, side by side with TransformerLens.

    Every ratio comes from things done in turns in this one run. `make bench` first makes the
    Python with TransformerLens that training and dissection need. Takes about an hour on two
    cores, a good part of it for the dissections at 10 and 15 digits, and for the models at 3, 7
    and 10 digits whose certificates are estimated.

    Parameters
    ----------
    only
        Measure only training, dissection, risk (with the speed of answers), certificate or sweep.
    peer
        A Python that has TransformerLens 2.x.
    seeds
        How many seeds of fast-5 to train.
    rounds
        How many turns each contestant gets in the comparison of steps, and of boxes with
        questions. Node maps have their own.
    models
        Where to keep the models at 3, 7 and 10 digits. Those that are there are used again.
    out
        Where to draw how many boxes a certificate takes: an .svg, .png or .pdf.
    json
        Print the table as JSON.
    """
    if seeds < 1 or rounds < 1:
        raise CallError(f"seeds and rounds must be at least 1. Got {seeds} and {rounds}.")
    if only in (None, "training", "dissection") and not peer.exists():
        raise CallError(f"There is no Python with TransformerLens at {peer}. Make it: make bench")
    if out is not None and only not in (None, "certificate"):
        raise CallError(f"--out is for the figure of the certificate, which --only {only} omits.")
    rows: list[Measure] = []
    if only in (None, "training"):
        rows += _measure_training(peer, seeds, rounds)
    if only in (None, "dissection"):
        rows += _measure_dissection(peer)
    if only in (None, "risk"):
        rows += _measure_risk()
    if only in (None, "certificate"):
        rows += _measure_certificate(models, rounds, out)
    if only in (None, "sweep"):
        rows += _measure_sweep()
    if json:
        print_json(rows)
    else:
        _show(rows)


def _measure_training(python: Path, seeds: int, rounds: int) -> list[Measure]:
    from benchmarks import speed
    from carryscope.model.process import keep_freed_memory
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
        rest = bar.add_task("memory", total=2)
        for name, limit in (("paper-5", 1.0), ("paper-15", 2.0)):
            rows.append(speed.peak_memory(name, limit))
            bar.advance(rest)
    return rows


def _measure_dissection(python: Path) -> list[Measure]:
    from benchmarks import dissection
    from benchmarks.node_maps import node_map_speed
    from carryscope.stages import Run

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
    from benchmarks.risk import answer_speed, risk_rows
    from carryscope.model.process import keep_freed_memory
    from carryscope.stages import Run

    keep_freed_memory()
    with Progress(console=log) as bar:
        task = bar.add_task("answers and risk", total=2)
        rows = answer_speed(Run().model())
        bar.advance(task)
        rows += risk_rows(Run().model())
        bar.advance(task)
    return rows


def _measure_certificate(models: Path, rounds: int, out: Path | None) -> list[Measure]:
    from benchmarks import certificate
    from benchmarks.boxes import count_boxes
    from benchmarks.certificate_figure import boxes_by_digits
    from carryscope.report.figures.figure import check_ending
    from carryscope.stages import Run

    if out is not None:
        check_ending(out)
    with certificate.one_thread():
        runs = [_trained(models, digits) for digits in certificate.DIGITS]
        with _parts("the time of a box", 1) as advance:
            rows = certificate.box_speed(Run().model(), rounds)
            advance("")
        found = []
        for digits, run in zip(certificate.DIGITS, runs, strict=True):
            with _parts(f"boxes at {digits} digits", digits + 1) as advance:
                found.append(count_boxes(run.model(), on_row=advance))
    if out is not None:
        log.print(f"Figure: {boxes_by_digits(found).save(out)}", markup=False, soft_wrap=True)
    return rows + certificate.box_rows(found)


def _measure_sweep() -> list[Measure]:
    from benchmarks.sweep import TURNS, sweep_rows

    with _parts("seeds side by side", 2 * TURNS) as advance:
        return sweep_rows(on_turn=lambda: advance(""))


@contextmanager
def _parts(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal, a log line elsewhere; to be told of each part that is done."""
    if not log.is_terminal:
        log.print(what, markup=False, soft_wrap=True)
    columns = (TextColumn("{task.description:<20}"), BarColumn(bar_width=24), MofNCompleteColumn())
    with Progress(*columns, console=log, disable=not log.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda _: bar.advance(task)


def _trained(models: Path, digits: int) -> Run:
    """The model for so many digits, trained if it is not there yet."""
    from benchmarks.certificate import check_recipe, model_directory, recipe
    from carryscope.stages import SHIPPED, Run
    from carryscope.training.loop import is_finished

    directory = model_directory(models, digits)
    if directory != SHIPPED:
        check_recipe(directory, digits)
        if not is_finished(directory):
            log.print(f"training {directory}", markup=False, soft_wrap=True)
        again = f"{program()} bench --only certificate --models {shlex.quote(str(models))}"
        train_with_progress(recipe(digits), directory, again=again, threads=1)
    return Run(directory)


def _show(rows: list[Measure]) -> None:
    table = Table(title="Speed")
    for column in ("measured", "value", "target", ""):
        table.add_column(column, justify="right" if column == "value" else "left")
    for row in rows:
        met = {True: "met", False: "[red]missed[/]", None: ""}[row.met]
        value = f"{_short(row.value)} {row.unit}".rstrip()
        if row.low is not None and row.high is not None:
            value += f" ({_short(row.low)} to {_short(row.high)})"
        table.add_row(row.name, value, row.target or "", met)
    screen.print(table)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
