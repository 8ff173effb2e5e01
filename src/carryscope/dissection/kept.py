"""A dissection kept in a run directory: made part by part, and not made twice.

In: a run directory and its model. Out: the `Dissection`, on disk after every part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from carryscope.core.errors import CallError
from carryscope.core.storage import only_writer
from carryscope.dissection.dissect import Bar, dissect, no_bar, same_subject
from carryscope.dissection.exchange import write_exchange
from carryscope.dissection.findings import (
    DISSECTION_FILE,
    Dissection,
    chosen_parts,
    read_dissection,
    write_dissection,
)
from carryscope.model.transformer import Transformer
from carryscope.training.losses import StepRecord


def keep_dissection(
    directory: Path,
    model: Transformer,
    metrics: Callable[[], Sequence[StepRecord]],
    only: str | Sequence[str] | None,
    *,
    seed: int | None,
    again: bool,
    bar: Bar = no_bar,
) -> Dissection:
    """Dissect the model of a run, or the parts named in `only`, and keep what is found.

    `again` makes the parts anew; with another seed all that is there is made anew, so `only`
    is refused then: half of the findings would be of another sample.
    """
    if seed is not None and seed < 0:
        raise CallError(f"seed must be at least 0. Got {seed}.")
    parts = chosen_parts(only)
    there = (directory / DISSECTION_FILE).exists() and not (again and only is None)
    known = read_dissection(directory) if there else None
    if known is not None and seed not in (None, known.seed) and only is not None:
        raise CallError(f"The findings have seed {known.seed}. Leave out --only to make all anew.")
    seed = seed if seed is not None else known.seed if known else 0
    if known is not None and again:
        known = msgspec.structs.replace(known, **dict.fromkeys(parts))
    work = dissect(model, metrics, seed=seed, parts=parts, known=known, bar=bar)
    found = next(work)
    if known is not None and same_subject(known, found) and not again:
        missing = [part for part in parts if getattr(found, part) is None]
        if not missing:
            return found
    with only_writer(directory):
        for found in work:
            write_dissection(found, directory)
            write_exchange(found, directory)
    return found
