"""Progress for a person: a bar on a terminal, a line now and then elsewhere; Ctrl-C stops.

The first Ctrl-C (or SIGTERM) asks the work to stop: the next `advance` raises `Stopped`. A
second one interrupts at once.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from types import FrameType

from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from carryscope.cli.console import log, print_plain
from carryscope.core.progress import Advance, Progress, Stopped
from carryscope.core.words import brief, visible

LOG_SECONDS = 10.0
"""Time between log lines where there is no terminal for a bar."""


@contextlib.contextmanager
def bars(threads: int | None = None) -> Iterator[Progress]:
    """Bars for as long as a command works, with so many threads.

    Ctrl-C and SIGTERM become a wish to stop.
    """
    from carryscope.core.machine import use_machine

    use_machine(threads)
    shown = _Bars()
    handled = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, shown.request_stop) for number in handled}
    try:
        yield shown
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Bars:
    """Shows what the stages report, and passes on the wish to stop."""

    def __init__(self) -> None:
        self._stop = False

    def request_stop(self, number: int, _: FrameType | None) -> None:
        """Handle the first signal; the next one interrupts."""
        self._stop = True
        signal.signal(number, signal.default_int_handler)

    @contextlib.contextmanager
    def __call__(
        self, name: str, total: int | float | None = None, unit: str = ""
    ) -> Iterator[Advance]:
        """One piece of work."""
        shown = _Work(name.replace("_", " "), total, unit)

        def advance(amount: int | float = 1, note: str = "") -> None:
            shown.advance(amount, note)
            if self._stop:
                raise Stopped("Stopped. What was finished is kept.")

        with shown:
            yield advance


class _Work:
    """One piece of work: its name, how much is done, a note, and the time that is left."""

    def __init__(self, name: str, total: int | float | None, unit: str) -> None:
        columns = (
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[done]} {task.fields[note]}", markup=False),
            TimeRemainingColumn(),
        )
        self._unit, self._logged = unit, time.monotonic() - LOG_SECONDS
        self._bar = RichProgress(*columns, console=log, disable=not log.is_terminal)
        self._bar.add_task(name, total=total, done="", note="")
        self._task = self._bar.tasks[0]

    def __enter__(self) -> None:
        total = self._task.total
        self._bar.start()
        self._log(f" ({total:,.0f} {self._unit})" if total and self._unit else "")

    def advance(self, amount: int | float, note: str) -> None:
        task = self._task
        self._bar.update(task.id, advance=amount, note=visible(note) or task.fields["note"])
        if task.total is not None and task.completed > task.total:
            self._bar.update(task.id, total=task.completed)
        self._bar.update(task.id, done=self._done())
        if time.monotonic() - self._logged > LOG_SECONDS:
            self._logged, left = time.monotonic(), task.time_remaining
            rest = f" ({left:.0f} s left)" if left is not None else ""
            self._log(f": {task.fields['done']} {task.fields['note']}".rstrip() + rest)

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if failed is None:
            done, note = self._task.completed or 1, self._task.fields["note"]
            self._bar.update(self._task.id, total=done, completed=done)
            self._log(f": {note}" if note else ": done")
        if log.is_terminal:
            self._bar.stop()

    def _log(self, words: str) -> None:
        """A line about it, where there is no bar."""
        if not log.is_terminal:
            print_plain(f"{self._task.description}{words}", to=log)

    def _done(self) -> str:
        """How much is done: a count of things, or a share."""
        done, total = self._task.completed, self._task.total
        if not self._unit:
            return brief(done / total) if total else ""
        return f"{done:,.0f}{f'/{total:,.0f}' if total else ''} {self._unit}"
