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

All numbers are rounded. What that can cost is a number of units of float32 (`roundings`) of the
*absolute* value of each feature: of the sum of all that is added up for it, signs disregarded.
docs/certificate.md counts them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from carryscope.certificate.features import TINY
from carryscope.certificate.row_tables import RowTables

NEGLIGIBLE = 0.001
"""A slot that moves the stream by less than this share of its length is bounded by norms and
sizes, not set by set. Speed only: both are sound."""


FUZZ = 64
"""More roundings than lie between the tables and any feature of a box, one after the other,
besides those whose number grows with the slots and heads."""


def roundings(tables: RowTables) -> int:
    """More roundings than lie between the tables and any feature of a box."""
    slots, heads, _ = tables.sizes.shape
    return FUZZ + 3 * slots + 2 * heads


@dataclass(frozen=True, eq=False)
class Shares:
    """How the attention of each head is shared out in each box; weights are in float64."""

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
    """The part of each slot with a single element in all that is known; 0 if free."""
    fixed_part: Float[Tensor, "box head"]
    """The part of the tokens that never change in all that is known."""
    known_value: Float[Tensor, "head box feature"]
    """v of all that is known: of those tokens and all slots with a single element."""
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
        single = least * ~free[..., None]
        known = tables.fixed_weight + single.sum(1)
        rest_least = (least * free[..., None]).sum(1)
        rest_most = (most * free[..., None]).sum(1)
        kind = tables.features.dtype
        part = (single / known[:, None]).to(kind)
        fixed = (tables.fixed_weight / known).to(kind)
        return cls(
            sets=sets,
            free=free,
            others_least=others_least,
            others_most=others_most,
            middle=((alpha_least + alpha_most) / 2).to(kind),
            half=((alpha_most - alpha_least) / 2).to(kind),
            most=alpha_most.to(kind),
            known_part=part,
            fixed_part=fixed,
            known_value=_known_value(tables, sets, part, fixed, free),
            known_least=(known / (known + rest_most)).to(kind),
            known_most=(known / (known + rest_least)).to(kind),
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
    tables: RowTables,
    sets: Tensor,
    part: Float[Tensor, "box slot head"],
    fixed: Float[Tensor, "box head"],
    free: Tensor,
) -> Float[Tensor, "head box feature"]:
    """v of all that a box leaves no choice about."""
    value = fixed.T[..., None] * tables.fixed_value[:, None]
    for s, slot in enumerate(tables.slots):
        at = (~free[:, s]).nonzero()[:, 0]
        if len(at):
            held, own = sets[at, s], part[at, s]
            for h, of_head in enumerate(value):
                of_head.index_add_(0, at, slot.centre[h].index_select(0, held) * own[:, h, None])
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
    absolute: Float[Tensor, "box feature"]
    """The sum of all that is added up for a feature, each at its largest and with one sign."""
    moves: Float[Tensor, "box slot"]
    """How far each slot can move the stream."""
    move: Float[Tensor, " box"]
    """How far the stream can be from the reference point, rounding included."""

    @classmethod
    def of(cls, tables: RowTables, sets: Int[Tensor, "box slot"]) -> Ranges:
        """The ranges in each box."""
        features, shares = tables.features, Shares.of(tables, sets)
        reference = _reference(tables, shares)
        written = reference.sum(0)
        at = features.embedded[tables.space.row.position, tables.query] + written
        stream = features.stream
        away = (shares.known_value - reference).abs_()
        half = (shares.known_most - shares.known_least).T / 2
        known_move = (half * (away[..., stream].norm(dim=-1) + TINY)).sum(0)
        radius = (away * half[..., None]).sum(0)
        absolute = _absolute(tables, shares)
        moves = _rough_moves(tables, shares, reference[..., stream].norm(dim=-1).T + TINY)
        big = moves > NEGLIGIBLE * math.sqrt(features.d_model)
        radius += _negligible(tables, shares, reference, ~big)
        for s, h in big.any(0).nonzero().tolist():
            slot, held, here = tables.slots[s], sets[:, s], big[:, s, h]
            half, most = shares.half[:, s, h] * here, shares.most[:, s, h] * here
            away = slot.centre[h].index_select(0, held).sub_(reference[h]).abs_()
            around = slot.radius[h].index_select(0, held)
            move = most * slot.spread[held, h] + half * (away[:, stream].norm(dim=-1) + TINY)
            moves[:, s, h] = torch.where(here, move, moves[:, s, h])
            radius.addcmul_(away, half[:, None]).addcmul_(around, most[:, None])
        fuzz, steps = roundings(tables), 2 * features.d_model + 4 * moves[0].numel() + FUZZ
        radius.mul_(1 + steps * features.unit).add_(absolute, alpha=fuzz * features.unit)
        by_slot = moves.sum(2)
        move = (by_slot.sum(1) + known_move) * (1 + steps * features.unit)
        move += fuzz * features.unit * (absolute[:, stream].norm(dim=-1) + TINY)
        return cls(shares, written, at, radius, absolute, by_slot, move)


