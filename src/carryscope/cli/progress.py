"""Bars on a terminal, log lines elsewhere: for the parts of a stage, and for a share of 1."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from carryscope.cli.console import LOG_SECONDS, log
from carryscope.core.errors import WorkError

Advance = Callable[[int], object]

Show = Callable[[float, str], None]
"""Shows how much of the work is done, from 0 to 1, and words beside it."""


def stoppable_bar(
    stopped: Callable[[], bool], message: str
) -> Callable[[str, int], contextlib.AbstractContextManager[Advance]]:
    """A maker of bars that end the work, with a message, once a stop was asked for."""

    @contextlib.contextmanager
    def bar(part: str, answers: int) -> Iterator[Advance]:
        with _bar(part, answers) as advance:

            def on_progress(count: int) -> None:
                advance(count)
                if stopped():
                    raise WorkError(message)

            yield on_progress

    return bar


@contextlib.contextmanager
def _bar(part: str, answers: int) -> Iterator[Advance]:
    """A bar on a terminal, one log line per part elsewhere."""
    name = part.replace("_", " ")
    if not log.is_terminal:
        log.print(f"{name} ({answers:,} answers)", markup=False, soft_wrap=True)
    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("answers"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=log, disable=not log.is_terminal) as progress:
        task = progress.add_task(name, total=answers or None)

        def advance(count: int) -> None:
            progress.advance(task, count)
            done = progress.tasks[task]
            if done.total is not None and done.completed > done.total:
                progress.update(task, total=done.completed)

        yield advance
        progress.update(task, total=progress.tasks[task].completed or 1)
        progress.update(task, completed=progress.tasks[task].total)


@contextlib.contextmanager
def share_bar(name: str) -> Iterator[Show]:
    """A bar for work of which the share that is done is known; elsewhere a line now and then."""
    columns = (
        TextColumn(f"{name:<12}"),
        BarColumn(bar_width=24),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=log, disable=not log.is_terminal) as progress:
        task, last = progress.add_task("", total=1.0), time.monotonic()

        def show(done: float, told: str) -> None:
            nonlocal last
            progress.update(task, completed=done, description=told)
            if not log.is_terminal and time.monotonic() - last > LOG_SECONDS:
                last = time.monotonic()
                log.print(f"{name}: {told}", soft_wrap=True)

        yield show
