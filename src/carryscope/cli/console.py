"""What every command shares: where it prints, how it shows progress, how it is asked to stop."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator
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
    TimeRemainingColumn,
)

if TYPE_CHECKING:
    from carryscope.training.losses import StepRecord

out = Console(highlight=False)
"""Results."""

log = Console(stderr=True, highlight=False)
"""Progress and remarks: never mixed into results."""

LOG_SECONDS = 10.0
"""Time between log lines where there is no terminal for a bar."""

SMOOTHING = 0.95
"""How much of the shown loss is carried over from step to step; single steps swing wildly."""


def print_json(record: Any) -> None:
    """A record as JSON on standard output."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n")


@contextlib.contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C (or SIGTERM) into a request to stop; a second one interrupts."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.signal(number, signal.default_int_handler)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class TrainingProgress:
    """A bar on a terminal, a log line now and then elsewhere."""

    def __init__(self, steps: int, batch: int, names: list[str]) -> None:
        self._steps, self._batch, self._names = steps, batch, names
        self._smooth: list[float] = []
        self._first_step = 0
        self._began = self._logged = time.monotonic()
        self._bar = Progress(
            TextColumn("training"),
            BarColumn(),
            TaskProgressColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=log,
            disable=not log.is_terminal,
        )
        self._task = self._bar.add_task("", total=steps)

    def __enter__(self) -> TrainingProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, record: StepRecord) -> None:
        if not self._smooth:
            self._first_step, self._smooth = record.step - 1, record.digit_loss
            self._began = time.monotonic()
        pairs = zip(self._smooth, record.digit_loss, strict=True)
        self._smooth = [SMOOTHING * old + (1 - SMOOTHING) * new for old, new in pairs]
        if log.is_terminal:
            self._bar.update(self._task, completed=record.step, description=self._status(record))
        elif time.monotonic() - self._logged > LOG_SECONDS or record.step == self._steps:
            self._logged = time.monotonic()
            left = self._seconds_per_step(record) * (self._steps - record.step)
            where = f"step {record.step} of {self._steps}"
            log.print(f"{where}  {self._status(record)}  {left:.0f} s left", soft_wrap=True)

    def _status(self, record: StepRecord) -> str:
        worst = max(range(len(self._smooth)), key=self._smooth.__getitem__)
        loss = sum(self._smooth) / len(self._smooth)
        rate = self._batch / self._seconds_per_step(record)
        return (
            f"loss {loss:.4f}  worst {self._names[worst]} {self._smooth[worst]:.4f}  "
            f"{rate:,.0f} questions/s"
        )

    def _seconds_per_step(self, record: StepRecord) -> float:
        done = max(1, record.step - self._first_step)
        return max(1e-9, time.monotonic() - self._began) / done
