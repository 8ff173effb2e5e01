"""What a benchmark returns, and the ways to measure it.

    Measure(name="training step", value=4.6, unit="x", at_least=4, how="TransformerLens = 1")

Ratios come from contestants that take turns in one run, so that a busy machine slows all of them
alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import msgspec

Turn = Callable[[], float]
"""Takes one turn and returns its seconds per item."""


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the speed table."""

    name: str
    value: float
    unit: str = ""
    how: str
    """How it was measured, in a few words."""
    at_least: float | None = None
    at_most: float | None = None
    """The target, if there is one."""

    @property
    def target(self) -> str:
        """The target as text."""
        if self.at_least is not None:
            return f"at least {short(self.at_least)}"
        return "" if self.at_most is None else f"at most {short(self.at_most)}"

    @property
    def met(self) -> bool | None:
        """Whether the value meets its target; None without a target."""
        if self.at_least is not None:
            return self.value >= self.at_least
        return None if self.at_most is None else self.value <= self.at_most

    @property
    def text(self) -> str:
        """The value with its unit."""
        return f"{short(self.value)} {self.unit}".rstrip()


def short(value: float) -> str:
    """A number to three digits; from a thousand on, to the unit."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def timed(do: Callable[[], object], *, repeat: int = 1, items: int = 1) -> Turn:
    """A turn that repeats a call; `items` is how many items one call handles."""

    def turn() -> float:
        began = time.perf_counter()
        for _ in range(repeat):
            do()
        return (time.perf_counter() - began) / (repeat * items)

    return turn


def in_turns(
    contestants: dict[str, Turn], rounds: int, *, warm_up: bool = True
) -> dict[str, float]:
    """The median seconds per item of each contestant, one turn each in every round."""
    if warm_up:
        for turn in contestants.values():
            turn()
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, turn in contestants.items():
            seconds[name].append(turn())
    return {name: median(times) for name, times in seconds.items()}
