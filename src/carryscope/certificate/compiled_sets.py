"""What sets of digit pairs have in common, compiled; and how attention is shared out over them.

In: `RowTables`. Out: a `Cache` of all sets, and for the set of every slot in a box its `Shares`.
`compiled_bound.py` makes the bound of it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from carryscope.certificate.compiling import compiled
from carryscope.certificate.row_tables import RowTables
from carryscope.task.operation import Array

FAR = 1e300
"""Further than any number of a model that is not refused."""


class Cache(NamedTuple):
    """What the elements of each set have in common."""

    ready: Array
    """Whether it is worked out for a set."""
    least: Array
    most: Array
    """The range of the weight, by set and head."""
    mean: Array
    """The mean of what heads write for its elements, by set, head and feature."""
    place: Array
    """Where the range of a large set stands."""
    low: Array
    high: Array
    """The range of what heads write, by place, head and feature."""
    centre: Array
    """The mean in the stream, by set, head and coordinate."""
    spread: Array
    """How far from it an element can be, by set and head."""


class Shares(NamedTuple):
    """How the attention of each head is shared out in a box."""

    sets: Array
    """The number of each slot's set among all sets."""
    free: Array
    """Whether a slot holds several elements."""
    others_least: Array
    others_most: Array
    """The range of the weight of everything but the slot, by slot and head."""
    low: Array
    high: Array
    """The range of the slot's share, by slot and head; 0 if it is not free."""
    weight: Array
    least: Array
    most: Array
    """Of all that is known, by head: its weight, and the range of its share."""


@compiled
def dot(one: Array, other: Array) -> float:
    """The sum of products."""
    total = 0.0
    for j in range(one.shape[0]):
        total += one[j] * other[j]
    return total


@compiled
def add(to: Array, factor: float, row: Array) -> None:
    """Add so many times a row."""
    for j in range(to.shape[0]):
        to[j] += factor * row[j]


@compiled
def distance(one: Array, other: Array) -> float:
    """The length of the difference."""
    total = 0.0
    for j in range(one.shape[0]):
        total += (one[j] - other[j]) ** 2
    return math.sqrt(total)


@compiled
def new_cache(t: RowTables) -> Cache:
    """What all sets have in common. The parts of a set stand behind it: they come first."""
    sets, heads, features = t.sets.start.shape[0] - 1, t.weight.shape[1], t.written.shape[2]
    place, large = np.full(sets, -1), 0
    for number in range(sets):
        if t.sets.start[number + 1] - t.sets.start[number] > t.large:
            place[number] = large
            large += 1
    cache = Cache(
        np.ones(sets, np.bool_),
        np.empty((sets, heads)),
        np.empty((sets, heads)),
        np.empty((sets, heads, features)),
        place,
        np.empty((large, heads, features)),
        np.empty((large, heads, features)),
        np.empty((sets, heads, t.stream.shape[2])),
        np.empty((sets, heads)),
    )
    for number in range(sets):
        prepare(t, cache, number)
    return cache


@compiled
def part_of_cache(whole: Cache, kept: Array) -> Cache:
    """A cache of some of the features, into which sets are copied when they are needed."""
    sets, heads = whole.least.shape
    large, features = whole.low.shape[0], kept.shape[0]
    return Cache(
        np.zeros(sets, np.bool_),
        whole.least,
        whole.most,
        np.empty((sets, heads, features)),
        whole.place,
        np.empty((large, heads, features)),
        np.empty((large, heads, features)),
        whole.centre,
        whole.spread,
    )


@compiled
def copy_set(whole: Cache, cache: Cache, kept: Array, number: int) -> None:
    """Take some features of a set from the cache of all of them."""
    place = whole.place[number]
    for h in range(whole.least.shape[1]):
        for j in range(kept.shape[0]):
            cache.mean[number, h, j] = whole.mean[number, h, kept[j]]
        if place >= 0:
            for j in range(kept.shape[0]):
                cache.low[place, h, j] = whole.low[place, h, kept[j]]
                cache.high[place, h, j] = whole.high[place, h, kept[j]]
    cache.ready[number] = True


@compiled
def prepare(t: RowTables, cache: Cache, number: int) -> None:
    """Work out what the elements of a set have in common."""
    sets, place = t.sets, cache.place[number]
    count = sets.start[number + 1] - sets.start[number]
    value = np.empty(t.written.shape[2])
    for h in range(t.weight.shape[1]):
        least, most = FAR, 0.0
        mean, centre = cache.mean[number, h], cache.centre[number, h]
        mean[:], centre[:] = 0.0, 0.0
        if place >= 0:
            cache.low[place, h], cache.high[place, h] = FAR, -FAR
        for e in range(sets.start[number], sets.start[number + 1]):
            one, other = sets.first[e], sets.second[e]
            weight = t.weight[one, h] + t.weight[other, h]
            part = t.weight[one, h] / weight
            least, most = min(least, weight), max(most, weight)
            for j in range(mean.shape[0]):
                value[j] = part * t.written[one, h, j] + (1.0 - part) * t.written[other, h, j]
            add(mean, 1.0 / count, value)
            if place >= 0:
                widen(cache.low[place, h], cache.high[place, h], value)
            add(centre, part / count, t.stream[one, h])
            add(centre, (1.0 - part) / count, t.stream[other, h])
        cache.least[number, h], cache.most[number, h] = least, most
        cache.spread[number, h] = spread_of(t, number, h, centre)


