"""Every experiment of the paper on one model, and those that settle what it leaves open.

In: a model, and the metrics of its training if there are any. Out: `Dissection`, after each
part all that is found so far:

    for found in dissect(model, parts=["attention", "nodes"]): ...
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import msgspec

from carryscope.core.errors import CallError
from carryscope.core.progress import Advance, Progress, silent
from carryscope.dissection.attention import AttentionFinding, study_attention
from carryscope.dissection.edges import study_edges
from carryscope.dissection.engine import Engine
from carryscope.dissection.findings import EXPERIMENTS, Dissection
from carryscope.dissection.first_digits import study_first_digits
from carryscope.dissection.heads import study_heads
from carryscope.dissection.keys import study_mlp
from carryscope.dissection.nodes import study_nodes
from carryscope.dissection.samples import Samples
from carryscope.dissection.story import TrainingStory, training_story
from carryscope.dissection.subtasks import study_subtasks
from carryscope.model.config import ModelConfig
from carryscope.model.files import weights_hash
from carryscope.model.transformer import Transformer
from carryscope.task.tokens import Format
from carryscope.training.losses import StepRecord
from carryscope.version import __version__

Metrics = Callable[[], Sequence[StepRecord]]

STUDIES: dict[str, Callable[[Engine, Samples, Advance], object]] = {
    "attention": study_attention,
    "edges": study_edges,
    "nodes": study_nodes,
    "subtasks": study_subtasks,
    "first_digits": study_first_digits,
}
"""The experiments that need only an engine and questions."""

BY_ATTENTION: dict[str, Callable[[Engine, Samples, AttentionFinding, Advance], object]] = {
    "heads": study_heads,
    "mlp": study_mlp,
}
"""Those that also need to know what the heads read."""


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
    samples = Samples(model.config.digits, seed)
    engine = cache(lambda: Engine(model, samples.varied))
    records = cache(lambda: list(metrics()))
    for part in _in_order(parts):
        trained = part == "story" and bool(records())
        if getattr(found, part) is not None or not applies(part, model.config, trained=trained):
            continue
        finding: object
        with progress(part, unit="answers") as advance:
            if part == "story":
                finding = training_story(
                    records(), samples.digits, model.config.layout.answer_names
                )
            elif part in BY_ATTENTION:
                assert found.attention is not None
                finding = BY_ATTENTION[part](engine(), samples, found.attention, advance)
            else:
                finding = STUDIES[part](engine(), samples, advance)
        found = msgspec.structs.replace(found, **{part: finding})
        yield found


def applies(part: str, config: ModelConfig, *, trained: bool) -> bool:
    """Whether there is anything to study in a part: an MLP, a training."""
    return {"mlp": config.d_mlp > 0, "story": trained}.get(part, True)


def missing_parts(
    known: Dissection, parts: Sequence[str], config: ModelConfig, *, trained: bool
) -> list[str]:
    """The parts that apply to a model and are not in a dissection."""
    return [
        part
        for part in parts
        if getattr(known, part) is None and applies(part, config, trained=trained)
    ]


def known_story(
    dissection: Dissection | None, metrics: Metrics, layout: Format
) -> TrainingStory | None:
    """The story of the training, from the dissection or from metrics that can be read."""
    if dissection is not None and dissection.story is not None:
        return dissection.story
    with contextlib.suppress(CallError):
        if records := metrics():
            return training_story([*records], layout.digits, layout.answer_names)
    return None


def _in_order(parts: Sequence[str]) -> list[str]:
    """The parts in their order, with the attention that some of them need."""
    needed = {*parts, "attention"} if {*parts} & {*BY_ATTENTION} else {*parts}
    return [part for part in EXPERIMENTS if part in needed]
