"""A one-layer model as tables, and how far they may be off.

In: a model. Out: `Features`. The residual stream x of a row after attention is

    x = e(query) + sum over heads of (mixture of what the head writes for each position it reads)

and all that follows reads only linear *features* of x: the input x . V_i of every neuron, x itself,
and x . g_t for every token t. Hence one table per (position, token, head) of
the features of what the head writes. All vectors are centred, because both LayerNorms
subtract the mean. With sigma and sigma_f their two scales, and z_i = x . V_i + sigma beta_i,

    sigma sigma_f (logit_c - logit_r)
        = sigma (x + b_out) . (g_c - g_r) + sum_i relu(z_i) (A_ic - A_ir)
          + sigma sigma_f (offset_c - offset_r)

since relu(z / sigma) = relu(z) / sigma. docs/certificate.md derives it all, rounding included.

Tables are computed in float64 and kept in float32, which is faster to work with; what rounding
can then cost is bounded through the `Sizes` of what is added up. For the few single questions
that this leaves undecided there are tables in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from carryscope.core.errors import CallError, WorkError
from carryscope.model.config import ModelConfig
from carryscope.model.tables import FirstLayerTables
from carryscope.model.transformer import LAYER_NORM_EPSILON, Block, LayerNorm, Transformer

UNIT_64 = 2.0**-53
"""Half the distance from 1 to the next float64: the relative error of one operation."""

UNITS = {torch.float32: 2.0**-24, torch.float64: 8 * UNIT_64}
"""What the relative error of one operation is taken for. In float64 there is room for the sums
of attention weights too: next to float32 they count as exact."""

LARGEST = 1e6
"""No number in the tables may be larger. Then nothing overflows in float32, and shares that
underflow do not count."""

TINY = 1e-16
"""More than the length of a vector in float32 can lack because squares below 1e-38 are lost, for
vectors of up to 80,000 numbers. Added wherever such a length is a bound."""

LARGEST_LOSS = 1e-3
"""A score may be off by this much in float64: only then is what it changes of the attention small
compared with what is written."""


@dataclass(frozen=True, eq=False)
class Sizes:
    """What counts as the size of a table's entries when rounding is bounded.

    Besides their absolute value that is a 16th of what float64 lost on the way to them, in units:
    very little, unless large numbers cancelled. A 16th, because sizes serve only to be multiplied
    by 32 units or more.
    """

    written: Float[Tensor, "head feature"]
    """For what a head writes; the absolute value is not in it."""
    embedded: Float[Tensor, "position token feature"]
    beta: Float[Tensor, " d_mlp"]
    to_tokens: Float[Tensor, "token d_mlp"]
    out_bias_tokens: Float[Tensor, " token"]
    offset: Float[Tensor, " token"]
    shares: float
    """What float64 lost of the attention: so many units of all that a head writes."""


@dataclass(frozen=True, eq=False)
class Features:
    """A one-layer model, as the certificate reads it. Features: neurons, then x, then tokens."""

    config: ModelConfig
    query: Float[Tensor, "position token head d_head"]
    key: Float[Tensor, "position token head d_head"]
    """In float64, as attention weights are: they are exponentials."""
    written: Float[Tensor, "position token head feature"]
    embedded: Float[Tensor, "position token feature"]
    norms: Float[Tensor, " feature"]
    """The length of each feature's vector."""
    beta: Float[Tensor, " d_mlp"]
    """What LayerNorm's bias and the neuron's own add to its input."""
    to_tokens: Float[Tensor, "token d_mlp"]
    """A: what each neuron adds to each token's logit."""
    to_stream: Float[Tensor, "d_mlp d_model"]
    """What each neuron adds to the residual stream."""
    to_stream_norms: Float[Tensor, " d_mlp"]
    out_bias: Float[Tensor, " d_model"]
    out_bias_tokens: Float[Tensor, " token"]
    offset: Float[Tensor, " token"]
    """What the last LayerNorm's bias and the unembedding's add to each logit."""
    sizes: Sizes
    dtype: torch.dtype
    """Of all tables but `query` and `key`."""
    epsilon: float = LAYER_NORM_EPSILON

    @classmethod
    def of(cls, model: Transformer, dtype: torch.dtype = torch.float32) -> Features:
        """The tables of a model; more than one layer is refused."""
        check_supported(model.config)
        with torch.inference_mode():
            features = _features(_as_double(model), dtype)
        _check_magnitudes(features)
        return features

    @property
    def unit(self) -> float:
        """The relative error of one operation on the tables."""
        return UNITS[self.dtype]

    @property
    def d_mlp(self) -> int:
        return self.config.d_mlp

    @property
    def d_model(self) -> int:
        return self.config.d_model

    @property
    def stream(self) -> slice:
        """The features that are x itself."""
        return slice(self.d_mlp, self.d_mlp + self.d_model)

    @property
    def tokens(self) -> slice:
        """The features that are x . g_t."""
        return slice(self.d_mlp + self.d_model, None)


def check_supported(config: ModelConfig) -> None:
    """Refuse a model whose answers cannot be bounded here."""
    if config.layers != 1:
        raise CallError(
            "A certificate is for models of 1 layer: in a second one keys and values depend on the "
            f"whole question. Got {config.layers} layers. `carryscope risk` takes any model."
        )


