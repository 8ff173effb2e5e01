"""The variants of the MLP study, and their training.

In: a trained run with an MLP, the base. Out: more runs, each an ordinary one that can be stopped
and continued, and the steps at which each came near the base's held-out loss.

    no-mlp                the same recipe for a model without an MLP
    fresh-mlp             from the base: the MLP drawn again and trained, all else frozen
    fresh-attention       from the base: the attention drawn again and trained, all else frozen
    untrained-attention   control of fresh-mlp: attention drawn again too, and left untrained
    untrained-mlp         control of fresh-attention: MLP drawn again too, and left untrained

`training/config.py` says what belongs to `attention` and `mlp`. Embeddings and readout are frozen
in the last four, so that a success is due to the new part alone. A control differs from its variant
in one thing: its frozen part was never trained. All four use the seed after the base's. With the
base's own seed the new weights would be those that the base started from, on the same questions.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from carryscope.core.errors import CallError
from carryscope.core.progress import Progress
from carryscope.core.storage import read_json, write_json
from carryscope.run import Run
from carryscope.training.config import LARGEST_SEED, ModelPart, RunConfig, all_but
from carryscope.training.loop import train
from carryscope.training.presets import changed, started_config
from carryscope.training.summary import TrainingSummary
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
"""Multiples of the base's held-out loss at which the steps of a training are recorded."""


@dataclass(frozen=True)
class Variant:
    """How one model of the study is made from the base."""

    name: str
    about: str
    renew: tuple[ModelPart, ...] = ()
    learns: ModelPart | None = None
    """The one part that is trained; with None a model without an MLP is trained from scratch."""

    @property
    def control(self) -> bool:
        """Whether its frozen part was never trained."""
        return len(self.renew) > 1

    def config(self, base: Run, steps: int) -> RunConfig:
        """The base's recipe with as few changes as possible."""
        config = base.config
        assert config.training is not None
        if self.learns is None:
            all_drawn = {"start_weights": "", "renew": (), "freeze": ()}
            return changed(config, {"d_mlp": 0, "steps": steps, **all_drawn})
        seed = (config.training.seed + 1) % (LARGEST_SEED + 1)
        parts = {"renew": self.renew, "freeze": all_but(self.learns)}
        return started_config(base.directory, {"seed": seed, "steps": steps, **parts})


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
    """When the training of a variant came near the base's loss, as far as it is trained."""

    base_sha256: str
    milestones: list[Milestone]


def check_base(base: Run) -> None:
    """Refuse a base that has no recipe to repeat, or no MLP to remove."""
    config = base.config
    if config.training is None:
        raise CallError(f"The model at {base.directory} was imported: it has no recipe to repeat.")
    if not config.model.d_mlp:
        raise CallError(f"The model at {base.directory} has no MLP to study.")


def train_variant(
    variant: Variant,
    base: Run,
    directory: Path,
    *,
    loss: float,
    steps: int,
    threads: int | None,
    progress: Progress,
) -> list[Milestone]:
    """Train a variant to its end, with stops where it comes near the base's held-out loss."""
    path = directory / RELEARNING_FILE
    known = _Relearning(base_sha256=base.weights_sha256, milestones=[])
    if path.exists():
        known = read_json(path, _Relearning)
    if known.base_sha256 != base.weights_sha256:
        raise CallError(
            f"The run at {directory} belongs to another base. To train it again, delete "
            f"{directory}."
        )

    def continued(until_loss: float | None) -> TrainingSummary:
        return train(
            variant.config(base, steps),
            directory,
            start_from=base.directory if variant.renew else None,
            until_loss=until_loss,
            threads=threads,
            progress=progress,
        )

    for times in TIMES[len(known.milestones) :]:
        found, near = continued(times * loss), times * loss
        reached = found.held_out_loss.estimate <= near
        mark = Milestone(times=times, loss=near, steps=found.steps if reached else None)
        known = _Relearning(base_sha256=known.base_sha256, milestones=[*known.milestones, mark])
        write_json(path, known)
    continued(None)
    return known.milestones
