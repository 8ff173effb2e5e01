"""The bound, compiled: one box at a time, in plain loops.

In: `RowTables` and boxes. Out: verdicts. docs/certificate.md derives what is computed;
`reference.py` computes the same with torch, and shares no code with this module.

The inner loops run along whole rows of large arrays, so that the compiler can use vector
instructions. Sums may be added up in any order and fused (`FAST`). Nothing else is relaxed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from jaxtyping import Bool, Float, Int

from carryscope.certificate.row_tables import RowTables
from carryscope.task.operation import Array

FAST = {"contract", "reassoc"}
"""What the compiler may do: fuse operations, and add up in another order."""

STEPS = 2
"""Times that a functional is split over the heads, each time better."""

WORTH_IT = 0.8
"""Where the nearest rival is not beaten, another is tried too if its margin at the reference point
is more than this many times what the bound lost for the nearest one: what is proved for a box
holds for its parts."""

NEGLIGIBLE = 1e-5
"""A token with a smaller share is left out of the reference point, which may be any point."""

FAR = 1e300

Loop = TypeVar("Loop", bound=Callable[..., Any])


def _machine_code() -> Path:
    """Where compiled loops are kept. The name is made from the sources: numba does not notice
    when a table that a loop reads has changed in another file."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    beside = Path(__file__).parent / "__pycache__"
    writable = os.access(beside if beside.exists() else beside.parent, os.W_OK)
    return (beside if writable else Path.home() / ".cache" / "carryscope") / f"loops-{digest}"


MACHINE_CODE = _machine_code()


def compiled(loop: Loop) -> Loop:
    """A function that numba compiles at its first call, and keeps for later processes."""
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(MACHINE_CODE)
    try:
        made = numba.njit(fastmath=FAST, cache=True, nogil=True, error_model="numpy")(loop)
    finally:
        numba.config.CACHE_DIR = before
    return cast(Loop, made)


class Shares(NamedTuple):
    """How the attention of each head is shared out in a box."""

    begin: Array
    """The elements of slot s are those from begin[s] to begin[s + 1]."""
    first: Array
    second: Array
    """Their two tokens."""
    part: Array
    """The part of the first one in the weight, by element and head."""
    middle: Array
    half: Array
    """The middle of an element's share, and half its range, by element and head."""
    weight: Array
    least: Array
    most: Array
    """Of all that is known, by head: its weight, and the range of its share."""
    tokens: Array
    """All tokens that may be read."""


class Reference(NamedTuple):
    """A point near the middle of the box, and what is known; by head."""

    features: Array
    stream: Array
    known: Array
    known_stream: Array
    at: Array
    at_stream: Array
    """Features and coordinates of the row at the reference point."""


class Scale(NamedTuple):
    """How far the stream can go from the reference point, and what sigma is there."""

    tilt: Array
    """How each token tilts sigma, by token and head; likewise the reference and what is known."""
    tilt_reference: Array
    tilt_known: Array
    length: float
    sigma: float
    tilt_low: float
    tilt_high: float
    move: float
    curve: float
    """How far sigma can be above its tangent."""


@compiled
def dot(one, other):
    total = 0.0
    for j in range(one.shape[0]):
        total += one[j] * other[j]
    return total


@compiled
def add(to, factor, row):
    for j in range(to.shape[0]):
        to[j] += factor * row[j]


@compiled
def distance(one, other):
    total = 0.0
    for j in range(one.shape[0]):
        total += (one[j] - other[j]) ** 2
    return math.sqrt(total)


@compiled
def elements_of(sets, numbers):
    """Where the elements of each slot stand, their tokens, and all tokens that may be read."""
    slots = numbers.shape[0]
    begin = np.zeros(slots + 1, np.int64)
    for s in range(slots):
        k = sets.begin[s] + numbers[s]
        begin[s + 1] = begin[s] + sets.start[k + 1] - sets.start[k]
    first, second = np.empty(begin[slots], np.int64), np.empty(begin[slots], np.int64)
    for s in range(slots):
        at = sets.start[sets.begin[s] + numbers[s]]
        for k in range(begin[s], begin[s + 1]):
            first[k] = sets.first[at + k - begin[s]]
            second[k] = sets.second[at + k - begin[s]]
    return begin, first, second


