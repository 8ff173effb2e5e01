"""`python -m benchmarks`, or `make bench`: the speed table."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from cyclopts import App, CycloptsError, Parameter
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Measure
from carryscope.core.errors import CallError, WorkError
from carryscope.core.machine import machine
from carryscope.version import __version__

PEER = Path(".venv-tl/bin/python")
"""Where `make bench` puts a Python with TransformerLens 2.18."""

Group = Literal["training", "dissection", "risk", "certificate", "sweep"]
GROUPS: tuple[Group, ...] = ("training", "dissection", "risk", "certificate", "sweep")
NEED_PEER = ("training", "dissection")

log, screen = Console(stderr=True), Console()


def bench(
    *,
    only: Group | None = None,
    peer: Path = PEER,
    seeds: int = 3,
    rounds: int = 20,
    models: Path = Path("runs/bench"),
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Measure speed, side by side with TransformerLens.

    Every ratio comes from contestants that take turns in this one run. Takes about an hour on
    two cores. Most of it goes to the dissections at 10 and 15 digits, and to the models at 3, 7
    and 10 digits whose certificates are estimated.

    Parameters
    ----------
    only
        Measure only training, dissection, risk (and the speed of answers), certificate or sweep.
    peer
        A Python that has TransformerLens 2.x.
    seeds
        How many seeds of fast-5 to train.
    rounds
        Turns of each contestant in the comparison of training steps.
    models
        Where to keep the models at 3, 7 and 10 digits. Those that are there are used again.
    out
        Where to write the table as Markdown.
    json
        Print the table as JSON.
    """
    if seeds < 1 or rounds < 1:
        raise CallError(f"seeds and rounds must be at least 1. Got {seeds} and {rounds}.")
    groups = GROUPS if only is None else (only,)
    if not peer.exists() and any(group in NEED_PEER for group in groups):
        raise CallError(f"There is no Python with TransformerLens at {peer}. Make it: make bench")
    found = []
    for group in groups:
        log.print(f"measuring {group} ...", markup=False)
        for measure in measures(group, peer=peer, seeds=seeds, rounds=rounds, models=models):
            log.print(f"  {measure.name}: {measure.text}", markup=False, soft_wrap=True)
            found.append(measure)
    if out is not None:
        out.write_text(markdown(found))
    if json:
        screen.print(msgspec.json.encode(found).decode(), markup=False, soft_wrap=True)
    else:
        screen.print(table(found))


def measures(
    group: Group, *, peer: Path, seeds: int, rounds: int, models: Path
) -> Iterator[Measure]:
    """Measure one group, row by row."""
    import carryscope
    from benchmarks import certificate, dissection, node_maps, risk, sweep, training
    from carryscope.model.process import keep_freed_memory

    keep_freed_memory()
    if group == "training":
        yield from training.training_speed(peer, seeds=seeds, rounds=rounds)
        yield from training.training_memory()
    elif group == "dissection":
        yield from node_maps.node_map_speed(carryscope.load().model(), peer)
        for subject in dissection.SUBJECTS:
            yield from dissection.dissection_cost(subject)
    elif group == "risk":
        yield from risk.answer_speed(carryscope.load().model())
        yield from risk.risk_cost(carryscope.load().model())
    elif group == "certificate":
        yield from certificate.certificate_cost(models)
    else:
        yield from sweep.sweep_speed()


HEADINGS = ("measured", "value", "target", "met", "how")


def cells(measure: Measure) -> tuple[str, ...]:
    """One row of the table, as text."""
    met = {True: "yes", False: "NO", None: ""}[measure.met]
    return measure.name, measure.text, measure.target, met, measure.how


def table(found: Sequence[Measure]) -> Table:
    """The table for a terminal."""
    shown = Table(title="Speed")
    for heading in HEADINGS:
        shown.add_column(heading, justify="right" if heading == "value" else "left")
    for measure in found:
        shown.add_row(*cells(measure), style="red" if measure.met is False else None)
    return shown


def markdown(found: Sequence[Measure]) -> str:
    """The table as a page, with the command that made it."""
    command = f"python -m benchmarks {shlex.join(sys.argv[1:])}".rstrip()
    lines = [
        "# Speed",
        "",
        f"Written by `{command}` (carryscope {__version__}) on {machine()}.",
        "",
        "Ratios come from contestants that take turns in one run. Times are for this machine.",
        "",
        f"| {' | '.join(HEADINGS)} |",
        f"|{'---|' * len(HEADINGS)}",
        *(f"| {' | '.join(cells(measure))} |" for measure in found),
    ]
    return "\n".join(lines) + "\n"


def run(arguments: Sequence[str]) -> int:
    """Carry out one call and return its exit code: 0 done, 1 failed, 2 a wrong call."""
    app = App(name="python -m benchmarks", default_parameter=Parameter(negative=()))
    app.default(bench)
    try:
        app(arguments, exit_on_error=False, print_error=False, result_action="return_none")
    except (CallError, CycloptsError) as error:
        print("benchmarks:", " ".join(str(error).split()), file=sys.stderr)
        return 2
    except (WorkError, OSError) as error:
        print("benchmarks:", " ".join(str(error).split()), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
