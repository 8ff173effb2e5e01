"""`carryscope repair`: from a model that fails to one that does not, in a copy."""

from __future__ import annotations

from pathlib import Path

from carryscope.cli.bars import bars
from carryscope.cli.console import opened, print_finding
from carryscope.cli.options import AnyRun, Json, Threads, Verbose


def repair(
    run: AnyRun = None,
    /,
    *,
    out: Path,
    minutes: float = 30.0,
    threads: Threads = None,
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Repair a model that fails, in a copy, and prove the result.

    Measures how often the model fails, and finds the columns that no head reads where they are
    needed. Adds heads for them, which change no answer at first, and trains on cascades and on
    the questions that fail. It ends when no tested question fails and the certificate has decided
    what it can, or when the time is up. The run itself never changes. Ctrl-C loses nothing: the
    same command continues. For models of one layer.

    Parameters
    ----------
    out
        The directory of the repaired run. Every round is kept in its `rounds`.
    minutes
        Stop after this many minutes.
    """
    from carryscope.core.machine import use_machine
    from carryscope.repairing import REPAIR
    from carryscope.repairing import repair as repair_run

    chosen = opened(run)
    use_machine(threads)
    with bars() as progress:
        found = repair_run(chosen, out, minutes=minutes, threads=threads, progress=progress)
    print_finding(found, out / REPAIR.file, json=json, verbose=verbose)