@compiled
def shares_of(t, numbers):
    begin, first, second = elements_of(t.sets, numbers)
    slots, count, heads = numbers.shape[0], first.shape[0], t.weight.shape[1]
    part, middle, half = np.empty((count, heads)), np.empty((count, heads)), np.empty((count, heads))
    known, least, most = t.fixed_weight.copy(), np.empty(heads), np.empty(heads)
    low, high = np.empty((slots, heads)), np.empty((slots, heads))
    for s in range(slots):
        low[s], high[s] = FAR, 0.0
        for k in range(begin[s], begin[s + 1]):
            for h in range(heads):
                weight = t.weight[first[k], h] + t.weight[second[k], h]
                low[s, h] = min(low[s, h], weight)
                high[s, h] = max(high[s, h], weight)
        if begin[s + 1] - begin[s] == 1:
            known += low[s]
            low[s], high[s] = 0.0, 0.0
    for h in range(heads):
        least[h] = known[h] / (known[h] + high[:, h].sum())
        most[h] = known[h] / (known[h] + low[:, h].sum())
    for s in range(slots):
        for h in range(heads):
            others_least = others_most = known[h]
            for other in range(slots):
                if other != s:
                    others_least += low[other, h]
                    others_most += high[other, h]
            for k in range(begin[s], begin[s + 1]):
                own = t.weight[first[k], h]
                weight = own + t.weight[second[k], h]
                a, b = weight / (weight + others_most), weight / (weight + others_least)
                part[k, h], middle[k, h], half[k, h] = own / weight, (a + b) / 2, (b - a) / 2
    tokens = read_tokens(t, first, second)
    return Shares(begin, first, second, part, middle, half, known, least, most, tokens)


@compiled
def read_tokens(t, first, second):
    used = np.zeros(t.weight.shape[0], np.bool_)
    for k in range(first.shape[0]):
        used[first[k]] = True
        used[second[k]] = t.weight[second[k], 0] > 0
    for token in t.fixed:
        used[token] = True
    return np.flatnonzero(used)


@compiled
def reference_of(t, shares):
    """The mean of all elements, weighted with the middles of their shares."""
    mean, single = means_of(t, shares)
    known, reference = mixtures(t.written, t.fixed_written, shares, t.fixed_weight, single, mean)
    known_stream, stream = mixtures(
        t.stream, t.fixed_stream, shares, t.fixed_weight, single, mean
    )
    at, at_stream = t.embedded + reference.sum(0), t.embedded_stream + stream.sum(0)
    return Reference(reference, stream, known, known_stream, at, at_stream)


@compiled
def means_of(t, shares):
    """The share of each token at the reference point, and its part in all that is known."""
    mean, single = np.zeros(t.weight.shape), np.zeros(t.weight.shape)
    for s in range(shares.begin.shape[0] - 1):
        count = shares.begin[s + 1] - shares.begin[s]
        for k in range(shares.begin[s], shares.begin[s + 1]):
            one, other = shares.first[k], shares.second[k]
            for h in range(t.weight.shape[1]):
                if count > 1:
                    share, part = shares.middle[k, h] / count, shares.part[k, h]
                    mean[one, h] += share * part
                    mean[other, h] += share * (1 - part)
                else:
                    single[one, h] = t.weight[one, h] / shares.weight[h]
                    single[other, h] = t.weight[other, h] / shares.weight[h]
    return np.where(mean > NEGLIGIBLE, mean, 0.0), single


