"""What every command shares: where it prints, how it shows progress, how it is asked to stop."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from shutil import which
from types import FrameType
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

if TYPE_CHECKING:
    from carryscope.training.config import TrainingConfig
    from carryscope.training.losses import StepRecord

screen = Console(highlight=False)
"""Results."""

log = Console(stderr=True, highlight=False)
"""Progress and remarks: never mixed into results."""

SHOWN_RUNNING = 4
"""Runs at work that are named in a bar."""

LOG_SECONDS = 10.0
"""Time between log lines where there is no terminal for a bar."""

SMOOTHING = 0.95
"""How much of the shown loss is carried over from step to step; single steps swing wildly."""


def print_json(record: Any) -> None:
    """A record as JSON on standard output."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n")


def print_plain(text: object) -> None:
    """A line as it is: a path may hold brackets that look like markup, and must not be wrapped."""
    screen.print(str(text), markup=False, soft_wrap=True)


def program() -> str:
    """How this program was called, for a hint that can be pasted."""
    called = Path(sys.argv[0])
    return str(called) if called.name == "carryscope" and not which("carryscope") else "carryscope"


@contextlib.contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C (or SIGTERM) into a request to stop; a second one interrupts."""
    requested = False

    def request(number: int, frame: FrameType | None) -> None:
        nonlocal requested
        requested = True
        signal.signal(number, signal.default_int_handler)

    handled = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, request) for number in handled}
    try:
        yield lambda: requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class TrainingProgress:
    """A bar on a terminal, a log line now and then elsewhere."""

    def __init__(self, recipe: TrainingConfig, names: list[str]) -> None:
        self._recipe, self._names = recipe, names
        self._smooth: list[float] = []
        self._done = self._fresh = 0
        self._all = recipe.questions_in(recipe.steps)
        self._began = time.monotonic()
        self._logged = self._began
        self._bar = Progress(
            BarColumn(bar_width=12),
            TaskProgressColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=log,
            disable=not log.is_terminal,
        )
        self._task = self._bar.add_task("", total=self._all)

    def __enter__(self) -> TrainingProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, record: StepRecord) -> None:
        size = self._recipe.batch_at(record.step - 1)
        if self._smooth:
            self._fresh += size
        else:  # the clock starts after the first step
            self._smooth, self._began = record.digit_loss, time.monotonic()
            self._done = self._recipe.questions_in(record.step - 1)
        self._done += size
        pairs = zip(self._smooth, record.digit_loss, strict=True)
        self._smooth = [SMOOTHING * old + (1 - SMOOTHING) * new for old, new in pairs]
        if log.is_terminal:
            now = "measuring" if self._done == self._all else self._status(record)
            self._bar.update(self._task, completed=self._done, description=now)
        elif time.monotonic() - self._logged > LOG_SECONDS or self._done == self._all:
            self._logged = time.monotonic()
            left = self._elapsed() / max(1, self._fresh) * (self._all - self._done)
            log.print(f"step {self._status(record)}, {left:.0f} s left", soft_wrap=True)

    def _status(self, record: StepRecord) -> str:
        worst = max(range(len(self._smooth)), key=self._smooth.__getitem__)
        loss = sum(self._smooth) / len(self._smooth)
        rate = self._fresh / self._elapsed()
        return (
            f"{record.step}/{self._recipe.steps} loss {loss:.4f} "
            f"worst {self._names[worst]} {self._smooth[worst]:.4f} {rate:,.0f}/s"
        )

    def _elapsed(self) -> float:
        return max(1e-9, time.monotonic() - self._began)


class WorkProgress:
    """Runs that are worked on side by side: a bar on a terminal; elsewhere a line now and then."""

    def __init__(self, title: str, of: int) -> None:
        self._title, self._of = title, of
        self._told: set[str] = set()
        self._logged = time.monotonic()
        columns = (
            TextColumn(title),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
        )
        self._bar = Progress(*columns, console=log, disable=not log.is_terminal)
        self._task = self._bar.add_task("", total=of)

    def __enter__(self) -> WorkProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def tell(self, name: str, what: str) -> None:
        """A line about a run that is over, once."""
        if name not in self._told:
            self._told.add(name)
            log.print(f"{name}: {what}", markup=False, soft_wrap=True)

    def show(self, over: int, running: Mapping[Any, str]) -> None:
        """How many are over, and what the others are at."""
        named = [f"{name} {stage}" for name, stage in running.items()]
        rest = f" and {len(named) - SHOWN_RUNNING} more" if len(named) > SHOWN_RUNNING else ""
        at_work = "; ".join(named[:SHOWN_RUNNING]) + rest
        self._bar.update(self._task, completed=over, description=at_work)
        if not log.is_terminal and time.monotonic() - self._logged > LOG_SECONDS:
            self._logged = time.monotonic()
            log.print(f"{self._title}: {over} of {self._of}; {at_work}", soft_wrap=True)
