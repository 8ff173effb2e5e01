"""The bound with torch: the slow reference, one box at a time, as docs/certificate.md derives it.

In: `RowTables` and the set of every slot in a box. Out: a `Box`, and its `Leads`. It
shares no code with the compiled modules, which are many times faster: the one checks what the
other found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from carryscope.certificate.rounding import OURS
from carryscope.certificate.row_tables import RowTables
from carryscope.task.operation import Array

STEPS = 2
"""Times that a functional is split over the heads, each time better."""


def tensors(t: RowTables) -> SimpleNamespace:
    """The same tables as tensors, but for the sets."""
    tensors = {
        name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
        for name, value in t._asdict().items()
    }
    tensors["beta"] = tensors["beta"][: len(t.into)]
    return SimpleNamespace(**tensors)


class Box:
    """A box, as far as it does not depend on the two tokens that are compared."""

    def __init__(self, t: SimpleNamespace, numbers: Int[Array, " slot"]) -> None:
        self.t = t
        self._share_out(numbers)
        self._find_reference()
        self._find_scale()
        self._find_ranges()
        self._find_last_scale()

    def _share_out(self, numbers: Array) -> None:
        """The share of every element of the slots that hold several, and of what is known."""
        t, sets = self.t, self.t.sets
        spans = [sets.start[[b + n, b + n + 1]] for b, n in zip(sets.begin, numbers, strict=True)]
        self.free = [s for s, (a, b) in enumerate(spans) if b - a > 1]
        self.counts = [int(spans[s][1] - spans[s][0]) for s in self.free]
        elements = [np.arange(*spans[s]) for s in self.free]
        self.slots = len(spans)
        at = np.concatenate([np.empty(0, dtype=np.int64), *elements])
        single = np.array([a for a, b in spans if b - a == 1], dtype=np.int64)
        self.first, self.second = (torch.from_numpy(tokens[at]) for tokens in sets[:2])
        self.single = torch.from_numpy(np.concatenate([tokens[single] for tokens in sets[:2]]))
        weight = t.weight[self.first] + t.weight[self.second]
        self.part, self.known_weight = t.weight[self.first] / weight, t.fixed_weight.clone()
        self.known_weight += t.weight[self.single].sum(0)
        low, high = (self._by_slot(weight, pick) for pick in (_least, _most))
        others = 1 - torch.eye(len(self.free), dtype=torch.float64)
        self.slot = torch.repeat_interleave(torch.tensor(self.counts, dtype=torch.int64))
        least = weight / (weight + (self.known_weight + others @ high)[self.slot])
        most = weight / (weight + (self.known_weight + others @ low)[self.slot])
        self.share, self.swing = (least + most) / 2, (most - least) / 2
        self.known_least = self.known_weight / (self.known_weight + high.sum(0))
        self.known_most = self.known_weight / (self.known_weight + low.sum(0))
        self.weight = weight
        fixed = torch.cat([self.first, self.single, t.fixed])
        self.tokens = torch.cat([fixed, self.second[t.weight[self.second, 0] > 0]]).unique()

    def _by_slot(self, values: Tensor, pick: Callable[[Tensor], Tensor]) -> Tensor:
        """A value for each slot that holds several elements, from its elements."""
        if not self.free:
            return values.new_zeros(0, *values.shape[1:])
        return torch.stack([pick(part) for part in values.split(self.counts)])

    def _of_elements(self, table: Float[Tensor, "token head some"]) -> Tensor:
        """What a head writes for each element: the mean of its two tokens, by their weights."""
        one, other = table[self.first], table[self.second]
        return other + self.part[..., None] * (one - other)

    def _of_known(self, table: Float[Tensor, "token head some"], fixed: Tensor) -> Tensor:
        """What a head writes for all that is known."""
        singles = (self.t.weight[self.single][..., None] * table[self.single]).sum(0)
        return (self.t.fixed_weight[:, None] * fixed + singles) / self.known_weight[:, None]

    def _find_reference(self) -> None:
        """The mean of all elements, weighted with the middles of their shares."""
        t = self.t
        counts = torch.tensor(self.counts, dtype=torch.float64)[self.slot, None]
        mean, own = self.share / counts, (self.known_least + self.known_most) / 2
        total = own + mean.sum(0)

        def reference(values: Tensor, known: Tensor) -> Tensor:
            weighted = torch.einsum("eh,ehf->hf", mean, values) + own[:, None] * known
            return weighted / total[:, None]

        features, known = self._of_elements(t.written), self._of_known(t.written, t.fixed_written)
        stream = self._of_elements(t.stream)
        self.known_stream = self._of_known(t.stream, t.fixed_stream)
        at, self.at_stream_by_head = (
            reference(features, known),
            reference(stream, self.known_stream),
        )
        self.at = t.embedded + at.sum(0)
        self.x = t.embedded_stream + self.at_stream_by_head.sum(0)
        self.gains, self.known_gains = features - at, known - at
        self.moves = stream - self.at_stream_by_head
        self.known_moves = self.known_stream - self.at_stream_by_head

    def _find_scale(self) -> None:
        """sigma at the reference point, its tilt in the box, and how far the stream can move."""
        t, d_model = self.t, self.t.basis.shape[1]
        self.sigma = float((self.x.square().sum() / d_model + t.epsilon).sqrt())
        self.tilts, self.known_tilts = (
            moves @ self.x / (d_model * self.sigma) for moves in (self.moves, self.known_moves)
        )
        slack = t.wander / math.sqrt(d_model)
        low, high = self._range(self.tilts[..., None], self.known_tilts[:, None])
        self.tilt_low, self.tilt_high = float(low.sum()) - slack, float(high.sum()) + slack
        moved = torch.einsum("eh,ehk->ek", self.share, self.moves)
        centre = self._by_slot(moved, lambda part: part.mean(0))
        away = (moved - centre[self.slot]).norm(dim=-1)
        away += (self.swing * self.moves.norm(dim=-1)).sum(-1)
        middle, half = self._known_share()
        rest = (middle[:, None] * self.known_moves).sum(0) + centre.sum(0)
        self.move = t.wander + float(rest.norm() + self._by_slot(away, _most).sum())
        self.move += float((half * self.known_moves.norm(dim=-1)).sum())
        self.curve = self.move**2 / (2 * d_model * self.sigma)
        self.sigma_most = self.sigma + self.tilt_high + self.curve

    def _known_share(self) -> tuple[Tensor, Tensor]:
        """The middle of the share of what is known, and half its range, by head."""
        return (self.known_most + self.known_least) / 2, (self.known_most - self.known_least) / 2

    def _range(
        self, gains: Float[Tensor, "element head some"], known: Float[Tensor, "head some"]
    ) -> tuple[Float[Tensor, "slot_plus_1 some"], Float[Tensor, "slot_plus_1 some"]]:
        """The range of what each slot adds, and last of all what is known."""
        middle = torch.einsum("eh,ehf->ef", self.share, gains)
        half = torch.einsum("eh,ehf->ef", self.swing, gains.abs())
        low, high = self._by_slot(middle - half, _least), self._by_slot(middle + half, _most)
        ends = self.known_least[:, None] * known, self.known_most[:, None] * known
        known_low, known_high = torch.minimum(*ends).sum(0), torch.maximum(*ends).sum(0)
        return torch.cat([low, known_low[None]]), torch.cat([high, known_high[None]])

    def _find_ranges(self) -> None:
        """The range of each neuron's input z, and of each token feature from the reference."""
        t, neurons = self.t, len(self.t.beta)
        beta = torch.cat([t.beta, torch.zeros(len(t.offset), dtype=torch.float64)])
        gains = self.gains + self.tilts[..., None] * beta
        low, high = self._range(gains, self.known_gains + self.known_tilts[:, None] * beta)
        self.widths = (high - low)[:-1, :neurons]
        low, high = low.sum(0) - t.blur, high.sum(0) + t.blur
        self.token_low, self.token_high = low[neurons:], high[neurons:]
        self.noise = t.noise + self.sigma_most * t.noise_per_scale
        bend, more = self.curve * t.beta, self.sigma_most * t.noise_per_scale
        self.z = self.at[:neurons] + self.sigma * t.beta
        self.z_low = self.z + low[:neurons] + bend.clamp(max=0) - more
        self.z_high = self.z + high[:neurons] + bend.clamp(min=0) + more

    def _find_last_scale(self) -> None:
        """The range of sigma sigma_f, and the logits at the reference point, times both scales."""
        t, root = self.t, math.sqrt(self.t.basis.shape[1])
        now, low, high = self.z.relu(), self.z_low.relu(), self.z_high.relu()
        self.relu_length = float(high.norm())
        stream = self.sigma * (self.x @ t.basis + t.out_bias) + now @ t.to_stream
        swing = max(self.tilt_high + self.curve, -self.tilt_low)
        straight = float(self.x.norm() + t.out_bias.norm())
        off = self.sigma_most * self.move + swing * straight
        off += t.out_norm * float(torch.maximum(high - now, now - low).norm())
        length, more = float(stream.norm()), self.sigma_most * math.sqrt(t.epsilon)
        rough = self.sigma_most * (straight + self.move) + t.out_norm * self.relu_length
        off += OURS * rough
        self.last_least = max(length - off, 0.0) / root
        self.last_most = min(length + off, rough) / root + more
        direct = self.at[len(t.beta) :] + t.bias_tokens
        self.logits = self.sigma * direct + t.to_tokens @ now + length / root * t.offset
        self.direct = direct