@compiled
def mixtures(written, fixed, shares, fixed_weight, single, mean):
    """What is known, and the reference point, by head."""
    known, reference = np.empty(fixed.shape), np.empty(fixed.shape)
    for h in range(fixed.shape[0]):
        known[h] = fixed[h] * (fixed_weight[h] / shares.weight[h])
        for token in shares.tokens:
            if single[token, h] > 0.0:
                for j in range(fixed.shape[1]):
                    known[h, j] += single[token, h] * written[token, h, j]
        own = (shares.least[h] + shares.most[h]) / 2
        total = own + mean[:, h].sum()
        reference[h] = known[h] * (own / total)
        for token in shares.tokens:
            if mean[token, h] > 0.0:
                share = mean[token, h] / total
                for j in range(fixed.shape[1]):
                    reference[h, j] += share * written[token, h, j]
    return known, reference


@compiled
def scale_of(t, shares, reference):
    """sigma at the reference point, its tilt in the box, and how far the stream can move."""
    heads, d_model = t.weight.shape[1], t.basis.shape[1]
    x = reference.at_stream
    length = math.sqrt(dot(x, x))
    sigma = math.sqrt(length * length / d_model + t.epsilon)
    per = 1.0 / (d_model * sigma)
    tilt = np.zeros(t.weight.shape)
    for token in shares.tokens:
        for h in range(heads):
            tilt[token, h] = dot(x, t.stream[token, h]) * per
    at_reference, at_known, rest = np.empty(heads), np.empty(heads), np.zeros(x.shape[0])
    low, high, move = 0.0, 0.0, t.wander
    for h in range(heads):
        at_reference[h] = dot(x, reference.stream[h]) * per
        at_known[h] = dot(x, reference.known_stream[h]) * per
        gain = at_known[h] - at_reference[h]
        low += min(shares.least[h] * gain, shares.most[h] * gain)
        high += max(shares.least[h] * gain, shares.most[h] * gain)
        away = reference.known_stream[h] - reference.stream[h]
        add(rest, (shares.most[h] + shares.least[h]) / 2, away)
        move += (shares.most[h] - shares.least[h]) / 2 * math.sqrt(dot(away, away))
    for s in range(shares.begin.shape[0] - 1):
        if shares.begin[s + 1] - shares.begin[s] > 1:
            least, most = slot_range(shares, s, tilt, at_reference)
            low += least
            high += most
            move += slot_move(shares, s, t.stream, reference.stream, rest)
    move += math.sqrt(dot(rest, rest))
    slack = t.wander / math.sqrt(d_model)
    curve = move * move * per / 2
    low, high = low - slack, high + slack
    return Scale(tilt, at_reference, at_known, length, sigma, low, high, move, curve)


@compiled
def slot_range(shares, slot, value, reference):
    """The range of what a slot adds to a functional, of which the value for each token is given."""
    low, high = FAR, -FAR
    for k in range(shares.begin[slot], shares.begin[slot + 1]):
        least = most = 0.0
        for h in range(reference.shape[0]):
            one, other = value[shares.first[k], h], value[shares.second[k], h]
            gain = other + shares.part[k, h] * (one - other) - reference[h]
            least += shares.middle[k, h] * gain - shares.half[k, h] * abs(gain)
            most += shares.middle[k, h] * gain + shares.half[k, h] * abs(gain)
        low, high = min(low, least), max(high, most)
    return low, high


@compiled
def slot_move(shares, slot, stream, reference, rest):
    """How far a slot can move the stream from what it adds on average, which goes to the rest."""
    begin, stop = shares.begin[slot], shares.begin[slot + 1]
    centre, length = np.zeros(stream.shape[2]), np.zeros(stop - begin)
    moved = np.zeros((stop - begin, stream.shape[2]))
    for k in range(begin, stop):
        one, other = shares.first[k], shares.second[k]
        for h in range(reference.shape[0]):
            share, part, squares = shares.middle[k, h], shares.part[k, h], 0.0
            for c in range(centre.shape[0]):
                gain = stream[other, h, c] + part * (stream[one, h, c] - stream[other, h, c])
                gain -= reference[h, c]
                moved[k - begin, c] += share * gain
                squares += gain * gain
            length[k - begin] += shares.half[k, h] * math.sqrt(squares)
        add(centre, 1.0 / (stop - begin), moved[k - begin])
    rest += centre
    for k in range(stop - begin):
        length[k] += distance(moved[k], centre)
    return length.max()