def _negligible(
    tables: RowTables,
    shares: Shares,
    reference: Float[Tensor, "head box feature"],
    which: Bool[Tensor, "box slot head"],
) -> Float[Tensor, "box feature"]:
    """How far some slots can move the features: what is written differs from its centre by at
    most the spread times the norm of the feature, and centre and reference have known sizes."""
    half = shares.half * which
    moved = half.flatten(1) @ tables.sizes[:-1].flatten(0, 1)
    for h, of_head in enumerate(reference):
        moved.addcmul_(of_head.abs(), half[:, :, h].sum(1, keepdim=True))
    spread = (shares.most * _spreads(tables, shares) * which).sum((1, 2))
    return moved.addcmul_(spread[:, None], tables.features.norms)


def _spreads(tables: RowTables, shares: Shares) -> Float[Tensor, "box slot head"]:
    return torch.stack([t.spread[shares.sets[:, s]] for s, t in enumerate(tables.slots)], 1)


def _absolute(tables: RowTables, shares: Shares) -> Float[Tensor, "box feature"]:
    """Every slot with its largest share of the largest that is written for it, and the query.

    Divided by the sum of the middles, where that is below 1: so it holds for the reference too.
    What float64 lost of the shares is put in such that it counts when multiplied by FUZZ units.
    """
    known = shares.known_most[:, None]
    slots, fixed = shares.most + shares.known_part * known, shares.fixed_part[:, None] * known
    middles = (shares.known_least + shares.known_most) / 2 + shares.middle.sum(1)
    weight = torch.cat([slots, fixed], 1) / middles.clamp(max=1)[:, None]
    written = weight.flatten(1) @ tables.sizes.flatten(0, 1)
    lost = tables.features.sizes
    written *= 1 + lost.shares / FUZZ
    written += weight.sum(1) @ lost.written
    return written + lost.embedded[tables.space.row.position, tables.query]


def _reference(tables: RowTables, shares: Shares) -> Float[Tensor, "head box feature"]:
    """The mean of the centres, weighted with the middle of each share."""
    known = ((shares.known_least + shares.known_most) / 2).T
    middle = shares.middle.permute(2, 1, 0)
    total = known[..., None] * shares.known_value
    for s, slot in enumerate(tables.slots):
        if shares.free[:, s].any():
            for h, of_head in enumerate(total):
                centre = slot.centre[h].index_select(0, shares.sets[:, s])
                of_head.addcmul_(centre, middle[h, s, :, None])
    return total.div_((known + middle.sum(1))[..., None])


def _rough_moves(
    tables: RowTables, shares: Shares, length: Float[Tensor, "box head"]
) -> Float[Tensor, "box slot head"]:
    """How far each slot can move the stream through each head, by the triangle inequality."""
    centre = torch.stack([t.length[shares.sets[:, s]] for s, t in enumerate(tables.slots)], 1)
    return shares.most * _spreads(tables, shares) + shares.half * (centre + length[:, None])
