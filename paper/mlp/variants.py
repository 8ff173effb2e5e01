"""The variants of the MLP study, and their training.

In: a trained run with an MLP, the base. Out: more runs, each an ordinary one that can be stopped
and gone on with, and when each came near the base's held-out loss.

    no-mlp                the same recipe for a model without an MLP
    fresh-mlp             from the base: the MLP drawn anew and trained, all else frozen
    fresh-attention       from the base: the attention drawn anew and trained, all else frozen
    untrained-attention   control of fresh-mlp: attention drawn anew too, and left untrained
    untrained-mlp         control of fresh-attention: MLP drawn anew too, and left untrained

What `attention` and `mlp` are stands in `training/parts.py`. Embeddings and readout are frozen in
the last four: if they could move, a success would not be that of the one part which is new, and
the readout could learn to read what the frozen part writes. A control differs from its variant in
one thing, whether the frozen part was ever trained. All four have the seed after the base's: with
its own, the new weights would be the very ones the base had begun with, on the same questions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from carryscope.training.parts import Part, all_but

from carryscope.core.errors import CallError
from carryscope.core.storage import read_json, write_json
from carryscope.model.files import weights_hash
from carryscope.model.run_files import CONFIG_FILE
from carryscope.stages import Run
from carryscope.training.config import LARGEST_SEED, RunConfig
from carryscope.training.loop import train
from carryscope.training.losses import StepRecord
from carryscope.training.presets import changed
from carryscope.training.starting import started_config
from paper.mlp.finding import (
    AS_GOOD,
    FRESH_ATTENTION,
    FRESH_MLP,
    NO_MLP,
    UNTRAINED_ATTENTION,
    UNTRAINED_MLP,
    Milestone,
)

RELEARNING_FILE = Path("findings") / "relearning.json"

TIMES = (10, AS_GOOD, 1)
"""Factors of the base's held-out loss at which the steps of a training are noted."""


@dataclass(frozen=True)
class Variant:
    """How one model of the study is made from the base."""

    name: str
    about: str
    renew: tuple[Part, ...] = ()
    learns: Part | None = None
    """The one part that is trained; None trains a model without an MLP from nothing."""

    @property
    def control(self) -> bool:
        """Whether its frozen part was never trained."""
        return len(self.renew) > 1

    def config(self, base: Run, steps: int | None) -> RunConfig:
        """The base's recipe, changed in as little as can be."""
        config = base.config
        assert config.training is not None
        changes: dict[str, Any] = {} if steps is None else {"steps": steps}
        if self.learns is None:
            all_drawn = {"start_weights": "", "renew": (), "freeze": ()}
            return changed(config, {"d_mlp": 0, **all_drawn, **changes})
        seed = (config.training.seed + 1) % (LARGEST_SEED + 1)
        parts = {"renew": self.renew, "freeze": all_but(self.learns)}
        return started_config(base.directory, {"seed": seed, **parts, **changes})


VARIANTS = (
    Variant(NO_MLP, "No MLP"),
    Variant(FRESH_MLP, "A fresh MLP beside trained attention", ("mlp",), "mlp"),
    Variant(FRESH_ATTENTION, "Fresh attention beside a trained MLP", ("attention",), "attention"),
    Variant(
        UNTRAINED_ATTENTION,
        "Control, a fresh MLP beside untrained attention",
        ("attention", "mlp"),
        "mlp",
    ),
    Variant(
        UNTRAINED_MLP,
        "Control, fresh attention beside an untrained MLP",
        ("attention", "mlp"),
        "attention",
    ),
)


class _Relearning(msgspec.Struct, frozen=True, kw_only=True):
    """When the training of a variant came near the base's loss: kept while it goes on."""

    base_sha256: str
    milestones: list[Milestone]


def check_base(base: Run) -> None:
    """Refuse a base that has no recipe to repeat, or no MLP to do without."""
    config = base.config
    if config.training is None:
        raise CallError(f"The model at {base.directory} was imported: it has no recipe to repeat.")
    if not config.model.d_mlp:
        raise CallError(f"The model at {base.directory} has no MLP to study.")


def check_variants(base: Run, directory: Path) -> None:
    """Refuse to go on with a study whose variants were made from another base."""
    weights = weights_hash(base.model())
    for variant in VARIANTS:
        if _base_of(directory / variant.name) not in (None, weights):
            raise CallError(
                f"The study at {directory} is of other weights than {base.directory} has. "
                f"To make it anew, delete {directory}."
            )


def _base_of(directory: Path) -> str | None:
    """The hash of the weights that a variant was made from or for; None if it is not known."""
    if (directory / RELEARNING_FILE).exists():
        return read_json(directory / RELEARNING_FILE, _Relearning).base_sha256
    if (directory / CONFIG_FILE).exists():
        training = read_json(directory / CONFIG_FILE, RunConfig).training
        return training.start_weights or None if training else None
    return None


def train_variant(
    variant: Variant,
    base: Run,
    directory: Path,
    *,
    loss: float,
    steps: int | None,
    threads: int | None,
    on_step: Callable[[StepRecord], object],
    should_stop: Callable[[], bool],
) -> list[Milestone]:
    """Train a variant to its end; when it came near the base's held-out loss."""
    config = variant.config(base, steps)
    path, weights = directory / RELEARNING_FILE, weights_hash(base.model())
    known = _Relearning(base_sha256=weights, milestones=[])
    if path.exists():
        known = read_json(path, _Relearning)
    if known.base_sha256 != weights:
        raise CallError(
            f"The run at {directory} belongs to another base. To train it anew, delete {directory}."
        )

    def go_on(until_loss: float | None) -> int | None:
        """Train on; the steps made when the loss was reached."""
        found = train(
            config,
            directory,
            start_from=base.directory if variant.renew else None,
            until_loss=until_loss,
            threads=threads,
            on_step=on_step,
            should_stop=should_stop,
        )
        reached = until_loss is not None and found.held_out_loss.estimate <= until_loss
        return found.steps if reached else None

    for times in TIMES[len(known.milestones) :]:
        mark = Milestone(times=times, loss=times * loss, steps=go_on(times * loss))
        known = _Relearning(base_sha256=weights, milestones=[*known.milestones, mark])
        write_json(path, known)
    go_on(None)
    return known.milestones
