"""Every experiment of the paper on one model, and those that settle what it leaves open.

In: a model, and the metrics of its training if there are any. Out: `Dissection`, after each
part all that is found so far:

    for found in dissect(model, parts=["attention", "nodes"]): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

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
    work = _Work(model, metrics, seed)
    yield found
    for part in _in_order(parts):
        if getattr(found, part) is None and work.applies(part):
            with progress(part, work.expected(part), "answers") as advance:
                finding = work.do(part, found, advance)
            found = msgspec.structs.replace(found, **{part: finding})
            yield found


def _in_order(parts: Sequence[str]) -> list[str]:
    """The parts in their order. Heads are named by what they attend to, so they need attention."""
    needed = {*parts, "attention"} if "heads" in parts else {*parts}
    return [part for part in EXPERIMENTS if part in needed]


class _Work:
    """What the experiments need, made when first needed."""

    def __init__(self, model: Transformer, metrics: Metrics, seed: int) -> None:
        self._model, self._read_metrics = model, metrics
        self._samples = Samples(model.config.digits, seed)

    @cached_property
    def _metrics(self) -> list[StepRecord]:
        return list(self._read_metrics())

    @cached_property
    def _engine(self) -> Engine:
        return Engine(self._model, self._samples.varied)

    def applies(self, part: str) -> bool:
        """Whether there is anything to study: an MLP, a training."""
        if part == "mlp":
            return self._model.config.d_mlp > 0
        return part != "story" or bool(self._metrics)

    def expected(self, part: str) -> int | None:
        """How many answers a part computes: questions, times ways to change them.

        The sub-task search may compute more: it tests sets of heads where single ones are not
        enough.
        """
        config, varied = self._model.config, len(self._samples.varied)
        layout, layers, nodes = config.layout, config.layers, len(all_nodes(config))
        edges = sum(row + 1 for row in layout.answer_rows) + 2 * (layout.first_row + 1)
        depths = sum(range(max(1, config.digits - 2), config.digits + 1))
        by_class = len(QuestionClass) * PER_CLASS
        rows = (2 * layers * config.context + 1) * varied + (layers * edges + 2) * EDGE_QUESTIONS
        return {
            "attention": by_class,
            "rows": 2 * rows,
            "heads": (2 * layers * config.heads + 1) * by_class,
            "nodes": (nodes + 1) * varied,
            "subtasks": nodes * SEARCH_PAIRS,
            "mlp": 2 * KEY_QUESTIONS * (config.digits + 1),
            "first_digits": 3 * depths * CARRY_PAIRS + FRESH_QUESTIONS,
        }.get(part)

    def do(self, part: str, found: Dissection, advance: Advance) -> object:
        """One experiment."""
        if part == "story":
            layout = self._model.config.layout
            return training_story(self._metrics, layout.digits, layout.answer_names)
        if part == "heads":
            assert found.attention is not None
            return study_heads(self._engine, self._samples, found.attention.heads, advance)
        return STUDIES[part](self._engine, self._samples, advance)
