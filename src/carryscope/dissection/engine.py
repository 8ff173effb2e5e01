"""The engine: many interventions on many questions, recomputing only what they change.

In: questions, and interventions as values. Out: `Outcomes`, what the model says under each.
All answers are teacher-forced.

A change in the last layer reaches the logits of its own rows and no others, so it costs one
MLP per question and row, and all interventions that touch a row go through it in one batch.
A change below the last layer is carried upwards from the first row it touches. Several
changes made at once go through the instrumented pass, which is slower, and to which the
tests hold the fast ways equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from carryscope.core.errors import CallError
from carryscope.dissection.capture import Capture, capture
from carryscope.dissection.edits import Edit, Jobs, MeanState
from carryscope.dissection.hooks import answers_by_hooks
from carryscope.dissection.interventions import Intervention, Patch, layer_and_part
from carryscope.model.tables import FirstLayerTables
from carryscope.model.transformer import Transformer
from carryscope.task.operation import Array
from carryscope.task.questions import Questions

CHUNK = 256
"""Questions at a time, at most."""

CHUNK_NUMBERS = 8_000_000
"""What heads write at every position is the largest state of a chunk: so many numbers, 32 MB."""

Change = Intervention | tuple[Intervention, ...]
"""One intervention, or several made at once, or none: `()` leaves the model as it is."""

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
        with torch.inference_mode():
            return capture(self.model, self._tables, self._tokens(questions))

    def captures(self, questions: Questions) -> Iterator[Capture]:
        """The clean state of many questions, a chunk at a time."""
        for start in range(0, len(questions), self._size):
            yield self.capture(questions[start : start + self._size])

    def answers(
        self,
        questions: Questions,
        changes: Sequence[Change] = (UNCHANGED,),
        *,
        on_progress: Callable[[int], object] = lambda _: None,
    ) -> Outcomes:
        """What the model says under each change; by default, when nothing is changed.

        `on_progress` hears, for every chunk, how many questions times changes were done.
        """
        self._check(questions, changes)
        parts = []
        for start in range(0, len(questions), self._size):
            chunk = slice(start, start + self._size)
            with torch.inference_mode():
                logits = self._chunk(questions[chunk], changes, chunk)
            parts.append(_outcomes(self.layout.encode(questions[chunk]), logits))
            on_progress(logits.shape[0] * logits.shape[1])
        return Outcomes(
            truth=np.concatenate([part.truth for part in parts]),
            predicted=np.concatenate([part.predicted for part in parts], axis=1),
            loss=np.concatenate([part.loss for part in parts], axis=1),
        )

    def _check(self, questions: Questions, changes: Sequence[Change]) -> None:
        for change in changes:
            for one in change if isinstance(change, tuple) else (change,):
                layer_and_part(one, self.config)
                if isinstance(one, Patch) and len(one.source) != len(questions):
                    raise CallError(
                        f"A patch needs one source for each of the {len(questions)} questions. "
                        f"Got {len(one.source)}."
                    )

    def _tokens(self, questions: Questions) -> Int[Tensor, "batch position"]:
        return torch.from_numpy(self.layout.encode(questions))

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
            if isinstance(change, Patch) and id(change.source) not in sources:
                sources[id(change.source)] = self.capture(change.source[chunk])
            layer, part = layer_and_part(change, self.config)
            source = sources[id(change.source)].layers[layer] if isinstance(change, Patch) else None
            edit = Edit(clean.layers[layer], self._means[layer], source, change, part)
            jobs.add(i, layer, edit)
        jobs.finish()
        return logits

    def _mean_states(self) -> list[MeanState]:
        """Sums over chunks, so that the reference may be of any size."""
        totals: list[list[Tensor]] = []
        for state in self.captures(self.reference):
            sums = [
                [x.sum(0) for x in (s.key, s.written, s.heads, s.mlp, s.after)]
                for s in state.layers
            ]
            totals = (
                [
                    [a + b for a, b in zip(*pair, strict=True)]
                    for pair in zip(totals, sums, strict=True)
                ]
                if totals
                else sums
            )
        return [MeanState(*(total / len(self.reference) for total in layer)) for layer in totals]


def _outcomes(tokens: Array, logits: Tensor) -> Outcomes:
    truth = tokens[:, -logits.shape[2] :]
    chances = logits.double().log_softmax(-1)
    target = torch.from_numpy(truth).expand(len(logits), -1, -1)
    loss = -chances.gather(-1, target[..., None])[..., 0]
    return Outcomes(truth, logits.argmax(-1).to(torch.int8).numpy(), loss.float().numpy())
