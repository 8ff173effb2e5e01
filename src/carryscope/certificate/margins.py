"""The costly half of the bound: the least margin of one token over another within a box.

In: `Ranges` of boxes. Out: for pairs (winner, loser) a number that sigma sigma_f (logit of the
winner - logit of the loser - demanded margin) does not go below, anywhere in the box.

The move D = x - reference enters through (1) the linear terms, (2) sigma, which lies between
its tangent and its tangent plus |D|^2 / (2 d sigma), and (3) the neurons. A neuron whose input
keeps its sign is linear; of the others a line below (or above, if the neuron favours the
loser) is taken. What comes out is one linear functional of D per pair of tokens, and such a
functional is bounded slot by slot, element by element: see `functionals`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from carryscope.certificate.functionals import Elements
from carryscope.certificate.intervals import Ranges, roundings
from carryscope.certificate.row_tables import RowTables
from carryscope.task.operation import Array

DEMANDED = 1e-3
"""The margin in logits that is demanded rather than 0: any evaluation of the model whose logits
are off by less than half of it (float32 is, by far) gives the same answers."""

GUARD = 1e-4
"""The search demands bounds above this, the check above 0: it may add up in another order."""

CHUNK = 64
"""Boxes, or pairs of tokens in them, bounded at once: their features stay near the processor's
cache."""


@dataclass(frozen=True, eq=False)
class Neurons:
    """The inputs z of the neurons that may be active somewhere, and the two scales."""

    which: Int[Tensor, " neuron"]
    to_tokens: Float[Tensor, "token neuron"]
    z: Float[Tensor, "box neuron"]
    slope_below: Float[Tensor, "box neuron"]
    """Of a line through 0 that the neuron does not go below."""
    slope_above: Float[Tensor, "box neuron"]
    rise_above: Float[Tensor, "box neuron"]
    """Slope, and height at 0, of a line that it does not go above."""
    active: Int[Tensor, " box"]
    """How many neurons may be active."""
    sigma: Float[Tensor, " box"]
    tilt: Float[Tensor, " box"]
    """How far the tangent of sigma can move."""
    curve: Float[Tensor, " box"]
    """How far sigma can be above its tangent."""
    scale_least: Float[Tensor, " box"]
    scale_most: Float[Tensor, " box"]
    """The range of sigma sigma_f."""
    logits: Float[Tensor, "box token"]
    """At the reference point, times sigma sigma_f."""
    mass: Float[Tensor, "box token"]
    """The most that all neurons together can write for a token, if nothing cancels."""

    @classmethod
    def of(cls, tables: RowTables, ranges: Ranges) -> Neurons:
        """The neurons in each box."""
        f, fuzz = tables.features, roundings(tables)
        x = ranges.at[:, f.stream]
        sigma = (x.square().mean(1) + f.epsilon).sqrt()
        rough = (f.d_model + fuzz) * f.unit
        tilt = ranges.move / math.sqrt(f.d_model) + sigma * rough
        curve = ranges.move.square() / (2 * f.d_model * sigma)
        z = ranges.at[:, : f.d_mlp] + sigma[:, None] * f.beta
        radius = ranges.radius[:, : f.d_mlp] + (tilt + curve)[:, None] * f.beta.abs()
        radius.addcmul_((rough * (sigma + tilt + curve))[:, None], f.sizes.beta)
        # What is not a number counts as active, so that it spoils the bound.
        which = (~((z + radius) <= 0)).any(0).nonzero()[:, 0]
        z, radius = z.index_select(1, which), radius.index_select(1, which)
        low, high, active = z - radius, z + radius, z.relu()
        a = f.to_tokens.index_select(1, which)
        norms, count = f.to_stream_norms[which], (high > 0).sum(1)
        stream = sigma[:, None] * (x + f.out_bias) + active @ f.to_stream.index_select(0, which)
        change = torch.maximum(high.relu() - active, active - low.relu())
        off = (
            (sigma + tilt + curve) * ranges.move
            + (tilt + curve) * (x + f.out_bias).norm(dim=1)
            + change @ norms
        )
        sums = (count + f.d_model + fuzz) * f.unit
        off = off * (1 + sums) + sums * (active @ norms + sigma * (x + f.out_bias).norm(dim=1))
        length, root = stream.norm(dim=1), math.sqrt(f.d_model)
        scale = (length.square() / f.d_model + sigma.square() * f.epsilon).sqrt()
        most = (length + off) / root + (sigma + tilt + curve) * math.sqrt(f.epsilon)
        logits = sigma[:, None] * (ranges.at[:, f.tokens] + f.out_bias_tokens)
        logits = logits + active @ a.T + scale[:, None] * f.offset
        least = (length - off).clamp(min=0) / root
        below, above, rise = _lines(low, high)
        mass = high.relu() @ f.sizes.to_tokens.index_select(1, which).T
        return cls(
            which=which,
            to_tokens=a,
            z=z,
            slope_below=below,
            slope_above=above,
            rise_above=rise,
            active=count,
            sigma=sigma,
            tilt=tilt,
            curve=curve,
            scale_least=least,
            scale_most=most,
            logits=logits,
            mass=mass,
        )


@dataclass(frozen=True, eq=False)
class Margins:
    """What is known about pairs of tokens in boxes."""

    least: Float[Tensor, " pair"]
    """Below this the margin does not go; positive means proved."""
    hurt: Float[Tensor, "pair slot"]
    """How much each slot's freedom costs."""
    rounding: Float[Tensor, " pair"]
    """What rounding can cost at most."""


