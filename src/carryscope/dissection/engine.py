"""The engine: many interventions on many questions, recomputing only what they change.

In: questions, and interventions as values. Out: `Outcomes`, what the model says under each.
All answers are teacher-forced.

    engine = Engine(model, reference_questions)
    engine.answers(questions, [UNCHANGED, Node(13, 0, (1,)).ablated()]).correct

A change in the last layer reaches the logits of its own rows only, so it costs one MLP per
question and row. A change below the last layer is carried upwards from the first row it touches
(`stacking.py`), together with other changes of the same rows.
The tests compare all of this with hooks in the instrumented pass.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from carryscope.core.progress import Advance, unheard
from carryscope.dissection.capture import (
    Capture,
    LayerState,
    block_of,
    capture,
)
from carryscope.dissection.interventions import (
    Ablate,
    Cut,
    Intervention,
    Patch,
    Route,
    check,
    layer_and_part,
)
from carryscope.dissection.routing import routed
from carryscope.dissection.stacking import Edit, Rows, carried_on, edited, span, unmoved
from carryscope.model.answer_path import normalized
from carryscope.model.products import linear
from carryscope.model.tables import FirstLayerTables
from carryscope.model.transformer import Transformer
from carryscope.task.operation import Array
from carryscope.task.questions import Questions

CHUNK = 512
"""Questions at a time, at most."""

STACK = 8
"""Changes at a time, at most."""

CHUNK_NUMBERS = 8_000_000
"""The largest state of a chunk is what heads write at every position: at most 32 MB of numbers."""

Change = Intervention | tuple[Intervention, ...]
"""One intervention, several made at once, or none: `()`."""

UNCHANGED: Change = ()


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What the model says under each intervention, teacher-forced."""

    truth: Int[Array, "batch answer"]
    predicted: Int[Array, "change batch answer"]
    losses: Float[Array, "change batch answer"] | None
    """Negative log-probability of the true token, if it was asked for."""

    @property
    def loss(self) -> Float[Array, "change batch answer"]:
        """The losses, which were asked for."""
        assert self.losses is not None
        return self.losses

    @property
    def right(self) -> Bool[Array, "change batch answer"]:
        """Which tokens are right."""
        return np.equal(self.predicted, self.truth)

    @property
    def correct(self) -> Bool[Array, "change batch"]:
        """Which questions are answered without a mistake."""
        return np.asarray(self.right.all(axis=2))


