"""A box as a row sees it, compiled: one box at a time, in plain loops.

In: `RowTables`, a `Cache` of what its sets have in common, and the set of every slot in a box.
Out: a `BoxState`, from which `compiled_leads.py` bounds leads. docs/certificate.md derives what is
computed; `reference.py` computes it with torch and shares no code with the compiled modules.

Inner loops run along whole rows of arrays, so that the compiler can use vector instructions.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from carryscope.certificate.compiled_ranges import (
    set_move,
    set_ranges,
    slot_move,
    slot_range,
    slot_ranges,
    tilts_of_set,
)
from carryscope.certificate.compiled_sets import (
    Cache,
    Shares,
    add,
    distance,
    dot,
    elements_of,
    mixtures,
    read_tokens,
    shares_of,
)
from carryscope.certificate.compiling import compiled
from carryscope.certificate.rounding import OURS
from carryscope.certificate.row_tables import RowTables
from carryscope.task.operation import Array


class BoxState(NamedTuple):
    """A box, as far as it does not depend on the two tokens that are compared."""

    shares: Shares
    tokens: Array
    """All tokens that may be read."""
    reference: Array
    known: Array
    """The reference point and what is known, by head and coordinate."""
    x: Array
    """The stream at the reference point."""
    at: Array
    """The features there."""
    sigma: float
    tilt_low: float
    tilt_high: float
    move: float
    """How far the stream can be from the reference point."""
    curve: float
    """How far sigma can be above its tangent."""
    low: Array
    high: Array
    """The range of each feature from its value at the reference, the tilt of sigma included."""
    width: Array
    """How far each slot moves each feature."""
    z: Array
    z_low: Array
    z_high: Array
    """The inputs of the neurons times sigma: at the reference, and their range."""
    active: int
    """How many neurons may be active."""
    length: float
    """The length of relu(z) at most."""


@compiled
def inputs_of(
    t: RowTables,
    at: Array,
    low: Array,
    high: Array,
    sigma: float,
    curve: float,
    most_sigma: float,
) -> tuple[Array, Array, Array]:
    """The inputs of the neurons times sigma: at the reference point, and their range."""
    neurons = t.into.shape[0]
    z, z_low, z_high = np.empty(neurons), np.empty(neurons), np.empty(neurons)
    for i in range(neurons):
        bend, noise = curve * t.beta[i], most_sigma * t.noise_per_scale[i]
        z[i] = at[i] + sigma * t.beta[i]
        z_low[i] = z[i] + low[i] + min(bend, 0.0) - noise
        z_high[i] = z[i] + high[i] + max(bend, 0.0) + noise
    return z, z_low, z_high


@compiled
def state_of(t: RowTables, cache: Cache, numbers: Array) -> BoxState:
    """All that is known about a box, whichever tokens are compared."""
    shares = shares_of(t, cache, numbers)
    tokens = read_tokens(t, shares.sets)
    slots, heads, features = numbers.shape[0], t.weight.shape[1], t.written.shape[2]
    d_model = t.basis.shape[1]
    known, reference = mixtures(t, cache, shares, cache.centre, t.fixed_stream)
    known_at, reference_at = mixtures(t, cache, shares, cache.mean, t.fixed_written)
    x, at = t.embedded_stream + reference.sum(0), t.embedded + reference_at.sum(0)
    sigma = math.sqrt(dot(x, x) / d_model + t.epsilon)
    tilts, tilt = np.zeros(t.weight.shape), np.empty(heads)
    for h in range(heads):
        tilt[h] = dot(x, reference[h]) / (d_model * sigma)
        for token in tokens:
            tilts[token, h] = dot(x, t.stream[token, h]) / (d_model * sigma)
    tilt_low, tilt_high = -t.wander / math.sqrt(d_model), t.wander / math.sqrt(d_model)
    low, high, width = -t.blur, t.blur.copy(), np.zeros((slots, features))
    rest, move, sums = np.zeros(x.shape[0]), t.wander, np.empty((4, features))
    for h in range(heads):
        few, many = shares.least[h], shares.most[h]
        gain = dot(x, known[h]) / (d_model * sigma) - tilt[h]
        tilt_low += min(few * gain, many * gain)
        tilt_high += max(few * gain, many * gain)
        add(rest, (many + few) / 2, known[h])
        add(rest, -(many + few) / 2, reference[h])
        move += (many - few) / 2 * distance(known[h], reference[h])
        for j in range(features):
            away = known_at[h, j] - reference_at[h, j] + gain * t.beta[j]
            low[j] += away * (many if away < 0.0 else few)
            high[j] += away * (few if away < 0.0 else many)
    for s in range(slots):
        if shares.free[s]:
            elements = elements_of(t, shares, s)
            least, most = slot_range(elements, tilts, tilt)
            tilt_low += least
            tilt_high += most
            if elements.part.shape[0] > t.large:
                move += set_move(cache, shares, s, reference, rest)
                tilt_range = tilts_of_set(elements, tilts, tilt)
                set_ranges(t, cache, shares, s, reference_at, tilt_range, sums)
            else:
                move += slot_move(t, elements, reference, rest)
                slot_ranges(t, elements, reference_at, tilts, tilt, sums)
            low += sums[2]
            high += sums[3]
            width[s] = sums[3] - sums[2]
    move += math.sqrt(dot(rest, rest))
    curve = move * move / (2 * d_model * sigma)
    z, z_low, z_high = inputs_of(t, at, low, high, sigma, curve, sigma + tilt_high + curve)
    active, squares = t.on_active, t.on_squares
    for i in range(z.shape[0]):
        if not z_high[i] <= 0.0:
            active += 1
            squares += z_high[i] * z_high[i]
    return BoxState(
        shares,
        tokens,
        reference,
        known,
        x,
        at,
        sigma,
        tilt_low,
        tilt_high,
        move,
        curve,
        low,
        high,
        width,
        z,
        z_low,
        z_high,
        active,
        math.sqrt(squares),
    )


@compiled
def last_scale(t: RowTables, box: BoxState) -> Array:
    """The range of sigma sigma_f in a box. Needs the tables of all neurons."""
    stream = box.sigma * t.out_bias
    for j in range(t.basis.shape[0]):
        add(stream, box.sigma * box.x[j], t.basis[j])
    squares = 0.0
    for i in range(box.z.shape[0]):
        if not box.z_high[i] <= 0.0:
            z = max(box.z[i], 0.0)
            add(stream, z, t.to_stream[i])
            change = max(box.z_high[i] - z, z - max(box.z_low[i], 0.0))
            squares += change * change
    most_sigma = box.sigma + box.tilt_high + box.curve
    swing = max(box.tilt_high + box.curve, -box.tilt_low)
    straight = math.sqrt(dot(box.x, box.x)) + math.sqrt(dot(t.out_bias, t.out_bias))
    off = most_sigma * box.move + swing * straight + t.out_norm * math.sqrt(squares)
    length, root = math.sqrt(dot(stream, stream)), math.sqrt(t.basis.shape[1])
    rough = most_sigma * (straight + box.move) + t.out_norm * box.length
    off += OURS * rough
    most = min(length + off, rough) / root + most_sigma * math.sqrt(t.epsilon)
    return np.array([max(length - off, 0.0) / root, most])
