"""A page about a training that is still running: written anew now and then, it reloads itself.

In: the progress of a training, and its run directory. Out: `live.html` there. No server is needed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec

from carryscope.core.errors import command
from carryscope.core.progress import Advance, Progress
from carryscope.core.storage import read_bytes
from carryscope.dissection.story import training_story
from carryscope.report.figures.curves import digit_curves, task_curves
from carryscope.report.page import page_of
from carryscope.report.parts import Commands, Part, Picture, Section, Text
from carryscope.task.tokens import Format
from carryscope.training.checkpoint import METRICS_FILE
from carryscope.training.losses import StepRecord

LIVE_FILE = "live.html"

SECONDS = 5
"""Time between two pages. One takes some tenths of a second to write."""


def watched(progress: Progress, directory: Path, layout: Format) -> Progress:
    """The same progress, which also keeps a page up to date."""

    @contextmanager
    def watching(name: str, total: int | float | None = None, unit: str = "") -> Iterator[Advance]:
        said, written = "Training begins", 0.0

        def advance(amount: int | float = 1, note: str = "") -> None:
            nonlocal said, written
            said = note or said
            if time.monotonic() - written > SECONDS:
                write_live(directory, layout, said, over=False)
                written = time.monotonic()
            tell(amount, note)

        with progress(name, total, unit) as tell:
            try:
                yield advance
            finally:
                write_live(directory, layout, said, over=True)

    return watching


def write_live(directory: Path, layout: Format, note: str, *, over: bool) -> None:
    """Write the page: where the training is, and the losses so far."""
    path = directory / METRICS_FILE
    whole = read_bytes(path).rpartition(b"\n")[0] if path.exists() else b""
    metrics = msgspec.json.Decoder(StepRecord).decode_lines(whole)
    parts: list[Part] = [Text("The training has ended." if over else f"New every {SECONDS} s.")]
    if metrics:
        story = training_story(metrics, layout)
        parts += [
            Picture("digits", partial(digit_curves, story)),
            Picture("learning", partial(task_curves, story)),
        ]
    if over:
        parts.append(Commands([command("report", directory)]))
    title = re.sub("[▁-█]+ ?", "", f"{note[:1].upper()}{note[1:]}")
    sections = [Section("live", title, "Losses", parts)]
    page = page_of(
        f"Training {directory.name}", "carryscope train", sections, reload=0 if over else SECONDS
    )
    page.save(directory / LIVE_FILE)