def _lines(
    low: Float[Tensor, "box neuron"], high: Float[Tensor, "box neuron"]
) -> tuple[Float[Tensor, "box neuron"], Float[Tensor, "box neuron"], Float[Tensor, "box neuron"]]:
    """A line through 0 that relu does not go below; slope and height at 0 of one not above."""
    unsure = (low < 0) & (high > 0)
    chord = high / (high - low).clamp(min=1e-300)
    below = (low + high > 0).to(low.dtype)
    return below, torch.where(unsure, chord, below), torch.where(unsure, -low * chord, 0.0)


@dataclass(frozen=True, eq=False)
class Bounds:
    """Some boxes of one row and query, ready to be bounded for any pair of tokens."""

    tables: RowTables
    target: Int[Tensor, " box"]
    """The token that is right in each box."""
    ranges: Ranges
    neurons: Neurons
    elements: Elements

    @classmethod
    def of(cls, tables: RowTables, boxes: Int[Array, "box column"]) -> Bounds:
        """The bounds of boxes that have one target each."""
        digits = tables.space.digits(boxes)
        ranges = Ranges.of(tables, tables.sets(boxes, digits))
        neurons = Neurons.of(tables, ranges)
        elements = Elements(tables, ranges, neurons.which)
        target = torch.from_numpy(tables.space.targets(digits))
        return cls(tables, target, ranges, neurons, elements)

    def least(
        self, box: Int[Tensor, " pair"], winner: Int[Tensor, " pair"], loser: Int[Tensor, " pair"]
    ) -> Float[Tensor, " pair"]:
        """The least margin of the winner over the loser, for any number of pairs."""
        found = torch.empty(len(box), dtype=self.tables.features.dtype)
        for start in range(0, len(box), CHUNK):
            at = slice(start, start + CHUNK)
            found[at] = self.margins(box[at], winner[at], loser[at]).least
        return found

    def margins(
        self, box: Int[Tensor, " pair"], winner: Int[Tensor, " pair"], loser: Int[Tensor, " pair"]
    ) -> Margins:
        """The least margin of the winner over the loser in each box, and what it is made of."""
        tables, ranges, neurons, elements = self.tables, self.ranges, self.neurons, self.elements
        f = tables.features
        a = neurons.to_tokens.index_select(0, winner) - neurons.to_tokens.index_select(0, loser)
        against = a < 0
        a_slope = torch.where(
            against,
            neurons.slope_above.index_select(0, box),
            neurons.slope_below.index_select(0, box),
        ).mul_(a)
        direct = ranges.at[:, f.tokens] + f.out_bias_tokens
        direct = direct[box, winner] - direct[box, loser]
        sigma, tilt, curve = neurons.sigma[box], neurons.tilt[box], neurons.curve[box]
        by_sigma = direct + a_slope @ f.beta[neurons.which]
        g_radius = ranges.radius[:, f.tokens]
        bent = (tilt + curve) * (g_radius[box, winner] + g_radius[box, loser])
        lines = neurons.z.index_select(0, box).mul_(a_slope)
        rises = neurons.rise_above.index_select(0, box).mul_(a).mul_(against)
        least = (
            lines.sum(1)
            + rises.sum(1)
            + sigma * direct
            + curve * by_sigma.clamp(max=0)
            - bent
            + self._offset(box, winner, loser)
        )
        margin = neurons.logits[box, winner] - neurons.logits[box, loser]
        relaxed = (margin - least).clamp(min=0)
        functional = torch.cat([a_slope, self._along(box, winner, loser, by_sigma, sigma)], 1)
        written, lost = elements.least(functional, box)
        reference = elements.at_reference.index_select(0, box).mul_(functional)
        moved = written - reference.sum(1)
        biases = f.sizes.out_bias_tokens[winner] + f.sizes.out_bias_tokens[loser]
        biases = biases + direct.abs() + a_slope.abs() @ f.sizes.beta[neurons.which]
        summed = neurons.active[box] + f.d_model + roundings(tables)
        rounding = summed * (
            reference.abs_().sum(1)
            + lines.abs_().sum(1)
            + rises.abs_().sum(1)
            + (sigma + tilt + curve) * biases
            + bent
            + neurons.scale_most[box] * (2 * f.sizes.offset.max() + DEMANDED)
        )
        size = (functional.abs_() * elements.absolute.index_select(0, box)).sum(1)
        rounding += (summed + 2 * roundings(tables)) * size
        rounding += 32 * (neurons.mass[box, winner] + neurons.mass[box, loser])
        share = ranges.moves[box] / ranges.move[box].clamp(min=1e-300)[:, None]
        rounding *= f.unit
        return Margins(least + moved - rounding, lost + relaxed[:, None] * share, rounding)

    def _along(
        self,
        box: Int[Tensor, " pair"],
        winner: Int[Tensor, " pair"],
        loser: Int[Tensor, " pair"],
        by_sigma: Float[Tensor, " pair"],
        sigma: Float[Tensor, " pair"],
    ) -> Float[Tensor, "pair coordinate"]:
        """The part of the functional that acts on the stream, through sigma, and on the tokens."""
        f, pairs = self.tables.features, torch.arange(len(box))
        x = self.ranges.at[:, f.stream].index_select(0, box)
        along = torch.zeros(len(box), f.d_model + f.config.vocabulary, dtype=f.dtype)
        along[:, : f.d_model] = (by_sigma / (f.d_model * sigma))[:, None] * x
        along[pairs, f.d_model + winner] += sigma
        along[pairs, f.d_model + loser] -= sigma
        return along

    def _offset(self, box: Tensor, winner: Tensor, loser: Tensor) -> Tensor:
        """The least of sigma sigma_f times the difference of the offsets, less the demand."""
        offset, neurons = self.tables.features.offset, self.neurons
        difference = offset[winner] - offset[loser] - DEMANDED
        scale = torch.where(difference > 0, neurons.scale_least[box], neurons.scale_most[box])
        return difference * scale