class Engine:
    """Evaluates interventions on one model; means are taken over the reference questions."""

    def __init__(self, model: Transformer, reference: Questions) -> None:
        self.model, self.config, self.layout = model, model.config, model.config.layout
        self.reference = reference
        widest = self.config.context * self.config.heads * self.config.d_model
        self._size = max(1, min(CHUNK, CHUNK_NUMBERS // widest))
        self._tables = FirstLayerTables.of(model)

    def captures(self, questions: Questions) -> Iterator[Capture]:
        """The clean state of many questions, a chunk at a time."""
        for start in range(0, len(questions), self._size):
            yield self._clean(self.layout.encode(questions[start : start + self._size]))

    def reading(
        self,
        tokens: Int[Array, "batch position"],
        change: Change = UNCHANGED,
        chunk: slice = slice(None),
    ) -> tuple[Float[Tensor, "batch answer token"], Float[Tensor, "batch layer head answer key"]]:
        """The logits and the attention of a few questions, written as tokens, under a change.

        `chunk` says which of a patch's sources belong to these questions.
        """
        with torch.inference_mode():
            clean = self._clean(tokens)
            logits, reached = self._under([change], clean, self._taken_from(chunk))
            states = list(clean.layers)
            for layer, here in reached.items():
                scores = states[layer].scores.clone()
                scores[:, here.rows] = here.scores[:, 0]
                states[layer] = states[layer]._replace(scores=scores)
            return logits[:, 0], Capture(states, logits[:, 0]).patterns()

    def answers(
        self,
        questions: Questions,
        changes: Sequence[Change] = (UNCHANGED,),
        advance: Advance = unheard,
        *,
        losses: bool = False,
    ) -> Outcomes:
        """What the model says under each change; by default, when nothing is changed.

        After each chunk `advance` hears how many answers it had: questions times changes.
        """
        for change in changes:
            for one in _each(change):
                check(one, self.config, len(questions))
        stacks, parts = self._stacks(changes), []
        for start in range(0, len(questions), self._size):
            chunk = slice(start, start + self._size)
            tokens = self.layout.encode(questions[chunk])
            with torch.inference_mode():
                clean, taken_from = self._clean(tokens), self._taken_from(chunk)
                logits = clean.logits.new_empty(len(tokens), len(changes), *clean.logits.shape[1:])
                for stack in stacks:
                    together = [changes[i] for i in stack]
                    logits[:, span(stack)] = self._under(together, clean, taken_from)[0]
            parts.append(_outcomes(tokens, logits, losses))
            advance(logits.shape[0] * logits.shape[1])
        return Outcomes(
            truth=np.concatenate([part.truth for part in parts]),
            predicted=np.concatenate([part.predicted for part in parts], axis=1),
            losses=np.concatenate([part.loss for part in parts], axis=1) if losses else None,
        )

    def _stacks(self, changes: Sequence[Change]) -> list[list[int]]:
        """Changes, by number, that touch the same rows of the same layers: carried on together."""
        alike: dict[frozenset[tuple[int, tuple[int, ...]]], list[int]] = defaultdict(list)
        for number, change in enumerate(changes):
            touched = [(layer_and_part(one, self.config)[0], one.rows) for one in _each(change)]
            alike[frozenset(touched)].append(number)
        return [some[i : i + STACK] for some in alike.values() for i in range(0, len(some), STACK)]

    def _clean(self, tokens: Int[Array, "batch position"]) -> Capture:
        with torch.inference_mode():
            return capture(self.model, self._tables, torch.from_numpy(tokens))

    def _taken_from(self, chunk: slice) -> Callable[[Questions], Capture]:
        """The clean state of a chunk of whatever questions patches take values from, made once."""
        return cache(lambda source: self._clean(self.layout.encode(source[chunk])))

    def _under(
        self, stack: Sequence[Change], clean: Capture, taken_from: Callable[[Questions], Capture]
    ) -> tuple[Float[Tensor, "batch change answer token"], dict[int, Rows]]:
        """The logits of a batch under each change of a stack, and the rows these reach by layer."""
        edits = [self._edits(change, clean, taken_from) for change in stack]
        reached: dict[int, Rows] = {}
        for layer, state in enumerate(clean.layers):
            block, below = block_of(self.model, layer), reached.get(layer - 1)
            here = [one[layer] for one in edits]
            rows = {row for some in here for edit in some for row in edit.rows}
            if below is not None:
                first = max(below.rows[0] - state.first_row, 0)
                rows |= set(range(first, state.middle.shape[1]))
            if not rows:
                continue
            if below is None:
                found = unmoved(state, sorted(rows), len(stack))
            else:
                before = clean.layers[layer - 1].after
                found = carried_on(block, below, before, state, sorted(rows), apart=any(here))
            reached[layer] = edited(block, found, here) if any(here) else found
        logits = clean.logits[:, None].repeat(1, len(stack), 1, 1)
        if last := reached.get(len(clean.layers) - 1):
            unembed = self.model.unembed
            final = normalized(self.model.ln_final, last.after)
            logits[:, :, span(last.rows)] = linear(final, unembed.W_U, unembed.b_U)
        return logits, reached

    def _edits(
        self, change: Change, clean: Capture, taken_from: Callable[[Questions], Capture]
    ) -> dict[int, list[Edit]]:
        """A change by layer, each intervention with the values that it puts in."""
        edits: dict[int, list[Edit]] = defaultdict(list)
        for one in _each(change):
            layer, part = layer_and_part(one, self.config)
            state = clean.layers[layer]
            if isinstance(one, Patch):
                source = taken_from(one.source).layers[layer]
            elif isinstance(one, Route):
                source = routed(self.model, one, clean, taken_from(one.source))
            elif isinstance(one, Ablate) and one.how == "mean":
                source = self._means[layer]
            else:
                source = LayerState(0, *(torch.zeros_like(part[:1]) for part in state[1:]))
            edits[layer].append(_edit(one, part, state, source))
        return edits

    @cached_property
    def _means(self) -> list[LayerState]:
        """The mean state of each layer; sums over chunks, so the reference may be of any size."""
        with torch.inference_mode():
            sums = [
                [[part.sum(0, keepdim=True) for part in layer[1:]] for layer in state.layers]
                for state in self.captures(self.reference)
            ]
            means = [
                [sum(part) / len(self.reference) for part in zip(*layer, strict=True)]
                for layer in zip(*sums, strict=True)
            ]
        return [LayerState(0, *layer) for layer in means]


def _edit(one: Intervention, part: str, state: LayerState, source: LayerState) -> Edit:
    """An intervention, with all that its layer needs to know."""
    rows = sorted({row - state.first_row for row in one.rows})
    heads = range(state.heads.shape[2]) if one.heads is None else one.heads
    keys = one.keys if isinstance(one, Cut) else ()
    return Edit(
        part,
        rows=[row for row in rows if 0 <= row < state.middle.shape[1]],
        heads=list(heads),
        keys=[key for key in keys if key < state.scores.shape[-1]],
        source=source,
    )


def _each(change: Change) -> tuple[Intervention, ...]:
    return change if isinstance(change, tuple) else (change,)


def _outcomes(
    tokens: Int[Array, "batch position"],
    logits: Float[Tensor, "batch change answer token"],
    losses: bool,
) -> Outcomes:
    truth, logits = tokens[:, -logits.shape[2] :], logits.transpose(0, 1)
    predicted = logits.argmax(-1).to(torch.int8).numpy()
    if not losses:
        return Outcomes(truth, predicted, None)
    target = torch.from_numpy(truth).expand(len(logits), -1, -1)
    loss = -logits.double().log_softmax(-1).gather(-1, target[..., None])[..., 0]
    return Outcomes(truth, predicted, loss.float().numpy())
