"""How far one slot of a box can move what a row sees, compiled.

In: the `Elements` of a slot, or what its set has in common, and a reference point. Out: the range
of what the slot adds to a functional, to every feature, and to the stream.
"""

from __future__ import annotations

import math

import numpy as np

from carryscope.certificate.compiled_sets import FAR, Cache, Elements, Shares, add, distance
from carryscope.certificate.compiling import compiled
from carryscope.certificate.row_tables import RowTables
from carryscope.task.operation import Array


@compiled
def gain_of(elements: Elements, k: int, h: int, value: Array, reference: Array) -> float:
    """What an element has over the reference, if the value of each token is given."""
    one, other = value[elements.first[k], h], value[elements.second[k], h]
    return other + elements.part[k, h] * (one - other) - reference[h]


@compiled
def slot_range(elements: Elements, value: Array, reference: Array) -> tuple[float, float]:
    """The range of what a slot adds to a functional, of which the value for each token is given."""
    low, high = FAR, -FAR
    for k in range(elements.part.shape[0]):
        least = most = 0.0
        for h in range(reference.shape[0]):
            gain = gain_of(elements, k, h, value, reference)
            least += elements.middle[k, h] * gain - elements.half[k, h] * abs(gain)
            most += elements.middle[k, h] * gain + elements.half[k, h] * abs(gain)
        low, high = min(low, least), max(high, most)
    return low, high


@compiled
def slot_move(t: RowTables, elements: Elements, reference: Array, rest: Array) -> float:
    """How far a slot can move the stream from what it adds on average, which goes to the rest."""
    count, heads = elements.part.shape
    moved, centre = np.zeros((count, rest.shape[0])), np.zeros(rest.shape[0])
    length, furthest = np.zeros(count), 0.0
    for k in range(count):
        one, other = elements.first[k], elements.second[k]
        for h in range(heads):
            share, part, squares = elements.middle[k, h], elements.part[k, h], 0.0
            for c in range(rest.shape[0]):
                gain = t.stream[other, h, c] + part * (t.stream[one, h, c] - t.stream[other, h, c])
                gain -= reference[h, c]
                moved[k, c] += share * gain
                squares += gain * gain
            length[k] += elements.half[k, h] * math.sqrt(squares)
        add(centre, 1.0 / count, moved[k])
    for k in range(count):
        furthest = max(furthest, length[k] + distance(moved[k], centre))
    add(rest, 1.0, centre)
    return furthest


@compiled
def set_move(cache: Cache, shares: Shares, slot: int, reference: Array, rest: Array) -> float:
    """The same for a large set, head by head, by its centre and spread."""
    total, number = 0.0, shares.sets[slot]
    for h in range(reference.shape[0]):
        middle = (shares.low[slot, h] + shares.high[slot, h]) / 2
        half = (shares.high[slot, h] - shares.low[slot, h]) / 2
        centre = cache.centre[number, h]
        add(rest, middle, centre)
        add(rest, -middle, reference[h])
        total += shares.high[slot, h] * cache.spread[number, h]
        total += half * distance(centre, reference[h])
    return total


@compiled
def slot_ranges(
    t: RowTables, elements: Elements, reference: Array, tilts: Array, tilt: Array, sums: Array
) -> None:
    """The range of what a slot adds to each feature: the last two of four rows.

    The first two are the middle and half the range of one element. All four are one array, so
    that the compiler need not fear that they overlap.
    """
    sums[2], sums[3] = FAR, -FAR
    for k in range(elements.part.shape[0]):
        one, other = elements.first[k], elements.second[k]
        sums[0], sums[1] = 0.0, 0.0
        for h in range(reference.shape[0]):
            part, middle, half = elements.part[k, h], elements.middle[k, h], elements.half[k, h]
            tilted = gain_of(elements, k, h, tilts, tilt)
            for j in range(sums.shape[1]):
                value = t.written[other, h, j]
                gain = value + part * (t.written[one, h, j] - value)
                gain += tilted * t.beta[j] - reference[h, j]
                sums[0, j] += middle * gain
                sums[1, j] += half * abs(gain)
        for j in range(sums.shape[1]):
            low, high = sums[0, j] - sums[1, j], sums[0, j] + sums[1, j]
            sums[2, j] = low if low < sums[2, j] else sums[2, j]
            sums[3, j] = high if high > sums[3, j] else sums[3, j]


@compiled
def set_ranges(
    t: RowTables,
    cache: Cache,
    shares: Shares,
    slot: int,
    reference: Array,
    tilt_range: Array,
    sums: Array,
) -> None:
    """The same for a large set, head by head, by the range of what is written for it."""
    place = cache.place[shares.sets[slot]]
    sums[2], sums[3] = 0.0, 0.0
    for h in range(reference.shape[0]):
        few, many = shares.low[slot, h], shares.high[slot, h]
        tilt_low, tilt_high = tilt_range[h, 0], tilt_range[h, 1]
        for j in range(sums.shape[1]):
            beta = t.beta[j]
            low, high = beta * tilt_low, beta * tilt_high
            low, high = (low, high) if low < high else (high, low)
            low += cache.low[place, h, j] - reference[h, j]
            high += cache.high[place, h, j] - reference[h, j]
            sums[2, j] += low * (many if low < 0.0 else few)
            sums[3, j] += high * (few if high < 0.0 else many)


@compiled
def tilts_of_set(elements: Elements, tilts: Array, tilt: Array) -> Array:
    """The range over a set of how its elements tilt sigma, by head."""
    found = np.empty((tilt.shape[0], 2))
    for h in range(tilt.shape[0]):
        found[h, 0], found[h, 1] = FAR, -FAR
        for k in range(elements.part.shape[0]):
            gain = gain_of(elements, k, h, tilts, tilt)
            found[h, 0], found[h, 1] = min(found[h, 0], gain), max(found[h, 1], gain)
    return found
