"""Bars for the parts of a stage, each of which computes about so many answers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from carryscope.cli.console import log
from carryscope.errors import WorkError

Advance = Callable[[int], object]


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
