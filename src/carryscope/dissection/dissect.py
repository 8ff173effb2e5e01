"""Every experiment of the paper on one model, and those that settle what it leaves open.

In: a model, and the metrics of its training if there are any. Out: `Dissection`, one record with
a part for each experiment; after each part all that is found so far:

    for found in dissect(model, parts=["attention", "nodes"]): ...
    found.attention.staircase      # "present"
    found.statements()["nodes"]    # one or two sentences
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import msgspec

from carryscope.core.errors import CallError
from carryscope.core.evidence import Finding
from carryscope.core.progress import Progress, silent
from carryscope.dissection.ablations import (
    EdgesFinding,
    NodesFinding,
    study_edges,
    study_nodes,
)
from carryscope.dissection.attention import AttentionFinding, study_attention
from carryscope.dissection.engine import Engine
from carryscope.dissection.keys import MlpFinding, study_mlp
from carryscope.dissection.paths import PathsFinding, study_paths
from carryscope.dissection.samples import Samples
from carryscope.dissection.story import TrainingStory, training_story
from carryscope.dissection.subtasks import SubtasksFinding, study_subtasks
from carryscope.model.config import ModelConfig
from carryscope.model.files import weights_hash
from carryscope.model.transformer import Transformer
from carryscope.task.tokens import Format
from carryscope.training.losses import StepRecord
from carryscope.version import __version__

Metrics = Callable[[], Sequence[StepRecord]]

STUDIES: dict[str, Callable[..., object]] = {
    "attention": study_attention,
    "edges": study_edges,
    "nodes": study_nodes,
    "subtasks": study_subtasks,
    "paths": study_paths,
    "mlp": study_mlp,
}
"""How the parts are made, from an engine and questions, `mlp` also from what the heads read."""

EXPERIMENTS = (*STUDIES, "story")
"""The parts of a dissection, in the order in which they are made; the story is made from metrics.
"""


class Dissection(Finding, frozen=True, kw_only=True):
    """What was found in a model. A part that was not made yet, or does not apply, is null."""

    package_version: str
    weights_sha256: str
    seed: int
    model: ModelConfig
    attention: AttentionFinding | None = None
    """Where the heads look, and the staircase."""
    edges: EdgesFinding | None = None
    """Attention edges that are used."""
    nodes: NodesFinding | None = None
    """Each node: what fails without it."""
    subtasks: SubtasksFinding | None = None
    """The purpose map, by interchange."""
    paths: PathsFinding | None = None
    """What is computed at one row and read at another; none in a model of one layer."""
    mlp: MlpFinding | None = None
    """The keys of the MLP; none in an attention-only model. With several layers a row also holds
    what other rows computed, so its own heads bring no key."""
    story: TrainingStory | None = None
    """How the training went; none for a model that was not trained here."""

    @property
    def made(self) -> list[str]:
        """The parts that were made."""
        return [name for name in EXPERIMENTS if getattr(self, name) is not None]

    def missing(self, parts: Sequence[str], *, trained: bool) -> list[str]:
        """The parts that apply to the model and were not made."""
        deep = self.model.layers > 1
        applies = {"mlp": self.model.d_mlp > 0 and not deep, "paths": deep, "story": trained}
        return [part for part in parts if part not in self.made and applies.get(part, True)]

    def statements(self) -> dict[str, str]:
        """A few sentences for each part that was found."""
        return {name: getattr(self, name).statement for name in self.made}


def dissect(
    model: Transformer,
    metrics: Metrics = list,
    *,
    seed: int = 0,
    parts: Sequence[str] = EXPERIMENTS,
    known: Dissection | None = None,
    progress: Progress = silent,
) -> Iterator[Dissection]:
    """Dissect a model part by part; at first, and after each part, all that is known so far.

    `metrics` gives the records of its training, none for a model that was not trained here.
    `known` are findings about these weights with this seed. Their parts are not made again.
    """
    found = known or Dissection(
        package_version=__version__,
        weights_sha256=weights_hash(model),
        seed=seed,
        model=model.config,
    )
    yield found
    samples = Samples.of(model.config.layout, seed)
    engine = cache(lambda: Engine(model, samples.varied))
    records = list(metrics()) if "story" in parts else []
    needed = {*parts, "attention"} if "mlp" in parts else {*parts}
    in_order = [part for part in EXPERIMENTS if part in needed]
    for part in found.missing(in_order, trained=bool(records)):
        with progress(part, unit="answers") as advance:
            if part == "story":
                finding: object = training_story(records, model.config.layout)
            else:
                read = [found.attention] if part == "mlp" else []
                finding = STUDIES[part](engine(), samples, *read, advance)
        found = msgspec.structs.replace(found, **{part: finding})
        yield found


def chosen_parts(only: str | Sequence[str] | None) -> tuple[str, ...]:
    """The parts that a person named, such as `attention,nodes`; all of them by default."""
    if only is None:
        return EXPERIMENTS
    named = [name.strip() for name in only.split(",")] if isinstance(only, str) else list(only)
    for name in named:
        if name not in EXPERIMENTS:
            raise CallError(f"A dissection has the parts {', '.join(EXPERIMENTS)}. Got '{name}'.")
    return tuple(name for name in EXPERIMENTS if name in named)


def known_story(
    dissection: Dissection | None, metrics: Metrics, layout: Format
) -> TrainingStory | None:
    """The story of the training, from the dissection or from metrics that can be read."""
    if dissection is not None and dissection.story is not None:
        return dissection.story
    with contextlib.suppress(CallError):
        if records := metrics():
            return training_story([*records], layout)
    return None
