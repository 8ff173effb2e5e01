"""A `Progress` that remembers what it hears, and stops the work if it is told when."""

from contextlib import contextmanager

from carryscope.core.progress import Stopped


class Watched:
    def __init__(self, stop_after: int | None = None) -> None:
        self.stop_after = stop_after
        self.begun: list[tuple[str, float | None, str]] = []
        self.amounts: list[float] = []
        self.notes: list[str] = []

    @contextmanager
    def __call__(self, name: str, total: float | None = None, unit: str = ""):
        self.begun.append((name, total, unit))
        yield self.advance

    def advance(self, amount: float = 1, note: str = "") -> None:
        self.amounts.append(amount)
        self.notes.append(note)
        if self.stop_after is not None and len(self.amounts) >= self.stop_after:
            raise Stopped("Stopped.")