@compiled
def ranges_of(t, shares, reference, scale):
    """How far each feature can be from the reference, tilt of sigma included, slot by slot."""
    slots, heads, features = shares.begin.shape[0] - 1, t.weight.shape[1], t.written.shape[2]
    beta, tilt = np.zeros(features), element_gains(shares, scale.tilt, scale.tilt_reference)
    beta[: t.beta.shape[0]] = t.beta
    low, high, width = -t.blur, t.blur.copy(), np.zeros((slots, features))
    for h in range(heads):
        away = reference.known[h] - reference.features[h]
        gain = scale.tilt_known[h] - scale.tilt_reference[h]
        add_known(low, high, away, beta, gain, shares.least[h], shares.most[h])
    sums = np.empty((4, features))
    for s in range(slots):
        if shares.begin[s + 1] - shares.begin[s] > 1:
            slot_ranges(sums, t.written, reference.features, beta, shares, tilt, s)
            low += sums[2]
            high += sums[3]
            width[s] = sums[3] - sums[2]
    return low, high, width


@compiled
def element_gains(shares, value, reference):
    """What each element has over the reference, if the value of each token is given; by head."""
    gains = np.empty(shares.part.shape)
    for k in range(gains.shape[0]):
        for h in range(gains.shape[1]):
            one, other = value[shares.first[k], h], value[shares.second[k], h]
            gains[k, h] = other + shares.part[k, h] * (one - other) - reference[h]
    return gains


@compiled
def add_known(low, high, away, beta, tilt, least, most):
    for j in range(low.shape[0]):
        gain = away[j] + tilt * beta[j]
        low[j] += min(least * gain, most * gain)
        high[j] += max(least * gain, most * gain)


@compiled
def slot_ranges(sums, written, reference, beta, shares, tilt, slot):
    """The range of what a slot adds to each feature: the last two of four rows.

    The first two are the middle and half the range of one element. All four are one array, so
    that the compiler need not fear that they overlap.
    """
    sums[2], sums[3] = FAR, -FAR
    for k in range(shares.begin[slot], shares.begin[slot + 1]):
        one, other = shares.first[k], shares.second[k]
        sums[0], sums[1] = 0.0, 0.0
        for h in range(reference.shape[0]):
            part, middle, half = shares.part[k, h], shares.middle[k, h], shares.half[k, h]
            for j in range(beta.shape[0]):
                gain = written[other, h, j] + part * (written[one, h, j] - written[other, h, j])
                gain += tilt[k, h] * beta[j] - reference[h, j]
                sums[0, j] += middle * gain
                sums[1, j] += half * abs(gain)
        for j in range(beta.shape[0]):
            low, high = sums[0, j] - sums[1, j], sums[0, j] + sums[1, j]
            sums[2, j] = low if low < sums[2, j] else sums[2, j]
            sums[3, j] = high if high > sums[3, j] else sums[3, j]


class Inputs(NamedTuple):
    """The inputs of the neurons in a box, times sigma: at the reference point, and their range."""

    z: Array
    low: Array
    high: Array
    active: int
    """How many may be active."""
    length: float
    """The length of relu(z) at most."""
    sigma: float
    """sigma at most."""


@compiled
def inputs_of(t, reference, scale, low, high):
    neurons = t.beta.shape[0]
    z, z_low, z_high = np.empty(neurons), np.empty(neurons), np.empty(neurons)
    sigma = scale.sigma + scale.tilt_high + scale.curve
    active, squares = 0, 0.0
    for i in range(neurons):
        bend = scale.curve * t.beta[i]
        noise = sigma * t.noise_per_scale[i]
        z[i] = reference.at[i] + scale.sigma * t.beta[i]
        z_low[i] = z[i] + low[i] + min(bend, 0.0) - noise
        z_high[i] = z[i] + high[i] + max(bend, 0.0) + noise
        if not z_high[i] <= 0.0:
            active += 1
            squares += z_high[i] * z_high[i]
    return Inputs(z, z_low, z_high, active, math.sqrt(squares), sigma)


