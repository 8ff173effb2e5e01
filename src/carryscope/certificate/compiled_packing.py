"""The tables for the boxes below one, compiled.

Most neurons do not change sign below a box: those that are off there are left out, and those that
are on become part of one linear function per token. Only the others are bounded again.
"""

from __future__ import annotations

import numpy as np

from carryscope.certificate.compiled_bound import BoxState
from carryscope.certificate.compiled_sets import add
from carryscope.certificate.compiling import compiled
from carryscope.certificate.row_tables import RowTables
from carryscope.task.operation import Array


@compiled
def packed(t: RowTables, state: BoxState) -> tuple[RowTables, Array]:
    """The tables for the boxes below one: without the neurons that are off or on there.

    Also the features that are left.
    """
    neurons, vocabulary, heads = state.z.shape[0], t.offset.shape[0], t.weight.shape[1]
    unsure, on = np.zeros(neurons, np.bool_), np.zeros(neurons, np.bool_)
    for i in range(neurons):
        on[i] = state.z_low[i] >= 0.0
        unsure[i] = not (on[i] or state.z_high[i] <= 0.0)
    which = np.flatnonzero(unsure)
    count = which.shape[0]
    on_into, on_beta = t.on_into.copy(), t.on_beta.copy()
    on_noise, on_noise_per_scale = t.on_noise.copy(), t.on_noise_per_scale.copy()
    on_active, on_squares = t.on_active, t.on_squares
    for i in range(neurons):
        if on[i]:
            on_active += 1
            on_squares += state.z_high[i] * state.z_high[i]
            for token in range(vocabulary):
                a = t.to_tokens[token, i]
                add(on_into[token], a, t.into[i])
                on_beta[token] += a * t.beta[i]
                on_noise[token] += abs(a) * t.noise[i]
                on_noise_per_scale[token] += abs(a) * t.noise_per_scale[i]
    kept = np.concatenate((which, np.arange(neurons, neurons + vocabulary)))
    written = np.zeros((t.weight.shape[0], heads, count + vocabulary))
    for token in state.tokens:
        for h in range(heads):
            for j in range(kept.shape[0]):
                written[token, h, j] = t.written[token, h, kept[j]]
    fixed_written = np.empty((heads, kept.shape[0]))
    to_tokens = np.empty((vocabulary, count))
    for j in range(kept.shape[0]):
        for h in range(heads):
            fixed_written[h, j] = t.fixed_written[h, kept[j]]
    for j in range(count):
        for token in range(vocabulary):
            to_tokens[token, j] = t.to_tokens[token, which[j]]
    tables = RowTables(
        t.sets,
        t.weight,
        t.fixed_weight,
        t.fixed,
        written,
        t.stream,
        fixed_written,
        t.fixed_stream,
        t.embedded[kept],
        t.embedded_stream,
        t.beta[kept],
        t.into[which],
        to_tokens,
        t.token_into,
        t.to_stream,
        t.basis,
        t.out_norm,
        t.out_bias,
        t.bias_tokens,
        t.offset,
        t.epsilon,
        t.demanded,
        t.large,
        on_into,
        on_beta,
        on_noise,
        on_noise_per_scale,
        on_active,
        on_squares,
        t.astray,
        t.ball,
        t.wander,
        t.blur[kept],
        t.noise[which],
        t.noise_per_scale[which],
        t.after_neurons,
        t.after_scale,
        t.after_terms,
        t.token_noise,
        t.token_lengths,
    )
    return tables, kept
