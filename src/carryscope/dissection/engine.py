"""The engine: many interventions on many questions, recomputing only what they change.

In: questions, and interventions as values. Out: `Outcomes`, what the model says under each.
All answers are teacher-forced.

    engine = Engine(model, reference_questions)
    engine.answers(questions, [UNCHANGED, Node(13, 0, 1).ablated()]).correct

A change in the last layer reaches the logits of its own rows only, so it costs one MLP per
question and row. A change below the last layer is carried upwards from the first row it touches.
Several changes made at once use the instrumented pass, which is slower. The tests compare the
fast ways with that pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from carryscope.core.progress import Advance, unheard
from carryscope.dissection.capture import (
    Capture,
    LayerState,
    attend,
    before_mlp,
    block_of,
    capture,
)
from carryscope.dissection.hooks import answers_by_hooks
from carryscope.dissection.interventions import (
    HEADS,
    MLP,
    PATTERN,
    Ablate,
    Cut,
    Intervention,
    Patch,
    check,
    layer_and_part,
)
from carryscope.model.answer_path import later_block, logits_of
from carryscope.model.tables import FirstLayerTables
from carryscope.model.transformer import Block, Transformer
from carryscope.task.operation import Array
from carryscope.task.questions import Questions

CHUNK = 256
"""Questions at a time, at most."""

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
    loss: Float[Array, "change batch answer"]
    """Negative log-probability of the true token."""

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

    def capture(self, questions: Questions) -> Capture:
        """The clean state of a few questions."""
        tokens = torch.from_numpy(self.layout.encode(questions))
        with torch.inference_mode():
            return capture(self.model, self._tables, tokens)

    def captures(self, questions: Questions) -> Iterator[Capture]:
        """The clean state of many questions, a chunk at a time."""
        for start in range(0, len(questions), self._size):
            yield self.capture(questions[start : start + self._size])

    def answers(
        self,
        questions: Questions,
        changes: Sequence[Change] = (UNCHANGED,),
        advance: Advance = unheard,
    ) -> Outcomes:
        """What the model says under each change; by default, when nothing is changed.

        After each chunk `advance` hears how many answers it had: questions times changes.
        """
        for change in changes:
            for one in change if isinstance(change, tuple) else (change,):
                check(one, self.config, len(questions))
        parts = []
        for start in range(0, len(questions), self._size):
            chunk = slice(start, start + self._size)
            with torch.inference_mode():
                logits = self._chunk(questions[chunk], changes, chunk)
            parts.append(_outcomes(self.layout.encode(questions[chunk]), logits))
            advance(logits.shape[0] * logits.shape[1])
        return Outcomes(
            truth=np.concatenate([part.truth for part in parts]),
            predicted=np.concatenate([part.predicted for part in parts], axis=1),
            loss=np.concatenate([part.loss for part in parts], axis=1),
        )

    def _chunk(
        self, questions: Questions, changes: Sequence[Change], chunk: slice
    ) -> Float[Tensor, "change batch answer token"]:
        clean = self.capture(questions)
        logits = clean.logits.repeat(len(changes), 1, 1, 1)
        sources: dict[int, Capture] = {}
        for i, change in enumerate(changes):
            if change == UNCHANGED:
                continue
            if isinstance(change, tuple):
                logits[i] = answers_by_hooks(self.model, questions, change, self.reference, chunk)
                continue
            layer, part = layer_and_part(change, self.config)
            new: LayerState | None = None
            if isinstance(change, Patch):
                if id(change.source) not in sources:
                    sources[id(change.source)] = self.capture(change.source[chunk])
                new = sources[id(change.source)].layers[layer]
            elif isinstance(change, Ablate) and change.how == "mean":
                new = self._means[layer]
            rows = _rows(clean.layers[layer], change)
            if rows:
                block = block_of(self.model, layer)
                residual = _changed(block, clean.layers[layer], new, change, part, rows)
                self._carry_on(clean, layer, rows, residual, logits[i])
        return logits

    def _carry_on(
        self,
        clean: Capture,
        layer: int,
        rows: list[int],
        residual: Float[Tensor, "batch row d_model"],
        logits: Float[Tensor, "batch answer token"],
    ) -> None:
        """From a residual stream that is changed after a layer to the logits it reaches."""
        for above in range(layer + 1, self.config.layers):
            whole, state = clean.layers[above - 1].after.clone(), clean.layers[above]
            whole[:, rows] = residual
            first = max(rows[0], state.first_row)
            residual = later_block(block_of(self.model, above), whole, first_row=first).written()
            rows = list(range(first - state.first_row, state.middle.shape[1]))
        logits[:, rows] = logits_of(self.model, residual)

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


def _rows(state: LayerState, change: Intervention) -> list[int]:
    """The rows, counted from the state's first, whose residual stream changes."""
    rows = sorted(row - state.first_row for row in set(change.rows))
    return [row for row in rows if 0 <= row < state.middle.shape[1]]


def _changed(
    block: Block,
    state: LayerState,
    new: LayerState | None,
    change: Intervention,
    part: str,
    rows: list[int],
) -> Float[Tensor, "batch row d_model"]:
    """The residual stream after a block at some rows. Zero replaces what `new` does not give."""

    def replaced(site: str) -> Tensor:
        old: Tensor = getattr(state, site)[:, rows]
        return torch.zeros_like(old) if new is None else getattr(new, site)[:, rows].expand_as(old)

    if part == MLP:
        return state.middle[:, rows] + replaced("mlp")
    if part not in (HEADS, PATTERN):
        return replaced("after")
    written = _reread(state, change, rows) if isinstance(change, Cut) else replaced("heads")
    heads = slice(None) if change.heads is None else list(change.heads)
    added = (written - state.heads[:, rows])[:, :, heads].sum(2)
    return before_mlp(block, state.middle[:, rows] + added).written()


def _reread(
    state: LayerState, change: Cut, rows: list[int]
) -> Float[Tensor, "batch row head d_model"]:
    """What all heads would add at these rows if they did not see the keys."""
    scores = state.scores[:, :, rows].clone()
    scores[..., [key for key in change.keys if key < scores.shape[-1]]] = -torch.inf
    return attend(scores, state.written)


def _outcomes(tokens: Array, logits: Tensor) -> Outcomes:
    truth = tokens[:, -logits.shape[2] :]
    chances = logits.double().log_softmax(-1)
    target = torch.from_numpy(truth).expand(len(logits), -1, -1)
    loss = -chances.gather(-1, target[..., None])[..., 0]
    return Outcomes(truth, logits.argmax(-1).to(torch.int8).numpy(), loss.float().numpy())