@compiled
def logits_of(t, reference, scale, inputs, last):
    """The logits at the reference point, times both scales; the last one is only estimated."""
    logits = np.empty(t.offset.shape[0])
    active = np.maximum(inputs.z, 0.0)
    for token in range(logits.shape[0]):
        direct = reference.at[inputs.z.shape[0] + token] + t.bias_tokens[token]
        logits[token] = scale.sigma * direct + last * t.offset[token]
        logits[token] += dot(active, t.to_tokens[token])
    return logits


@compiled
def rough_last(t, scale, inputs):
    """The most that sigma sigma_f can be, by the lengths of what is added up."""
    length = scale.length + scale.move + math.sqrt(dot(t.out_bias, t.out_bias))
    most = inputs.sigma * length + t.out_norm * inputs.length
    return most / math.sqrt(t.basis.shape[1]) + inputs.sigma * math.sqrt(t.epsilon)


@compiled
def fine_last(t, reference, scale, inputs):
    """The range of sigma sigma_f around its value at the reference point."""
    stream = scale.sigma * t.out_bias
    for j in range(t.basis.shape[0]):
        add(stream, scale.sigma * reference.at_stream[j], t.basis[j])
    squares = 0.0
    for i in range(t.beta.shape[0]):
        if inputs.high[i] > 0.0:
            z = max(inputs.z[i], 0.0)
            add(stream, z, t.to_stream[i])
            change = max(inputs.high[i] - z, z - max(inputs.low[i], 0.0))
            squares += change * change
    swing = max(scale.tilt_high + scale.curve, -scale.tilt_low)
    bias = math.sqrt(dot(t.out_bias, t.out_bias))
    off = inputs.sigma * scale.move + swing * (scale.length + bias)
    off += t.out_norm * math.sqrt(squares)
    length, root = math.sqrt(dot(stream, stream)), math.sqrt(t.basis.shape[1])
    most = (length + off) / root + inputs.sigma * math.sqrt(t.epsilon)
    return max(length - off, 0.0) / root, most


@compiled
def margin_of(t, reference, scale, inputs, low, high, winner, loser, functional):
    """The least margin of one token over another, times both scales, but for their offsets.

    Fills the functional of the stream that is left. Returns the margin and what rounding costs.
    """
    neurons = t.beta.shape[0]
    direct = reference.at[neurons + winner] + t.bias_tokens[winner]
    direct -= reference.at[neurons + loser] + t.bias_tokens[loser]
    by_sigma, least, noise = direct, 0.0, 0.0
    for j in range(functional.shape[0]):
        functional[j] = scale.sigma * (t.token_into[winner, j] - t.token_into[loser, j])
    for i in range(neurons):
        a = t.to_tokens[winner, i] - t.to_tokens[loser, i]
        slope = 1.0
        if inputs.high[i] <= 0.0:
            slope = 0.0
        elif inputs.low[i] < 0.0:
            if a < 0.0:
                slope = inputs.high[i] / (inputs.high[i] - inputs.low[i])
                least -= a * slope * inputs.low[i]
            elif inputs.low[i] + inputs.high[i] <= 0.0:
                slope = 0.0
        if slope != 0.0:
            a *= slope
            by_sigma += a * t.beta[i]
            least += a * inputs.z[i]
            noise += abs(a) * (t.noise[i] + inputs.sigma * t.noise_per_scale[i])
            add(functional, a, t.into[i])
    add(functional, by_sigma / (t.basis.shape[1] * scale.sigma), reference.at_stream)
    least += scale.sigma * direct + scale.curve * min(by_sigma, 0.0)
    g_low = low[neurons + winner] - high[neurons + loser]
    g_high = high[neurons + winner] - low[neurons + loser]
    top = scale.tilt_high + scale.curve
    least += min(
        min(scale.tilt_low * g_low, scale.tilt_low * g_high), min(top * g_low, top * g_high)
    )
    after = t.after_neurons * (inputs.active + t.after_terms) * inputs.length
    after += t.after_scale * inputs.sigma
    noise += after * (t.token_lengths[winner] + t.token_lengths[loser])
    return least, noise + t.ball * math.sqrt(dot(functional, functional))