class Leads:
    """The lead of the target over every other token in a box, or theirs over the target."""

    def __init__(self, box: Box, target: int, *, flip: bool) -> None:
        self.box, t = box, box.t
        sign = -1.0 if flip else 1.0

        def differences(values: Tensor) -> Tensor:
            return sign * (values[target] - values)

        self.a = differences(t.to_tokens)
        slope, rise = self._lines()
        a, direct = self.a * slope, differences(box.direct)
        by_sigma, d_model = direct + a @ t.beta, t.basis.shape[1]
        along = by_sigma[:, None] * box.x / (d_model * box.sigma)
        self.functional = a @ t.into + box.sigma * differences(t.token_into) + along
        least = a @ box.z + (self.a * rise).sum(1) + box.sigma * direct
        least = least + box.curve * by_sigma.clamp(max=0) + self._bent(target, flip)
        offset = differences(t.offset) - t.demanded - (t.token_noise[target] + t.token_noise)
        # Two plain numbers would make torch.where choose float32.
        least_offset = torch.minimum(offset * box.last_least, offset * box.last_most)
        self.values, written = self._written()
        self.least = least + written + least_offset - self._rounding(a, target)

    def _lines(self) -> tuple[Tensor, Tensor]:
        """Slope and height at 0 of a line that each neuron does not go below, or above if it
        speaks against the winner."""
        low, high = self.box.z_low, self.box.z_high
        unsure = (low < 0) & (high > 0)
        chord = torch.where(unsure, high / (high - low).clamp(min=1e-300), 0.0)
        below = torch.where(unsure, low + high > 0, high > 0).double()
        above = torch.where(unsure, chord, below)
        against = self.a < 0
        return torch.where(against, above, below), torch.where(against, -low * chord, 0.0)

    def _bent(self, target: int, flip: bool) -> Tensor:
        """The least product of what sigma and what the token features have over the reference."""
        box, (low, high) = self.box, (self.box.token_low, self.box.token_high)
        low, high = low[target] - high, high[target] - low
        low, high = (-high, -low) if flip else (low, high)
        ends = [box.tilt_low, box.tilt_high + box.curve]
        return torch.stack([end * of for end in ends for of in (low, high)]).amin(0)

    def _written(self) -> tuple[Tensor, Tensor]:
        """What each slot adds to the functional in its elements, and the least of all."""
        box = self.box
        values = torch.einsum("vk,ehk->veh", self.functional, box.moves)
        known = torch.einsum("vk,hk->vh", self.functional, box.known_moves)
        q, best, least = torch.zeros_like(known), values, torch.full((len(known),), -torch.inf)
        for _ in range(STEPS):
            gains, known_gains = values - q[:, None], known - q
            taken = (box.share * gains - box.swing * gains.abs()).sum(-1)
            share = torch.where(known_gains > 0, box.known_least, box.known_most)
            found = (q + share * known_gains).sum(1)
            parts = taken.split(box.counts, 1) if box.free else []
            found = found + sum(part.amin(1) for part in parts)
            best = torch.where((found > least)[:, None], taken, best) if _ else taken
            least = torch.maximum(least, found)
            q = self._at_worst(values, known, [part.argmin(1) for part in parts])
        return best, least

    def _at_worst(self, values: Tensor, known: Tensor, worst: list[Tensor]) -> Tensor:
        """What each head writes where every slot holds its worst element."""
        box, start = self.box, 0
        total, written = box.known_weight.expand_as(known), box.known_weight * known
        for count, chosen in zip(box.counts, worst, strict=True):
            at = start + chosen
            weight = box.weight[at]
            total = total + weight
            written = written + weight * values[torch.arange(len(values)), at]
            start += count
        return written / total

    def _rounding(self, a: Tensor, target: int) -> Tensor:
        """What rounding may cost."""
        box, t = self.box, self.box.t
        read = torch.einsum("vk,thk->vth", self.functional, t.stream[box.tokens])
        astray = ((read.amax(1) - read.amin(1)) * t.astray / 2).sum(1)
        terms = int((~(box.z_high <= 0)).sum()) + t.after_terms
        after = terms * (t.after_neurons * box.relu_length + t.after_scale * box.sigma_most)
        unseen = box.sigma_most * (t.on_noise_per_scale[target] + t.on_noise_per_scale)
        lengths = t.token_lengths[target] + t.token_lengths
        return (
            a.abs() @ box.noise
            + unseen
            + after * lengths
            + t.ball * self.functional.norm(dim=1)
            + astray
        )

    def hurt(self, rival: int) -> Float[Tensor, " slot"]:
        """What the freedom of each slot costs: in the functional, and for the neurons."""
        box, a = self.box, self.a[rival]
        low, high = box.z_low.clamp(max=0), box.z_high.clamp(min=0)
        chord = -low * high / (high - low).clamp(min=1e-300)
        gap = torch.where(a < 0, -a * chord, a * torch.minimum(-low, high))
        part = box.widths / box.widths.sum(0).clamp(min=1e-300)
        taken = self.values[rival][:, None]
        spread = box._by_slot(taken, _most) - box._by_slot(taken, _least)
        cost = torch.zeros(box.slots, dtype=torch.float64)
        cost[box.free] = spread[:, 0] + part @ gap
        return cost


def _least(values: Tensor) -> Tensor:
    return values.amin(0)


def _most(values: Tensor) -> Tensor:
    return values.amax(0)
