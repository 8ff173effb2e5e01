"""The engine: many interventions on many questions, recomputing only what they change.

In: questions, and interventions as values. Out: `Outcomes`, what the model says under each.
All answers are teacher-forced.

    engine = Engine(model, reference_questions)
    engine.answers(questions, [UNCHANGED, Node(13, 0, (1,)).ablated()]).correct

A change in the last layer reaches the logits of its own rows only, so it costs one MLP per
question and row. A change below the last layer is carried upwards from the first row it touches.
The tests compare all of this with hooks in the instrumented pass.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

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
    layer_state,
)
from carryscope.dissection.interventions import (
    HEADS,
    MLP,
    PATTERN,
    STREAM,
    Ablate,
    Cut,
    Intervention,
    Patch,
    Route,
    check,
    layer_and_part,
)
from carryscope.dissection.routing import routed
from carryscope.model.answer_path import logits_of, normalized
from carryscope.model.tables import FirstLayerTables, projected
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

    def captures(self, questions: Questions) -> Iterator[Capture]:
        """The clean state of many questions, a chunk at a time."""
        for start in range(0, len(questions), self._size):
            yield self._clean(self.layout.encode(questions[start : start + self._size]))

    def capture(
        self,
        tokens: Int[Array, "batch position"],
        change: Change = UNCHANGED,
        chunk: slice = slice(None),
    ) -> Capture:
        """The state of a few questions, written as tokens, under a change.

        `chunk` says which of a patch's sources belong to these questions.
        """
        with torch.inference_mode():
            return self._under(change, self._clean(tokens), self._taken_from(chunk))

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
            for one in _each(change):
                check(one, self.config, len(questions))
        parts = []
        for start in range(0, len(questions), self._size):
            chunk = slice(start, start + self._size)
            tokens = self.layout.encode(questions[chunk])
            with torch.inference_mode():
                clean, taken_from = self._clean(tokens), self._taken_from(chunk)
                logits = torch.stack([self._under(c, clean, taken_from).logits for c in changes])
            parts.append(_outcomes(tokens, logits))
            advance(logits.shape[0] * logits.shape[1])
        return Outcomes(
            truth=np.concatenate([part.truth for part in parts]),
            predicted=np.concatenate([part.predicted for part in parts], axis=1),
            loss=np.concatenate([part.loss for part in parts], axis=1),
        )

    def _clean(self, tokens: Int[Array, "batch position"]) -> Capture:
        with torch.inference_mode():
            return capture(self.model, self._tables, torch.from_numpy(tokens))

    def _taken_from(self, chunk: slice) -> Callable[[Questions], Capture]:
        """The clean state of a chunk of whatever questions patches take values from, made once."""
        return cache(lambda source: self._clean(self.layout.encode(source[chunk])))

    def _under(
        self, change: Change, clean: Capture, taken_from: Callable[[Questions], Capture]
    ) -> Capture:
        """The state of a batch under a change."""
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
        states, rows = list(clean.layers), list[int]()
        for layer in range(len(states)):
            block = block_of(self.model, layer)
            if rows:
                before = states[layer - 1].after
                states[layer], rows = _carried_on(block, before, states[layer], rows)
            if edits[layer]:
                states[layer] = _edited(block, states[layer], edits[layer])
                rows = sorted({*rows, *(row for edit in edits[layer] for row in edit.rows)})
        logits = clean.logits.clone()
        logits[:, rows] = logits_of(self.model, states[-1].after[:, rows])
        return Capture(states, logits)

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


class Edit(NamedTuple):
    """An intervention on a layer."""

    part: str
    """Its site within the layer."""
    rows: list[int]
    """The rows that it changes, counted from the layer's first."""
    heads: list[int]
    keys: list[int]
    """The positions that a cut hides."""
    source: LayerState
    """Where replaced values come from."""


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


def _carried_on(
    block: Block,
    before: Float[Tensor, "batch position d_model"],
    clean: LayerState,
    positions: list[int],
) -> tuple[LayerState, list[int]]:
    """A layer once the stream before it is changed at some positions, and the rows that follow."""
    read = [part.clone() for part in (clean.query, clean.key, clean.written)]
    changed = projected(block.attn, normalized(block.ln1, before[:, positions]))
    for part, new in zip(read, changed, strict=True):
        part[:, positions] = new
    kept = max(positions[0] - clean.first_row, 0)
    state = layer_state(block, clean.first_row + kept, before, *read)
    joined = state._replace(
        first_row=clean.first_row,
        scores=torch.cat([clean.scores[:, :, :kept], state.scores], dim=2),
        heads=torch.cat([clean.heads[:, :kept], state.heads], dim=1),
        middle=torch.cat([clean.middle[:, :kept], state.middle], dim=1),
        after=torch.cat([clean.after[:, :kept], state.after], dim=1),
    )
    return joined, list(range(kept, clean.middle.shape[1]))


def _edited(block: Block, state: LayerState, edits: Sequence[Edit]) -> LayerState:
    """A layer under interventions, which act in the order of the forward pass.

    Its `heads` stay as they were: what they add now is in the stream, and nobody reads more.
    """
    cuts, replaced, mlps, streams = (
        [edit for edit in edits if edit.part == part] for part in (PATTERN, HEADS, MLP, STREAM)
    )
    rows = sorted({row for edit in [*cuts, *replaced] for row in edit.rows})
    scores, heads = state.scores, state.heads[:, rows]
    middle, after = state.middle, state.after.clone()
    if cuts:
        scores = scores.clone()
        for edit in cuts:
            scores[np.ix_(range(len(scores)), edit.heads, edit.rows, edit.keys)] = -torch.inf
        heads = attend(scores[:, :, rows], state.written)
    for edit in replaced:
        theirs = torch.tensor(edit.rows)[:, None]
        at = torch.tensor([rows.index(row) for row in edit.rows])[:, None]
        heads[:, at, edit.heads] = edit.source.heads[:, theirs, edit.heads]
    if rows:
        middle = middle.clone()
        middle[:, rows] += (heads - state.heads[:, rows]).sum(2)
        after[:, rows] = before_mlp(block, middle[:, rows]).written()
    for edit in mlps:
        after[:, edit.rows] = middle[:, edit.rows] + edit.source.mlp[:, edit.rows]
    for edit in streams:
        after[:, edit.rows] = edit.source.after[:, edit.rows]
    return state._replace(scores=scores, middle=middle, after=after)


def _outcomes(tokens: Array, logits: Tensor) -> Outcomes:
    truth = tokens[:, -logits.shape[2] :]
    chances = logits.double().log_softmax(-1)
    target = torch.from_numpy(truth).expand(len(logits), -1, -1)
    loss = -chances.gather(-1, target[..., None])[..., 0]
    return Outcomes(truth, logits.argmax(-1).to(torch.int8).numpy(), loss.float().numpy())