@compiled
def widen(low: Array, high: Array, value: Array) -> None:
    """Make ranges hold values too."""
    for j in range(value.shape[0]):
        low[j] = value[j] if value[j] < low[j] else low[j]
        high[j] = value[j] if value[j] > high[j] else high[j]


@compiled
def spread_of(t: RowTables, number: int, h: int, centre: Array) -> float:
    """How far what a head writes for an element of a set can be from a point of the stream."""
    furthest, value = 0.0, np.empty(centre.shape[0])
    if t.sets.start[number + 1] - t.sets.start[number] == 1:
        return 0.0
    for e in range(t.sets.start[number], t.sets.start[number + 1]):
        one, other = t.sets.first[e], t.sets.second[e]
        part = t.weight[one, h] / (t.weight[one, h] + t.weight[other, h])
        value[:] = 0.0
        add(value, part, t.stream[one, h])
        add(value, 1.0 - part, t.stream[other, h])
        furthest = max(furthest, distance(value, centre))
    return furthest


@compiled
def shares_of(t: RowTables, cache: Cache, numbers: Array) -> Shares:
    """How attention is shared out, given the set of every slot."""
    slots, heads = numbers.shape[0], t.weight.shape[1]
    sets, free = t.sets.begin + numbers, np.zeros(slots, np.bool_)
    low, high = np.zeros((slots, heads)), np.zeros((slots, heads))
    weight, least, most = t.fixed_weight.copy(), np.empty(heads), np.empty(heads)
    for s in range(slots):
        free[s] = t.sets.start[sets[s] + 1] - t.sets.start[sets[s]] > 1
        for h in range(heads):
            if free[s]:
                low[s, h], high[s, h] = cache.least[sets[s], h], cache.most[sets[s], h]
            else:
                weight[h] += cache.least[sets[s], h]
    others_least, others_most = np.empty((slots, heads)), np.empty((slots, heads))
    for h in range(heads):
        least[h] = weight[h] / (weight[h] + high[:, h].sum())
        most[h] = weight[h] / (weight[h] + low[:, h].sum())
        for s in range(slots):
            others_least[s, h], others_most[s, h] = weight[h], weight[h]
            for other in range(slots):
                if other != s:
                    others_least[s, h] += low[other, h]
                    others_most[s, h] += high[other, h]
    for s in range(slots):
        for h in range(heads):
            if free[s]:
                low[s, h] /= low[s, h] + others_most[s, h]
                high[s, h] /= high[s, h] + others_least[s, h]
    return Shares(sets, free, others_least, others_most, low, high, weight, least, most)


@compiled
def read_tokens(t: RowTables, sets: Array) -> Array:
    """All tokens that may be read."""
    used = np.zeros(t.weight.shape[0], np.bool_)
    for number in sets:
        for e in range(t.sets.start[number], t.sets.start[number + 1]):
            used[t.sets.first[e]] = True
            used[t.sets.second[e]] = t.weight[t.sets.second[e], 0] > 0
    for token in t.fixed:
        used[token] = True
    return np.flatnonzero(used)


@compiled
def mixtures(
    t: RowTables, cache: Cache, shares: Shares, mean: Array, fixed: Array
) -> tuple[Array, Array]:
    """What is known, and the reference point, by head. `mean` has the mean of every set."""
    known, reference = np.empty(fixed.shape), np.empty(fixed.shape)
    for h in range(fixed.shape[0]):
        known[h] = fixed[h] * (t.fixed_weight[h] / shares.weight[h])
        total = (shares.least[h] + shares.most[h]) / 2
        for s in range(shares.sets.shape[0]):
            if not shares.free[s]:
                number = shares.sets[s]
                add(known[h], cache.least[number, h] / shares.weight[h], mean[number, h])
        reference[h] = known[h] * total
        for s in range(shares.sets.shape[0]):
            if shares.free[s]:
                middle = (shares.low[s, h] + shares.high[s, h]) / 2
                add(reference[h], middle, mean[shares.sets[s], h])
                total += middle
        reference[h] /= total
    return known, reference


class Elements(NamedTuple):
    """The elements of one slot: their shares, and what they add to a functional."""

    first: Array
    second: Array
    part: Array
    """The part of the first token in the weight, by element and head."""
    middle: Array
    half: Array
    """The middle of the share and half its range, by element and head."""


@compiled
def elements_of(t: RowTables, shares: Shares, slot: int) -> Elements:
    """The elements of a slot."""
    begin, stop = t.sets.start[shares.sets[slot]], t.sets.start[shares.sets[slot] + 1]
    count, heads = stop - begin, t.weight.shape[1]
    first, second = t.sets.first[begin:stop], t.sets.second[begin:stop]
    part, middle, half = (
        np.empty((count, heads)),
        np.empty((count, heads)),
        np.empty((count, heads)),
    )
    for k in range(count):
        for h in range(heads):
            own = t.weight[first[k], h]
            weight = own + t.weight[second[k], h]
            least = weight / (weight + shares.others_most[slot, h])
            most = weight / (weight + shares.others_least[slot, h])
            part[k, h] = own / weight
            middle[k, h], half[k, h] = (least + most) / 2, (most - least) / 2
    return Elements(first, second, part, middle, half)