@compiled
def functional_of(t, shares, reference, functional, worst, best):
    """The least that a functional of the stream can be, less its value at the reference.

    For any number q per head, the head writes q + sum_s alpha_s (value_s - q). The first q are
    the values at the reference; the next ones those at the element that was worst in each slot.
    """
    heads = t.weight.shape[1]
    value, q, known = np.zeros(t.weight.shape), np.empty(heads), np.empty(heads)
    chosen, start, astray = np.empty(worst.shape[0], np.int64), 0.0, 0.0
    for h in range(heads):
        lowest, highest = FAR, -FAR
        for token in shares.tokens:
            value[token, h] = dot(functional, t.stream[token, h])
            lowest, highest = min(lowest, value[token, h]), max(highest, value[token, h])
        astray += t.astray[h] / 2 * (highest - lowest)
        q[h] = dot(functional, reference.stream[h])
        known[h] = dot(functional, reference.known_stream[h])
        start += q[h]
    least = -FAR
    for _ in range(STEPS):
        found = split_functional(shares, value, known, q, worst, best, chosen)
        if found <= least:
            break
        least = found
        for h in range(heads):
            total, written = shares.weight[h], shares.weight[h] * known[h]
            for s in range(chosen.shape[0]):
                if shares.begin[s + 1] - shares.begin[s] > 1:
                    for token in (shares.first[chosen[s]], shares.second[chosen[s]]):
                        total += t.weight[token, h]
                        written += t.weight[token, h] * value[token, h]
            q[h] = written / total
    return least - start - astray


@compiled
def split_functional(shares, value, known, q, worst, best, chosen):
    """The least value for some q, and what each slot adds to it in its worst and best element."""
    least = 0.0
    for h in range(q.shape[0]):
        gain = known[h] - q[h]
        least += q[h] + (shares.least[h] if gain > 0.0 else shares.most[h]) * gain
    for s in range(worst.shape[0]):
        worst[s] = best[s] = 0.0
        if shares.begin[s + 1] - shares.begin[s] > 1:
            worst[s], best[s] = FAR, -FAR
            for k in range(shares.begin[s], shares.begin[s + 1]):
                taken = 0.0
                for h in range(q.shape[0]):
                    one, other = value[shares.first[k], h], value[shares.second[k], h]
                    gain = other + shares.part[k, h] * (one - other) - q[h]
                    taken += shares.middle[k, h] * gain - shares.half[k, h] * abs(gain)
                if taken < worst[s]:
                    worst[s], chosen[s] = taken, k
                best[s] = max(best[s], taken)
            least += worst[s]
    return least


@compiled
def blame(t, inputs, width, winner, loser, functional, hurt):
    """What each slot costs: in the functional, and for the neurons, by how far it moves them."""
    hurt[:] = functional
    for i in range(t.beta.shape[0]):
        low, high = inputs.low[i], inputs.high[i]
        if low < 0.0 < high:
            a = t.to_tokens[winner, i] - t.to_tokens[loser, i]
            gap = a * high * low / (high - low) if a < 0.0 else a * min(high, -low)
            total = 0.0
            for s in range(hurt.shape[0]):
                total += width[s, i]
            if total > 0.0:
                for s in range(hurt.shape[0]):
                    hurt[s] += gap * width[s, i] / total


class Box(NamedTuple):
    """A box, as far as it does not depend on the two tokens that are compared."""

    shares: Shares
    reference: Reference
    scale: Scale
    low: Array
    high: Array
    """The range of each feature, from the reference."""
    inputs: Inputs
    last: Array
    """The range of sigma sigma_f, and then 1 if it was worked out precisely."""


