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
from carryscope.core.words import visible

LOG_SECONDS = 10.0
"""Time between log lines where there is no terminal for a bar."""


class Bars:
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
        shown = (_Bar if log.is_terminal else _Lines)(name.replace("_", " "), total, unit)

        def advance(amount: int | float = 1, note: str = "") -> None:
            shown.advance(amount, note)
            if self._stop:
                raise Stopped("Stopped. What was finished is kept.")

        with shown:
            yield advance


@contextlib.contextmanager
def bars() -> Iterator[Progress]:
    """Bars for as long as a command works, with Ctrl-C and SIGTERM turned into a wish to stop."""
    shown = Bars()
    handled = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, shown.request_stop) for number in handled}
    try:
        yield shown
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Bar:
    """A bar: name, how much is done, a note, and the time that is left."""

    def __init__(self, name: str, total: int | float | None, unit: str) -> None:
        self._unit = unit
        columns = (
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[done]} {task.fields[note]}", markup=False),
            TimeRemainingColumn(),
        )
        self._bar = RichProgress(*columns, console=log)
        self._task = self._bar.add_task(name, total=total, done="", note="")

    def __enter__(self) -> None:
        self._bar.start()

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if failed is None:
            done = self._bar.tasks[0].completed or 1
            self._bar.update(self._task, total=done, completed=done)
        self._bar.stop()

    def advance(self, amount: int | float, note: str) -> None:
        task = self._bar.tasks[0]
        self._bar.advance(self._task, amount)
        if task.total is not None and task.completed > task.total:
            self._bar.update(self._task, total=task.completed)
        note = visible(note) or task.fields["note"]
        self._bar.update(
            self._task, done=_so_far(task.completed, task.total, self._unit), note=note
        )


class _Lines:
    """Log lines: one when the work begins, one now and then, one at the end."""

    def __init__(self, name: str, total: int | float | None, unit: str) -> None:
        self._name, self._total, self._unit = name, total, unit
        self._done, self._note = 0.0, ""
        self._began = time.monotonic()
        self._logged = self._began - LOG_SECONDS

    def __enter__(self) -> None:
        much = f" ({self._total:,.0f} {self._unit})" if self._total and self._unit else ""
        self._print(f"{self._name}{much}")

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if failed is None and self._note:
            self._print(f"{self._name}: {self._note}")

    def advance(self, amount: int | float, note: str) -> None:
        self._done += amount
        self._note = note or self._note
        now = time.monotonic()
        if now - self._logged > LOG_SECONDS:
            self._logged = now
            done = _so_far(self._done, self._total, self._unit)
            self._print(f"{self._name}: {done} {self._note} {self._left(now)}".rstrip())

    def _left(self, now: float) -> str:
        if not self._total or not self._done:
            return ""
        left = (now - self._began) / self._done * max(0.0, self._total - self._done)
        return f"({left:.0f} s left)"

    def _print(self, line: str) -> None:
        print_plain(line, to=log)


def _so_far(done: int | float, total: int | float | None, unit: str) -> str:
    """How much is done: a count of things, or a share."""
    if not unit:
        return f"{done / total:.0%}" if total else ""
    of = f"/{total:,.0f}" if total else ""
    return f"{done:,.0f}{of} {unit}"
