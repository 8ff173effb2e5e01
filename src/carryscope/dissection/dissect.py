"""Every experiment of the paper on one model, and those that settle what it leaves open.

In: a model, and the metrics of its training if there are any. Out: `Dissection`. What an
earlier call found with the same weights, seed and version is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property

import msgspec
import torch

from carryscope.dissection.attention import study_attention
from carryscope.dissection.engine import Engine
from carryscope.dissection.findings import PARTS, Dissection
from carryscope.dissection.first_digits import FRESH_QUESTIONS, study_first_digits
from carryscope.dissection.first_digits import PAIRS as CARRY_PAIRS
from carryscope.dissection.heads import study_heads
from carryscope.dissection.interventions import all_nodes
from carryscope.dissection.keys import QUESTIONS as KEY_QUESTIONS
from carryscope.dissection.keys import study_mlp
from carryscope.dissection.nodes import study_nodes
from carryscope.dissection.rows import EDGE_QUESTIONS, study_rows
from carryscope.dissection.samples import PER_CLASS, Samples
from carryscope.dissection.story import training_story
from carryscope.dissection.subtasks import PAIRS, study_subtasks
from carryscope.model.files import weights_hash
from carryscope.model.transformer import Transformer, initialise
from carryscope.task.columns import QuestionClass
from carryscope.training.losses import StepRecord
from carryscope.version import __version__

OnProgress = Callable[[int], object]

Bar = Callable[[str, int], AbstractContextManager[OnProgress]]
"""Given the name of a part and the answers it will compute, more or less, a context whose
function hears how many were computed."""


def no_bar(part: str, answers: int) -> AbstractContextManager[OnProgress]:
    """For whoever does not watch."""
    return nullcontext(lambda _: None)


UNTRAINED_SEED = 0
"""The weights of the untrained control: those a training with this seed starts from."""


def dissect(
    model: Transformer,
    metrics: Callable[[], Sequence[StepRecord]] = list,
    *,
    seed: int = 0,
    parts: Sequence[str] = PARTS,
    known: Dissection | None = None,
    bar: Bar = no_bar,
) -> Iterator[Dissection]:
    """Dissect a model part by part; at first, and after each part, all that is known so far.

    `metrics` gives the records of its training, none for a model that was not trained here.
    """
    found = Dissection(
        package_version=__version__,
        weights_sha256=weights_hash(model),
        seed=seed,
        model=model.config,
    )
    if known is not None and same_subject(known, found):
        found = known
    work = _Work(model, metrics, seed)
    yield found
    for part in _in_order(parts):
        if getattr(found, part) is None and work.applies(part):
            with bar(part, work.expected(part)) as on_progress:
                finding = work.do(part, found, on_progress)
            found = msgspec.structs.replace(found, **{part: finding})
            yield found


def _in_order(parts: Sequence[str]) -> list[str]:
    """The parts in their order; heads are named by what they attend to, so attention comes too."""
    needed = {*parts, "attention"} if "heads" in parts else {*parts}
    return [part for part in PARTS if part in needed]


def same_subject(known: Dissection, found: Dissection) -> bool:
    """Whether earlier findings are about the same weights, seed and code."""
    fields = ("package_version", "weights_sha256", "seed")
    return all(getattr(known, field) == getattr(found, field) for field in fields)


class _Work:
    """What the experiments need, made when first needed."""

    def __init__(
        self, model: Transformer, metrics: Callable[[], Sequence[StepRecord]], seed: int
    ) -> None:
        self._model, self._read_metrics = model, metrics
        self._samples = Samples(model.config.digits, seed)

    @cached_property
    def _metrics(self) -> list[StepRecord]:
        return list(self._read_metrics())

    @cached_property
    def _engine(self) -> Engine:
        return Engine(self._model, self._samples.varied)

    @cached_property
    def _untrained(self) -> Engine:
        generator = torch.Generator().manual_seed(UNTRAINED_SEED)
        return Engine(initialise(Transformer(self._model.config), generator), self._samples.varied)

    def applies(self, part: str) -> bool:
        """Whether there is anything to study: an MLP, a training."""
        if part == "mlp":
            return self._model.config.d_mlp > 0
        return part != "story" or bool(self._metrics)

    def expected(self, part: str) -> int:
        """How many answers a part computes: questions, times ways to change them.

        The sub-task search goes on to sets of heads if single ones do not do, which comes on
        top.
        """
        config, samples = self._model.config, self._samples
        layout, layers, varied = config.layout, config.layers, len(samples.varied)
        edges = sum(row + 1 for row in layout.answer_rows) + 2 * (layout.first_row + 1)
        depths = sum(range(max(1, config.digits - 2), config.digits + 1))
        expected = {
            "rows": 2 * layers * (2 * config.context * varied + edges * EDGE_QUESTIONS),
            "heads": 2 * layers * config.heads * len(QuestionClass) * PER_CLASS,
            "nodes": len(all_nodes(config)) * varied,
            "subtasks": len(all_nodes(config)) * PAIRS,
            "mlp": 2 * KEY_QUESTIONS * (config.digits + 1),
            "first_digits": 3 * depths * CARRY_PAIRS + FRESH_QUESTIONS,
        }
        return expected.get(part, 0)

    def do(self, part: str, found: Dissection, on_progress: OnProgress) -> object:
        """One experiment."""
        if part == "story":
            layout = self._model.config.layout
            return training_story(self._metrics, layout.digits, layout.answer_names)
        engine, samples = self._engine, self._samples
        if part == "attention":
            return study_attention(engine, samples)
        if part == "rows":
            return study_rows(engine, samples, self._untrained, on_progress)
        if part == "heads":
            assert found.attention is not None
            return study_heads(engine, samples, found.attention.heads, on_progress)
        return _ALIKE[part](engine, samples, on_progress)


_ALIKE: dict[str, Callable[[Engine, Samples, OnProgress], object]] = {
    "nodes": study_nodes,
    "subtasks": study_subtasks,
    "mlp": study_mlp,
    "first_digits": study_first_digits,
}
"""The experiments that need nothing but an engine and questions."""