@compiled
def lead_of(t, box, winner, loser, guard, worst, best):
    """A number that sigma sigma_f (the winner's lead - what is demanded) does not go below."""
    functional = np.empty(t.stream.shape[2])
    least, noise = margin_of(
        t, box.reference, box.scale, box.inputs, box.low, box.high, winner, loser, functional
    )
    least += functional_of(t, box.shares, box.reference, functional, worst, best) - noise
    offset = t.offset[winner] - t.offset[loser] - t.demanded
    offset -= t.token_noise[winner] + t.token_noise[loser]
    end = 0 if offset > 0.0 else 1
    open_ = least + offset * box.last[end] <= guard < least + offset * box.last[1 - end]
    if open_ and box.last[2] == 0.0:
        precise = fine_last(t, box.reference, box.scale, box.inputs)
        box.last[0], box.last[1] = max(box.last[0], precise[0]), min(box.last[1], precise[1])
        box.last[2] = 1.0
    return least + offset * box.last[end]


@compiled
def next_rival(logits, target, tried, proved, lost):
    """The nearest token that was not tried, if it is worth it; else the target."""
    nearest = target
    for token in range(logits.shape[0]):
        if not tried >> token & 1 and (nearest == target or logits[token] > logits[nearest]):
            nearest = token
    if not proved and logits[target] - logits[nearest] <= WORTH_IT * lost:
        return target
    return nearest


@compiled
def judge_box(t, numbers, target, beaten, every, guard, hurt):
    """Which rivals are beaten in a box, as bits, and whether some token beats the target.

    Unless `every` rival is to be tried, only those that are worth it are. `hurt` receives what
    the freedom of each slot costs.
    """
    shares = shares_of(t, numbers)
    reference = reference_of(t, shares)
    scale = scale_of(t, shares, reference)
    low, high, width = ranges_of(t, shares, reference, scale)
    inputs = inputs_of(t, reference, scale, low, high)
    last = np.array([0.0, rough_last(t, scale, inputs), 0.0])
    box = Box(shares, reference, scale, low, high, inputs, last)
    logits = logits_of(t, reference, scale, inputs, last[1] / 2)
    worst, best, first = np.empty(hurt.shape[0]), np.empty(hurt.shape[0]), logits.argmax()
    if first != target:
        wrong = lead_of(t, box, first, target, guard, worst, best) > guard
        blame(t, inputs, width, first, target, best - worst, hurt)
        if wrong or not every:
            return beaten, wrong
    tried, proved, lost = beaten | 1 << target, True, 0.0
    while True:
        rival = next_rival(logits, target, tried, proved or every, lost)
        if rival == target:
            return beaten, False
        lead = lead_of(t, box, target, rival, guard, worst, best)
        tried |= 1 << rival
        if lead > guard:
            beaten |= 1 << rival
        elif proved:
            proved, lost = False, logits[target] - logits[rival] - lead
            blame(t, inputs, width, target, rival, best - worst, hurt)


@compiled
def judge_boxes(t, numbers, target, beaten, every, guard):
    wrong, hurt = np.zeros(numbers.shape[0], np.bool_), np.zeros(numbers.shape)
    found = beaten.copy()
    for b in range(numbers.shape[0]):
        found[b], wrong[b] = judge_box(t, numbers[b], target[b], beaten[b], every, guard, hurt[b])
    return found, wrong, hurt


def judge(
    t: RowTables,
    numbers: Int[Array, "box slot"],
    target: Int[Array, " box"],
    beaten: Int[Array, " box"],
    *,
    every: bool,
    guard: float,
) -> tuple[Int[Array, " box"], Bool[Array, " box"], Float[Array, "box slot"]]:
    """The rivals beaten in each box, as bits, whether it is wrong, and what each slot costs."""
    found, wrong, hurt = judge_boxes(t, numbers, target, beaten, every, guard)
    return found, wrong, hurt


def active(t: RowTables, numbers: Int[Array, " slot"]) -> Bool[Array, " neuron"]:
    """Which neurons may be active in a box."""
    shares = shares_of(t, numbers)
    reference = reference_of(t, shares)
    scale = scale_of(t, shares, reference)
    low, high, _ = ranges_of(t, shares, reference, scale)
    return np.asarray(~(inputs_of(t, reference, scale, low, high).high <= 0.0))
