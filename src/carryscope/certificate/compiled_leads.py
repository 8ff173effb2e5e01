"""The least lead of one token over another in a box, compiled.

In: a `BoxState`, and two tokens. Out: a number that the lead, times both scales, does not go below,
and what the freedom of each slot costs.
"""

from __future__ import annotations

import math

import numpy as np

from carryscope.certificate.compiled_bound import BoxState
from carryscope.certificate.compiled_sets import FAR, Shares, add, dot
from carryscope.certificate.compiling import compiled
from carryscope.certificate.row_tables import RowTables
from carryscope.task.operation import Array

STEPS = 2
"""Times that a functional is split over the heads, each time better."""


@compiled
def logits_of(t: RowTables, box: BoxState, last: float) -> Array:
    """The logits at the reference point, times both scales; only to choose what to compare."""
    logits, neurons = np.empty(t.offset.shape[0]), box.z.shape[0]
    active = np.maximum(box.z, 0.0)
    for token in range(logits.shape[0]):
        direct = box.at[neurons + token] + t.bias_tokens[token]
        logits[token] = box.sigma * (direct + t.on_beta[token]) + last * t.offset[token]
        logits[token] += dot(t.on_into[token], box.x) + dot(active, t.to_tokens[token])
    return logits


@compiled
def margin_of(t: RowTables, box: BoxState, winner: int, loser: int, functional: Array) -> float:
    """The least margin of one token over another but for the offsets, times both scales.

    Fills the functional of the stream that is left to be bounded; rounding is taken off.
    """
    neurons, sigma, d_model = box.z.shape[0], box.sigma, t.basis.shape[1]
    most_sigma = sigma + box.tilt_high + box.curve
    direct = box.at[neurons + winner] + t.bias_tokens[winner]
    direct -= box.at[neurons + loser] + t.bias_tokens[loser]
    by_sigma = direct + t.on_beta[winner] - t.on_beta[loser]
    for j in range(functional.shape[0]):
        on = t.on_into[winner, j] - t.on_into[loser, j]
        functional[j] = on + sigma * (t.token_into[winner, j] - t.token_into[loser, j])
    least = dot(t.on_into[winner], box.x) - dot(t.on_into[loser], box.x)
    least += sigma * by_sigma
    noise = t.on_noise[winner] + t.on_noise[loser]
    noise += most_sigma * (t.on_noise_per_scale[winner] + t.on_noise_per_scale[loser])
    for i in range(neurons):
        a, low, high = t.to_tokens[winner, i] - t.to_tokens[loser, i], box.z_low[i], box.z_high[i]
        if not high <= 0.0:
            slope = 1.0
            if low < 0.0:
                if a < 0.0:
                    slope = high / (high - low)
                    least -= a * slope * low
                elif low + high <= 0.0:
                    slope = 0.0
            if slope != 0.0:
                a *= slope
                by_sigma += a * t.beta[i]
                least += a * box.z[i]
                noise += abs(a) * (t.noise[i] + most_sigma * t.noise_per_scale[i])
                add(functional, a, t.into[i])
    add(functional, by_sigma / (d_model * sigma), box.x)
    least += box.curve * min(by_sigma, 0.0)
    g_low = box.low[neurons + winner] - box.high[neurons + loser]
    g_high = box.high[neurons + winner] - box.low[neurons + loser]
    top = box.tilt_high + box.curve
    least += min(box.tilt_low * g_low, box.tilt_low * g_high, top * g_low, top * g_high)
    after = t.after_neurons * box.length + t.after_scale * most_sigma
    after *= box.active + t.after_terms
    noise += after * (t.token_lengths[winner] + t.token_lengths[loser])
    return least - noise - t.ball * math.sqrt(dot(functional, functional))


