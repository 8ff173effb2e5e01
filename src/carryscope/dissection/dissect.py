"""Every experiment of the paper on one model, and those that settle what it leaves open.

In: a model, and the metrics of its training if there are any. Out: `Dissection`, after each
part all that is found so far:

    for found in dissect(model, parts=["attention", "nodes"]): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import msgspec

from carryscope.core.progress import Advance, Progress, silent
from carryscope.dissection.attention import study_attention
from carryscope.dissection.engine import Engine
from carryscope.dissection.findings import EXPERIMENTS, Dissection
from carryscope.dissection.first_digits import CARRY_PAIRS, FRESH_QUESTIONS, study_first_digits
from carryscope.dissection.heads import study_heads
from carryscope.dissection.interventions import all_nodes
from carryscope.dissection.keys import KEY_QUESTIONS, study_mlp
from carryscope.dissection.nodes import study_nodes
from carryscope.dissection.rows import EDGE_QUESTIONS, study_rows
from carryscope.dissection.samples import PER_CLASS, Samples
from carryscope.dissection.story import training_story
from carryscope.dissection.subtasks import SEARCH_PAIRS, study_subtasks
from carryscope.model.config import ModelConfig
from carryscope.model.files import weights_hash
from carryscope.model.transformer import Transformer
from carryscope.task.columns import QuestionClass
from carryscope.training.losses import StepRecord
from carryscope.version import __version__

Metrics = Callable[[], Sequence[StepRecord]]

STUDIES: dict[str, Callable[[Engine, Samples, Advance], object]] = {
    "attention": study_attention,
    "rows": study_rows,
    "nodes": study_nodes,
    "subtasks": study_subtasks,
    "mlp": study_mlp,
    "first_digits": study_first_digits,
}
"""The experiments that need only an engine and questions."""


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
        with progress(part, _expected(part, model.config, samples), "answers") as advance:
            if part == "story":
                finding = training_story(
                    records(), samples.digits, model.config.layout.answer_names
                )
            elif part == "heads":
                assert found.attention is not None
                finding = study_heads(engine(), samples, found.attention.heads, advance)
            else:
                finding = STUDIES[part](engine(), samples, advance)
        found = msgspec.structs.replace(found, **{part: finding})
        yield found


def applies(part: str, config: ModelConfig, *, trained: bool) -> bool:
    """Whether there is anything to study in a part: an MLP, a training."""
    return {"mlp": config.d_mlp > 0, "story": trained}.get(part, True)


def _in_order(parts: Sequence[str]) -> list[str]:
    """The parts in their order. Heads are named by what they attend to, so they need attention."""
    needed = {*parts, "attention"} if "heads" in parts else {*parts}
    return [part for part in EXPERIMENTS if part in needed]


def _expected(part: str, config: ModelConfig, samples: Samples) -> int | None:
    """How many answers a part computes: questions, times ways to change them.

    The sub-task search may compute more: it tests sets of heads where single ones are not enough.
    """
    varied, by_class = len(samples.varied), len(QuestionClass) * PER_CLASS
    layers, nodes = config.layers, len(all_nodes(config))
    edges = sum(row + 1 for row in config.layout.answer_rows)
    depths = sum(range(max(1, config.digits - 2), config.digits + 1))
    rows = (2 * layers * config.context + 1) * varied + (layers * edges + 1) * EDGE_QUESTIONS
    return {
        "attention": by_class,
        "rows": 2 * rows,
        "heads": (2 * layers * config.heads + 1) * by_class,
        "nodes": (nodes + 1) * varied,
        "subtasks": nodes * SEARCH_PAIRS,
        "mlp": 2 * KEY_QUESTIONS * (config.digits + 1),
        "first_digits": 3 * depths * CARRY_PAIRS + FRESH_QUESTIONS,
    }.get(part)
