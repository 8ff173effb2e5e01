"""How a stage says how far it is, and learns that it should stop: one protocol for all of them.

    with progress("risk", total=1_000_000, unit="questions") as advance:
        ...
        advance(4_096, "0.62 % wrong so far")

A stage calls `advance` as it goes. Whoever watches may raise `Stopped` from there, because a
person pressed Ctrl-C or a driver was told to end. A stage that can keep what it has catches it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, runtime_checkable

from carryscope.core.errors import WorkError


class Stopped(WorkError):
    """The work was asked to stop. What was kept, and how to continue, is in the message."""


@runtime_checkable
class Advance(Protocol):
    """Hears how much more is done, and a few words about it."""

    def __call__(self, amount: int | float = 1, note: str = "") -> None: ...


@runtime_checkable
class Progress(Protocol):
    """Begins a piece of work: its name, how much there is to do (if known), in which unit."""

    def __call__(
        self, name: str, total: int | float | None = None, unit: str = ""
    ) -> AbstractContextManager[Advance]: ...


def unheard(amount: int | float = 1, note: str = "") -> None:
    """For whoever does not watch."""


def silent(
    name: str, total: int | float | None = None, unit: str = ""
) -> AbstractContextManager[Advance]:
    """Progress that nobody watches and that never stops the work."""
    return nullcontext(unheard)


def stopping(over: Callable[[], bool], why: str, progress: Progress = silent) -> Progress:
    """The same progress, but it stops the work once `over` says so."""

    @contextmanager
    def watched(name: str, total: int | float | None = None, unit: str = "") -> Iterator[Advance]:
        with progress(name, total, unit) as advance:

            def checked(amount: int | float = 1, note: str = "") -> None:
                advance(amount, note)
                if over():
                    raise Stopped(why)

            yield checked

    return watched
