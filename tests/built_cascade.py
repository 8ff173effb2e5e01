"""A two-layer adder whose weights are written down: states below, the cascade above.

Layer 0, at the row of D'_c, reads column c and writes its state t_c into the stream: 0 kill, 1
propagate, 2 generate. Layer 1, at the row that predicts A_k, fetches all states below k at once.
Written as binary digits 2^c t_c they are a sum of two numbers of k bits, with a carry of its own
wherever the decimal sum has one. So with N = sum of 2^c t_c, a carry arrives at A_k if N >= 2^k.
For 445+555 the states are t2 t1 t0 = 1 1 2:

    A3   N = 4 + 2 + 2 = 8 >= 2^3, so the carry of column 0 arrives through two nines

- Two dims hold plus and minus BALLAST at every row. So each LayerNorm divides by nearly the same
  scale, which its weight undoes: it does nothing. As in `built_adder`, the last dim holds minus the
  sum of the others.
- Head 0 of layer 0 reads column c at D'_c and column k at the row of A_k, and writes the raw sum.
- Head 0 of layer 1 attends to D'_c with the share 2^c / 2^n if c < k, and to "=", whose state is 0,
  with what is left: so it reads N / 2^n. Its keys are positions only; states travel as values.
- The MLP of layer 1 has a step for each u in 0..19, where raw sum plus carry reaches u. With
  y = N - 2^k + 1, which is between -2^n and 2^n, that is where 2^n S + y > 2^n (u - 1).
- Head 1 of both layers writes nothing.
"""

import math

import torch

from carryscope.model.config import ModelConfig
from carryscope.model.transformer import LAYER_NORM_EPSILON, Transformer

BALLAST = 3e3
"""The stream holds at most 20 otherwise: the scale of LayerNorm varies by 2 in 100,000."""

SCORE, OFF, LOGIT, STEPS = 50.0, -40.0, 20.0, 20


def built_cascade(digits: int = 5) -> Transformer:
    """An adder of two layers that is right on every question."""
    config = ModelConfig(digits=digits, layers=2, heads=2, d_model=64, d_head=8, d_mlp=2 * STEPS)
    model, layout = Transformer(config), config.layout
    tokens = range(layout.vocabulary)
    positions = range(layout.vocabulary, layout.vocabulary + layout.context)
    sums, state, fetched = range(positions.stop, positions.stop + 3)
    digit = range(fetched + 1, fetched + 11)
    place = {name: positions[i] for i, name in enumerate(layout.position_names)}
    rows = {k: positions[layout.answer_rows.stop - 1 - k] for k in range(digits + 1)}
    assert digit.stop + 3 <= config.d_model
    scale = math.sqrt(2 * BALLAST**2 / config.d_model + LAYER_NORM_EPSILON)
    low, high = model.blocks
    with torch.no_grad():
        for norm in (low.ln1, low.ln2, high.ln1, high.ln2, model.ln_final):
            norm.w[:] = scale
        model.embed.W_E[:, tokens] = torch.eye(len(tokens))
        model.pos_embed.W_pos[:, positions] = torch.eye(len(positions))
        asks = SCORE * math.sqrt(config.d_head)
        for c in range(digits):
            low.attn.W_K[0, [place[f"D{c}"], place[f"D'{c}"]], c] = 1
            low.attn.W_Q[0, [place[f"D'{c}"], rows[c]], c] = asks
            high.attn.W_K[0, place[f"D'{c}"], c] = 1
        for attn in (low.attn, high.attn):
            attn.W_K[0, place["="], digits] = 1
        low.attn.W_Q[0, rows[digits], digits] = asks
        low.attn.W_V[0, tokens[:10], 0] = torch.arange(10.0)
        low.attn.W_O[0, 0, sums] = 2
        for k, row in rows.items():
            shares = {c: 2**c for c in range(k)} | {digits: 2**digits - 2**k + 1}
            for c, share in shares.items():
                score = SCORE + math.log(share)
                high.attn.W_Q[0, row, c] = score * math.sqrt(config.d_head)
        high.attn.W_V[0, state, 0] = 1
        high.attn.W_O[0, 0, fetched] = 1

        low.mlp.W_in[list(place.values()), :4] = OFF
        for neuron, (above, written) in enumerate([(8, 1), (9, -1), (9, 1), (10, -1)]):
            low.mlp.W_in[sums, neuron] = 1
            low.mlp.W_in[[place[f"D'{c}"] for c in range(digits)], neuron] = -above
            low.mlp.W_out[neuron, state] = written
        unit = 2**digits
        for u in range(STEPS):
            for neuron, written in ((2 * u, 1), (2 * u + 1, -1)):
                high.mlp.W_in[[sums, fetched], neuron] = float(unit)
                for k, row in rows.items():
                    start = unit * (u - 1) + (written < 0)
                    high.mlp.W_in[row, neuron] = 1 - 2**k - start
                high.mlp.W_out[neuron, digit[u % 10]] = written
                if u:
                    high.mlp.W_out[neuron, digit[(u - 1) % 10]] = -written
        writers = [model.embed.W_E, model.pos_embed.W_pos]
        writers += [W for block in model.blocks for W in (block.attn.W_O, block.mlp.W_out)]
        for W in writers:
            W[..., -1] = -W.sum(-1)
        model.pos_embed.W_pos[:, -3], model.pos_embed.W_pos[:, -2] = BALLAST, -BALLAST
        model.unembed.W_U[digit, :10] = LOGIT * torch.eye(10)
    return model
