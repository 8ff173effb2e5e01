"""The engine: many interventions on many questions, recomputing only what they change.

In: questions, and interventions as values. Out: `Outcomes`, what the model says under each.
All answers are teacher-forced.

    engine = Engine(model, reference_questions)
    engine.answers(questions, [UNCHANGED, Node(13, 0, 1).ablated()]).correct

A change in the last layer reaches the logits of its own rows only. So it costs one MLP per
question and row, and all interventions that touch a row share one batch. A change below the
last layer is carried upwards from the first row it touches. Several changes made at once use
the instrumented pass, which is slower. The tests compare the fast ways with that pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from carryscope.core.progress import Advance, unheard
from carryscope.dissection.capture import Capture, LayerState, capture
from carryscope.dissection.edits import Edit, Jobs, MeanState
from carryscope.dissection.hooks import answers_by_hooks
from carryscope.dissection.interventions import Ablate, Intervention, Patch, check, layer_and_part
from carryscope.model.tables import FirstLayerTables
from carryscope.model.transformer import Transformer
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
        with torch.inference_mode():
            self._means = self._mean_states()

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
        jobs = Jobs(self.model, clean, logits)
        for i, change in enumerate(changes):
            if change == UNCHANGED:
                continue
            if isinstance(change, tuple):
                logits[i] = answers_by_hooks(self.model, questions, change, self.reference, chunk)
                continue
            layer, part = layer_and_part(change, self.config)
            new: LayerState | MeanState | None = None
            if isinstance(change, Patch):
                if id(change.source) not in sources:
                    sources[id(change.source)] = self.capture(change.source[chunk])
                new = sources[id(change.source)].layers[layer]
            elif isinstance(change, Ablate) and change.how == "mean":
                new = self._means[layer]
            jobs.add(i, layer, Edit(clean.layers[layer], new, change, part))
        jobs.finish()
        return logits

    def _mean_states(self) -> list[MeanState]:
        """Sums over chunks, so that the reference may be of any size."""
        sums = [
            [
                [getattr(layer, name).sum(0, keepdim=True) for name in MeanState._fields]
                for layer in state.layers
            ]
            for state in self.captures(self.reference)
        ]
        return [
            MeanState(*(sum(part) / len(self.reference) for part in zip(*layer, strict=True)))
            for layer in zip(*sums, strict=True)
        ]


def _outcomes(tokens: Array, logits: Tensor) -> Outcomes:
    truth = tokens[:, -logits.shape[2] :]
    chances = logits.double().log_softmax(-1)
    target = torch.from_numpy(truth).expand(len(logits), -1, -1)
    loss = -chances.gather(-1, target[..., None])[..., 0]
    return Outcomes(truth, logits.argmax(-1).to(torch.int8).numpy(), loss.float().numpy())
