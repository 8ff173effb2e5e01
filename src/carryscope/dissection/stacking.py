"""The rows of a layer that a stack of changes reaches, and nothing else.

In: the clean state of a layer, and what changed below it or in it. Out: `Rows`, for every question
and every change of the stack. All changes of a stack touch the same rows of the same layers, so
they share matrix products: with the clean keys and values, which are the same for all of them, and
through the MLP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from carryscope.dissection.capture import LayerState, after_mlp, unseen
from carryscope.dissection.interventions import HEADS, MLP, PATTERN, STREAM
from carryscope.model.answer_path import normalized
from carryscope.model.tables import projected
from carryscope.model.transformer import Block


class Written(NamedTuple):
    """What heads add to a row that attends to one position alone, under each change."""

    clean: Float[Tensor, "batch head position d_model"]
    positions: list[int]
    """Where it is not the clean value."""
    added: Float[Tensor, "batch change position head d_model"] | None = None
    """There, how it differs."""

    def by_head(
        self, pattern: Float[Tensor, "batch change row head position"]
    ) -> Float[Tensor, "batch change row head d_model"]:
        """What each head adds to rows that attend in these shares."""
        heads = torch.einsum("bcrhp,bhpd->bcrhd", pattern, self.clean)
        if self.added is not None:
            moved = pattern[..., span(self.positions)]
            heads = heads + torch.einsum("bcrhp,bcphd->bcrhd", moved, self.added)
        return heads

    def together(
        self, pattern: Float[Tensor, "batch change row head position"]
    ) -> Float[Tensor, "batch change row d_model"]:
        """The same, all heads in one product."""
        batch, changes, rows = pattern.shape[:3]
        shares = pattern.view(batch, changes * rows, -1)
        heads = torch.bmm(shares, self.clean.flatten(1, 2)).view(batch, changes, rows, -1)
        moved = pattern[..., span(self.positions)]
        if self.added is not None and len(self.positions) > 1:
            heads += torch.einsum("bcrhp,bcphd->bcrd", moved, self.added)
        elif self.added is not None:  # small products cost more than their arithmetic
            for head, added in enumerate(self.added.unbind(3)):
                heads.addcmul_(moved[..., head, :], added)
        return heads


class Rows(NamedTuple):
    """Some rows of a layer, for each question and each change of a stack."""

    rows: list[int]
    """Counted from the layer's first."""
    scores: Float[Tensor, "batch change row head position"]
    written: Written
    heads: Float[Tensor, "batch change row head d_model"] | None
    """What each head adds, if it was computed for each."""
    middle: Float[Tensor, "batch change row d_model"]
    after: Float[Tensor, "batch change row d_model"]


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


def unmoved(clean: LayerState, rows: list[int], changes: int) -> Rows:
    """Rows of a layer below which nothing has changed."""
    scores, *others = (
        part[:, None, span(rows)].expand(-1, changes, *[-1] * (part.ndim - 1))
        for part in (clean.scores, clean.heads, clean.middle, clean.after)
    )
    return Rows(rows, scores, Written(clean.written, []), *others)


def carried_on(
    block: Block,
    below: Rows,
    before: Float[Tensor, "batch position d_model"],
    clean: LayerState,
    rows: list[int],
    *,
    apart: bool,
) -> Rows:
    """Rows of a layer once the stream below it has changed from what it was before.

    Keys and values change at the positions that changed, queries only if they are rows themselves.
    With `apart` it is known what each head adds.
    """
    moved, own = below.rows, [clean.first_row + row for row in rows]
    query, key, written = projected(block.attn, normalized(block.ln1, below.after))
    scores = clean.scores[:, None, span(rows)].repeat(1, query.shape[1], 1, 1, 1)
    columns = torch.einsum("brhe,bcphe->bcrhp", clean.query[:, span(own)], key)
    scores[..., span(moved)] = columns.masked_fill(unseen(own, moved), -torch.inf)
    both = [position for position in own if position in moved]
    at, there = (span([some.index(p) for p in both]) for some in (own, moved))
    if both:
        anew = torch.einsum("bcrhe,bphe->bcrhp", query[:, :, there], clean.key)
        anew[..., span(moved)] = torch.einsum("bcrhe,bcphe->bcrhp", query[:, :, there], key)
        keys = range(anew.shape[-1])
        scores[:, :, at] = anew.masked_fill_(unseen(both, keys), -torch.inf)
    old = clean.written.transpose(1, 2)[:, None, span(moved)]
    reads, pattern = Written(clean.written, moved, written - old), scores.softmax(-1)
    heads = reads.by_head(pattern) if apart else None
    middle = reads.together(pattern) if heads is None else heads.sum(3)
    middle += (before[:, span(own)] + block.attn.b_O)[:, None]
    if both:
        middle[:, :, at] += below.after[:, :, there] - before[:, None, span(both)]
    return Rows(rows, scores, reads, heads, middle, after_mlp(block, middle))


def span(places: list[int]) -> slice | list[int]:
    """The same places, as a slice if they follow on each other: those are not copied."""
    first, stop = places[0] if places else 0, places[-1] + 1 if places else 0
    return slice(first, stop) if len(places) == stop - first else places


def edited(block: Block, here: Rows, edits: Sequence[Sequence[Edit]]) -> Rows:
    """The rows of a layer, each change with its own edits, in the order of the forward pass."""
    assert here.heads is not None
    middle, after = here.middle.clone(), here.after.clone()
    scores, heads, at = here.scores, here.heads, here.rows.index
    each = [(i, edit) for i, some in enumerate(edits) for edit in some]
    if cuts := [(i, edit) for i, edit in each if edit.part == PATTERN]:
        scores = scores.clone()
        for i, edit in cuts:
            cells = np.ix_(range(len(scores)), [i], [*map(at, edit.rows)], edit.heads, edit.keys)
            scores[cells] = -torch.inf
        heads = here.written.by_head(scores.softmax(-1).nan_to_num_(0.0))
        middle += (heads - here.heads).sum(3)
    replaced = {
        (i, row, head): edit.source.heads[:, row, head]
        for i, edit in each
        if edit.part == HEADS
        for row in edit.rows
        for head in edit.heads
    }
    for (i, row, head), new in replaced.items():
        middle[:, i, at(row)] += new - heads[:, i, at(row), head]
    again = sorted({i for i, edit in each if edit.part in (PATTERN, HEADS)})
    if again:
        after[:, span(again)] = after_mlp(block, middle[:, span(again)])
    for i, edit in each:
        if edit.part == MLP:
            for row in edit.rows:
                after[:, i, at(row)] = middle[:, i, at(row)] + edit.source.mlp[:, row]
    for i, edit in each:
        if edit.part == STREAM:
            for row in edit.rows:
                after[:, i, at(row)] = edit.source.after[:, row]
    return here._replace(scores=scores, heads=None, middle=middle, after=after)