@compiled
def functional_of(t: RowTables, box: BoxState, functional: Array, cost: Array) -> float:
    """The least that a functional of the stream can be, less its value at the reference.

    For any number q per head, the head writes q + sum_s alpha_s (value_s - q). The first q are
    the values at the reference; the next ones those at the element that was worst in each slot.
    `cost` receives what the freedom of each slot costs.
    """
    heads, slots = t.weight.shape[1], cost.shape[0]
    value, q, known = np.zeros(t.weight.shape), np.empty(heads), np.empty(heads)
    chosen, start, astray = np.empty(slots, np.int64), 0.0, 0.0
    for h in range(heads):
        lowest, highest = FAR, -FAR
        for token in box.tokens:
            value[token, h] = dot(functional, t.stream[token, h])
            lowest, highest = min(lowest, value[token, h]), max(highest, value[token, h])
        astray += t.astray[h] / 2 * (highest - lowest)
        q[h] = dot(functional, box.reference[h])
        known[h] = dot(functional, box.known[h])
        start += q[h]
    least, shares = -FAR, box.shares
    for _ in range(STEPS):
        found = split_functional(t, shares, value, known, q, cost, chosen)
        if found <= least:
            break
        least = found
        for h in range(heads):
            total, written = shares.weight[h], shares.weight[h] * known[h]
            for s in range(slots):
                if shares.free[s]:
                    for token in (t.sets.first[chosen[s]], t.sets.second[chosen[s]]):
                        total += t.weight[token, h]
                        written += t.weight[token, h] * value[token, h]
            q[h] = written / total
    return least - start - astray


@compiled
def split_functional(
    t: RowTables,
    shares: Shares,
    value: Array,
    known: Array,
    q: Array,
    cost: Array,
    chosen: Array,
) -> float:
    """The least value for some q, what each slot's freedom costs, and its worst element."""
    least = 0.0
    for h in range(q.shape[0]):
        gain = known[h] - q[h]
        least += q[h] + (shares.least[h] if gain > 0.0 else shares.most[h]) * gain
    for s in range(cost.shape[0]):
        cost[s] = 0.0
        if shares.free[s]:
            worst, best = FAR, -FAR
            for e in range(t.sets.start[shares.sets[s]], t.sets.start[shares.sets[s] + 1]):
                one, other, taken = t.sets.first[e], t.sets.second[e], 0.0
                for h in range(q.shape[0]):
                    own = t.weight[one, h]
                    weight = own + t.weight[other, h]
                    gain = value[other, h] - q[h] + own / weight * (value[one, h] - value[other, h])
                    others = shares.others_most[s, h] if gain > 0.0 else shares.others_least[s, h]
                    taken += weight / (weight + others) * gain
                if taken < worst:
                    worst, chosen[s] = taken, e
                best = max(best, taken)
            least += worst
            cost[s] = best - worst
    return least


@compiled
def lead_of(
    t: RowTables, box: BoxState, last: Array, winner: int, loser: int, cost: Array
) -> tuple[float, float]:
    """A number that sigma sigma_f (the winner's lead - what is demanded) does not go below.

    And by how much it may grow if the range of sigma sigma_f were known better.
    """
    functional = np.empty(t.stream.shape[2])
    least = margin_of(t, box, winner, loser, functional)
    least += functional_of(t, box, functional, cost)
    offset = t.offset[winner] - t.offset[loser] - t.demanded
    offset -= t.token_noise[winner] + t.token_noise[loser]
    least += offset * (last[0] if offset > 0.0 else last[1])
    return least, abs(offset) * (last[1] - last[0])


@compiled
def blame(t: RowTables, box: BoxState, winner: int, loser: int, cost: Array) -> None:
    """Add what each slot costs through the neurons, by how far it moves them."""
    for i in range(box.z.shape[0]):
        low, high = box.z_low[i], box.z_high[i]
        if low < 0.0 < high:
            a = t.to_tokens[winner, i] - t.to_tokens[loser, i]
            gap = a * high * low / (high - low) if a < 0.0 else a * min(high, -low)
            total = 0.0
            for s in range(cost.shape[0]):
                total += box.width[s, i]
            if total > 0.0:
                for s in range(cost.shape[0]):
                    cost[s] += gap * box.width[s, i] / total