def _check_magnitudes(features: Features) -> None:
    """Refuse a model whose numbers are such that rounding is not bounded by what is derived."""
    f = features
    tables = (f.written, f.embedded, f.norms, f.beta, f.to_tokens, f.to_stream_norms, f.out_bias)
    bounded = all((t.abs() <= LARGEST).all() for t in (*tables, f.out_bias_tokens, f.offset))
    if not bounded or not f.sizes.shares / 12 * f.unit <= LARGEST_LOSS:
        raise WorkError(
            "This model cannot be certified: a weight is not a number, or products of its weights "
            f"are too large to bound the rounding (over {LARGEST:,.0f})."
        )


def _features(model: Transformer, dtype: torch.dtype) -> Features:
    tables = FirstLayerTables.of(model)
    exact = _linear(model, tables.written, tables.embedded, _centred)
    return Features(
        config=model.config,
        query=tables.query,
        key=tables.key,
        **{name: table.to(dtype) for name, table in exact._asdict().items()},
        to_stream_norms=exact.to_stream.norm(dim=1).to(dtype),
        sizes=_sizes(model, exact, dtype),
        dtype=dtype,
    )


class _Linear(NamedTuple):
    """The tables of `Features` that are linear in the weights, in float64."""

    written: Tensor
    embedded: Tensor
    norms: Tensor
    beta: Tensor
    to_tokens: Tensor
    to_stream: Tensor
    out_bias: Tensor
    out_bias_tokens: Tensor
    offset: Tensor


Centre = Callable[[Tensor], Tensor]


def _linear(model: Transformer, written: Tensor, embedded: Tensor, centre: Centre) -> _Linear:
    block = model.blocks[0]
    assert isinstance(block, Block)
    g = centre(model.ln_final.w * model.unembed.W_U.T)
    into, beta, out, out_bias = _mlp(block, model.config, centre)
    read_off = torch.cat([into, torch.eye(len(out_bias), dtype=torch.float64), g])
    return _Linear(
        written=centre(written) @ read_off.T,
        embedded=centre(embedded + block.attn.b_O) @ read_off.T,
        norms=read_off.norm(dim=1),
        beta=beta,
        to_tokens=g @ out.T,
        to_stream=out,
        out_bias=out_bias,
        out_bias_tokens=out_bias @ g.T,
        offset=model.ln_final.b @ model.unembed.W_U + model.unembed.b_U,
    )


def _mlp(
    block: Block, config: ModelConfig, centre: Centre
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What the neurons read, their biases, what they write, and the MLP's own bias; centred."""
    if block.mlp is None:
        none = torch.zeros(0, config.d_model, dtype=torch.float64)
        return none, none[:, 0], none, torch.zeros(config.d_model, dtype=torch.float64)
    into = centre(block.ln2.w * block.mlp.W_in.T)
    beta = block.ln2.b @ block.mlp.W_in + block.mlp.b_in
    return into, beta, centre(block.mlp.W_out), centre(block.mlp.b_out)


def _sizes(model: Transformer, exact: _Linear, dtype: torch.dtype) -> Sizes:
    """All tables once more with every number made positive: no sum of m terms is off by more
    than m units of that. From the embeddings to a feature, or to a score, fewer than 8 d_model
    roundings follow one another: a LayerNorm, products with two matrices, centring, and a product
    with the vector of the feature or with a key."""
    gross = _as_double(model, positive=True)
    block = gross.blocks[0]
    assert isinstance(block, Block)
    attn = block.attn
    embedded = gross.pos_embed.W_pos[:, None] + gross.embed.W_E
    signed = model.pos_embed.W_pos[:, None] + model.embed.W_E
    read = _read_size(embedded, signed, block.ln1)
    query, key, value = (
        (torch.einsum("ptd,hde->pthe", read, weight) + bias).amax((0, 1))
        for weight, bias in ((attn.W_Q, attn.b_Q), (attn.W_K, attn.b_K), (attn.W_V, attn.b_V))
    )
    written = torch.einsum("he,hed->hd", value, attn.W_O)
    units = (8 * model.config.d_model + 64) * UNIT_64 / UNITS[dtype]
    lost = units / 16
    size = _linear(gross, written, embedded, _uncancelled)
    scores = (query * key).sum(-1).amax() / query.shape[-1] ** 0.5

    def sized(name: str) -> Tensor:
        absolute: Tensor = getattr(exact, name).abs() + lost * getattr(size, name)
        return absolute.to(dtype)

    return Sizes(
        written=(lost * size.written).to(dtype),
        embedded=sized("embedded"),
        beta=sized("beta"),
        to_tokens=sized("to_tokens"),
        out_bias_tokens=sized("out_bias_tokens"),
        offset=sized("offset"),
        shares=12 * units * float(scores),
    )


def _read_size(embedded: Tensor, signed: Tensor, ln: LayerNorm) -> Tensor:
    """What the first LayerNorm adds up for each coordinate, if nothing cancelled."""
    scale = (_centred(signed).square().mean(-1, keepdim=True) + LAYER_NORM_EPSILON).sqrt()
    spread = _uncancelled(embedded) / scale
    return spread * (1 + embedded.mean(-1, keepdim=True) / scale) * ln.w + ln.b


def _as_double(model: Transformer, *, positive: bool = False) -> Transformer:
    """The same weights in float64, which holds every float32; or their absolute values."""
    exact = Transformer(model.config).double()
    weights = model.state_dict()
    exact.load_state_dict({n: w.abs() for n, w in weights.items()} if positive else weights)
    return exact


def _centred(vectors: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
    return vectors - vectors.mean(-1, keepdim=True)


def _uncancelled(vectors: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
    """What `_centred` adds up, if nothing cancelled."""
    return vectors + vectors.mean(-1, keepdim=True)
