"""One intervention on one captured layer, and the way from there to the logits.

In: the clean state of a batch and an intervention. Out: the residual stream at the rows that
change, and at the end the logits of the answer rows they reach.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from carryscope.dissection.capture import Capture, LayerState, attend, block_of, mlp_of
from carryscope.dissection.interventions import HEADS, MLP, Cut, Intervention
from carryscope.model.answer_path import later_block, logits_of
from carryscope.model.transformer import Transformer

MOST_ROWS = 4096
"""Rows that go through the MLP at once: beyond this a product gains no more speed."""


class MeanState(NamedTuple):
    """The mean state of one layer over the reference questions."""

    heads: Float[Tensor, "1 row head d_model"]
    mlp: Float[Tensor, "1 row d_model"]
    after: Float[Tensor, "1 row d_model"]


class Edit(NamedTuple):
    """One intervention on one layer, with all that it needs to know."""

    state: LayerState
    new: LayerState | MeanState | None
    """Where replaced values come from; none for zero, and for a cut."""
    change: Intervention
    part: str

    def rows(self) -> list[int]:
        """The rows, counted from the state's first, whose residual stream changes."""
        count = self.state.middle.shape[1]
        rows = sorted(row - self.state.first_row for row in set(self.change.rows))
        return [row for row in rows if 0 <= row < count]

    def middle(self, rows: list[int]) -> Float[Tensor, "batch row d_model"] | None:
        """The residual stream after attention, if it is attention that changes."""
        heads = self.change.heads
        chosen = list(range(self.state.heads.shape[2])) if heads is None else list(heads)
        if isinstance(self.change, Cut):
            new = self._reread(rows, chosen, self.change.keys)
        elif self.part == HEADS:
            new = self._replaced("heads", rows)
        else:
            return None
        old = self.state.heads[:, rows][:, :, chosen]
        return self.state.middle[:, rows] + (new[:, :, chosen] - old).sum(2)

    def after(self, rows: list[int]) -> Float[Tensor, "batch row d_model"]:
        """The residual stream after the block, if it is changed behind the attention."""
        if self.part == MLP:
            return self.state.middle[:, rows] + self._replaced("mlp", rows)
        return self._replaced("after", rows)

    def _replaced(self, name: str, rows: list[int]) -> Tensor:
        """What stands at these rows of a site after the change."""
        old: Tensor = getattr(self.state, name)[:, rows]
        if self.new is None:
            return torch.zeros_like(old)
        new: Tensor = getattr(self.new, name)[:, rows]
        return new.expand_as(old)

    def _reread(
        self, rows: list[int], heads: list[int], keys: tuple[int, ...]
    ) -> Float[Tensor, "batch row head d_model"]:
        """What the heads add at these rows once they no longer see the keys."""
        scores, written = self.state.scores[:, :, rows], self.state.written
        seen = [key for key in keys if key < scores.shape[-1]]  # no answer row sees the last token
        hidden = torch.zeros(scores.shape[1:], dtype=torch.bool)
        hidden[np.ix_(heads, range(len(rows)), seen)] = True
        return attend(scores.masked_fill(hidden, -torch.inf), written)


class Jobs:
    """Residual streams on their way to the logits, gathered so that products are large."""

    def __init__(
        self,
        model: Transformer,
        clean: Capture,
        logits: Float[Tensor, "change batch answer token"],
    ) -> None:
        self._model, self._clean, self._logits = model, clean, logits
        self._last = len(clean.layers) - 1
        self._waiting: dict[bool, list[tuple[int, int, Tensor]]] = defaultdict(list)

    def add(self, i: int, layer: int, edit: Edit) -> None:
        """Take on one intervention: in the last layer row by row, below it all at once."""
        rows = edit.rows()
        middle = edit.middle(rows)
        residual = edit.after(rows) if middle is None else middle
        if layer < self._last:
            if middle is not None:
                residual = middle + mlp_of(block_of(self._model, layer), middle)
            self._carry_on(i, layer, rows, residual)
            return
        for place, row in enumerate(rows):
            self._waiting[middle is not None].append((i, row, residual[:, place]))
        if sum(len(x) for _, _, x in self._waiting[True]) >= MOST_ROWS:
            self._finish(through_mlp=True)

    def finish(self) -> None:
        """Bring to an end what is still waiting."""
        for through_mlp in (True, False):
            self._finish(through_mlp=through_mlp)

    def _finish(self, *, through_mlp: bool) -> None:
        waiting = self._waiting.pop(through_mlp, [])
        if not waiting:
            return
        residual = torch.stack([x for _, _, x in waiting])
        if through_mlp:
            residual = residual + mlp_of(block_of(self._model, self._last), residual)
        said = logits_of(self._model, residual)
        changes, rows = [i for i, _, _ in waiting], [row for _, row, _ in waiting]
        self._logits[changes, :, rows] = said

    def _carry_on(self, i: int, layer: int, rows: list[int], residual: Tensor) -> None:
        """From a changed residual stream below the last layer to the answer rows."""
        if not rows:
            return
        first_answer = self._clean.layers[-1].first_row
        whole, first = self._clean.layers[layer].after.clone(), rows[0]
        whole[:, rows] = residual
        for above in range(layer + 1, self._last):
            later = later_block(block_of(self._model, above), whole, first_row=first).written()
            whole = self._clean.layers[above].after.clone()
            whole[:, first:] = later
        first = max(first, first_answer)
        later = later_block(block_of(self._model, self._last), whole, first_row=first).written()
        self._logits[i, :, first - first_answer :] = logits_of(self._model, later)
