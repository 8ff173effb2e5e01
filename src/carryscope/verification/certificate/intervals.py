"""The cheap half of the bound: how far the features of a row can move within a box.

In: `RowTables` and boxes. Out: `Ranges`: a reference point, and a radius for every feature.

A slot s with weight W_s has the share alpha_s = W_s / (W_s + W of all others) of a head's
attention, and sum_s alpha_s = 1, so for any reference r the head's output is

    o = r + sum_s alpha_s (v_s - r).

Within a box v_s stays near the centre of its set and alpha_s between two bounds that come
from the ranges of the weights. Choosing r as the mean of the centres, weighted with the middle
of each alpha, what is left is small: |o - r| <= sum_s max(alpha_s) radius_s + (half the range
of alpha_s) |centre_s - r|. Slots that hold one element only are merged into the fixed tokens
first: what is known moves only as one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from carryscope.verification.certificate.row_tables import RowTables

NEGLIGIBLE = 0.004
"""A slot that moves the stream by less than this share of its length is bounded by norms
alone, not feature by feature. Speed only: both are sound."""


@dataclass(frozen=True, eq=False)
class Shares:
    """How the attention of each head is shared out in each box."""

    sets: Int[Tensor, "box slot"]
    free: Bool[Tensor, "box slot"]
    """Whether the slot holds more than one element."""
    others_least: Float[Tensor, "box slot head"]
    others_most: Float[Tensor, "box slot head"]
    """The range of the weight of everything but the slot."""
    middle: Float[Tensor, "box slot head"]
    half: Float[Tensor, "box slot head"]
    most: Float[Tensor, "box slot head"]
    """The slot's share: its middle, half its range, its largest value; 0 if not free."""
    known_part: Float[Tensor, "box slot head"]
    """The weight of each slot with a single element; 0 if free."""
    known_weight: Float[Tensor, "box head"]
    known_value: Float[Tensor, "box head feature"]
    """Weight and v of the fixed tokens and all slots with a single element, taken together."""
    known_least: Float[Tensor, "box head"]
    known_most: Float[Tensor, "box head"]

    @classmethod
    def of(cls, tables: RowTables, sets: Int[Tensor, "box slot"]) -> Shares:
        """The shares in each box."""
        slots = list(enumerate(tables.slots))
        least = torch.stack([slot.least[sets[:, s]] for s, slot in slots], 1)
        most = torch.stack([slot.most[sets[:, s]] for s, slot in slots], 1)
        free = torch.stack([~slot.single[sets[:, s]] for s, slot in slots], 1)
        others_least = _sum_of_others(least) + tables.fixed_weight
        others_most = _sum_of_others(most) + tables.fixed_weight
        alpha_least = least / (least + others_most) * free[..., None]
        alpha_most = most / (most + others_least) * free[..., None]
        part = least * ~free[..., None]
        known = tables.fixed_weight + part.sum(1)
        rest_least = (least * free[..., None]).sum(1)
        rest_most = (most * free[..., None]).sum(1)
        return cls(
            sets=sets,
            free=free,
            others_least=others_least,
            others_most=others_most,
            middle=(alpha_least + alpha_most) / 2,
            half=(alpha_most - alpha_least) / 2,
            most=alpha_most,
            known_part=part,
            known_weight=known,
            known_value=_known_value(tables, sets, part, free) / known[..., None],
            known_least=known / (known + rest_most),
            known_most=known / (known + rest_least),
        )


def _sum_of_others(weight: Float[Tensor, "box slot head"]) -> Float[Tensor, "box slot head"]:
    """For each slot the sum over all others, without the cancellation of a subtraction."""
    before = weight.cumsum(1)
    after = weight.flip(1).cumsum(1).flip(1)
    total = torch.zeros_like(weight)
    total[:, 1:] += before[:, :-1]
    total[:, :-1] += after[:, 1:]
    return total


def _known_value(
    tables: RowTables, sets: Tensor, part: Float[Tensor, "box slot head"], free: Tensor
) -> Float[Tensor, "box head feature"]:
    """Weight times value of all that a box leaves no choice about."""
    value = tables.fixed_weighted.expand(len(sets), -1, -1).clone()
    for s, slot in enumerate(tables.slots):
        at = (~free[:, s]).nonzero()[:, 0]
        if len(at):
            value.index_add_(0, at, slot.centre[sets[at, s]] * part[at, s, :, None])
    return value


@dataclass(frozen=True, eq=False)
class Ranges:
    """Where the features of a row can be, in each box."""

    shares: Shares
    written: Float[Tensor, "box feature"]
    """What all heads write at the reference point: the sum of r."""
    at: Float[Tensor, "box feature"]
    """The features at the reference point."""
    radius: Float[Tensor, "box feature"]
    moves: Float[Tensor, "box slot"]
    """How far each slot can move the stream."""
    move: Float[Tensor, " box"]
    """How far the stream can be from the reference point."""

    @classmethod
    def of(cls, tables: RowTables, sets: Int[Tensor, "box slot"]) -> Ranges:
        """The ranges in each box."""
        features, shares = tables.features, Shares.of(tables, sets)
        reference = _reference(tables, shares)
        written = reference.sum(1)
        at = features.embedded[tables.space.row.position, tables.query] + written
        stream = features.stream
        away = (shares.known_value - reference).abs()
        half = (shares.known_most - shares.known_least) / 2
        radius = (half[..., None] * away).sum(1)
        known_move = (half * away[..., stream].norm(dim=-1)).sum(1)
        moves = _rough_moves(tables, shares, reference[..., stream].norm(dim=-1))
        big = moves.amax(0) > NEGLIGIBLE * math.sqrt(features.d_model)
        small = torch.where(big, 0.0, moves).sum((1, 2))
        radius += small[:, None] * features.norms
        for s, h in big.nonzero().tolist():
            slot, held = tables.slots[s], sets[:, s]
            away = (slot.centre[held, h] - reference[:, h]).abs_()
            half, most = shares.half[:, s, h], shares.most[:, s, h]
            moves[:, s, h] = most * slot.spread[held, h] + half * away[:, stream].norm(dim=-1)
            radius += away.mul_(half[:, None])
            radius += slot.radius[held, h].mul_(most[:, None])
        by_slot = moves.sum(2)
        return cls(shares, written, at, radius, by_slot, by_slot.sum(1) + known_move)


    def written_by(
        self, columns: Int[Tensor, " some"], box: Int[Tensor, " pair"], functional: Tensor
    ) -> Float[Tensor, " pair"]:
        """A functional of these features, of what all heads write at the reference point."""
        return (self.written[:, columns][box] * functional).sum(1)


def _reference(tables: RowTables, shares: Shares) -> Float[Tensor, "box head feature"]:
    """The mean of the centres, weighted with the middle of each share."""
    known = (shares.known_least + shares.known_most) / 2
    total = known[..., None] * shares.known_value
    for s, slot in enumerate(tables.slots):
        if shares.free[:, s].any():
            total.addcmul_(shares.middle[:, s, :, None], slot.centre[shares.sets[:, s]])
    return total / (known + shares.middle.sum(1))[..., None]


def _rough_moves(
    tables: RowTables, shares: Shares, length: Float[Tensor, "box head"]
) -> Float[Tensor, "box slot head"]:
    """How far each slot can move the stream through each head, by the triangle inequality."""
    held = list(enumerate(tables.slots))
    spread = torch.stack([slot.spread[shares.sets[:, s]] for s, slot in held], 1)
    centre = torch.stack([slot.length[shares.sets[:, s]] for s, slot in held], 1)
    return shares.most * spread + shares.half * (centre + length[:, None])
