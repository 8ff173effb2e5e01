"""A one-layer model as tables, and how far they may be off.

In: a model. Out: `Features`. The residual stream x of a row after attention is

    x = e(query) + sum over heads of (mixture of what the head writes for each position it reads)

and everything after it is asked only for linear *features* of x: the input x . V_i of every
neuron, x itself, and x . g_t for every token t. Hence one table per (position, token, head) of
the features of what the head writes. All vectors are centred, because both LayerNorms
subtract the mean. With sigma and sigma_f their two scales, and z_i = x . V_i + sigma beta_i,

    sigma sigma_f (logit_c - logit_r)
        = sigma (x + b_out) . (g_c - g_r) + sum_i relu(z_i) (A_ic - A_ir)
          + sigma sigma_f (offset_c - offset_r)

since relu(z / sigma) = relu(z) / sigma. docs/certificate.md derives it all, rounding included.

Tables are computed in float64 and kept in float32, which is faster to work with; what rounding
can then cost is bounded through the *reach* of each feature. For the few single questions that
this leaves undecided there are tables in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from carryscope.errors import CallError
from carryscope.model.config import ModelConfig
from carryscope.model.tables import FirstLayerTables
from carryscope.model.transformer import LAYER_NORM_EPSILON, Block, Transformer

UNITS = {torch.float32: 2.0**-24, torch.float64: 2.0**-44}
"""The relative error of one operation. That of float64 is 2^-53; but tables are themselves
computed in float64, by sums of up to a thousand terms, and 2^-44 has room for that too."""


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
    reach: Float[Tensor, " feature"]
    """The largest absolute value of each feature: of e, plus the largest of every head."""
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
    dtype: torch.dtype
    """Of all tables but `query` and `key`."""
    epsilon: float = LAYER_NORM_EPSILON

    @classmethod
    def of(cls, model: Transformer, dtype: torch.dtype = torch.float32) -> Features:
        """The tables of a model; more than one layer is refused."""
        check_supported(model.config)
        with torch.inference_mode():
            return _features(_as_double(model), dtype)

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
            f"A certificate is for models of 1 layer: in a second one keys and values depend on "
            f"the whole question. Got {config.layers} layers. `carryscope risk` takes any model."
        )


def _as_double(model: Transformer) -> Transformer:
    """The same weights in float64: every float32 is one."""
    exact = Transformer(model.config).double()
    exact.load_state_dict(model.state_dict())
    return exact


def _features(model: Transformer, dtype: torch.dtype) -> Features:
    block = model.blocks[0]
    assert isinstance(block, Block)
    tables = FirstLayerTables.of(model)
    g = _centred(model.ln_final.w * model.unembed.W_U.T)
    into, beta, out, out_bias = _mlp(block, model.config)
    read_off = torch.cat([into, torch.eye(len(out_bias), dtype=torch.float64), g])
    written, embedded = _centred(tables.written), _centred(tables.embedded + block.attn.b_O)
    written, embedded = written @ read_off.T, embedded @ read_off.T
    reach = embedded.abs().amax((0, 1)) + written.abs().amax((0, 1)).sum(0)
    return Features(
        config=model.config,
        query=tables.query,
        key=tables.key,
        written=written.to(dtype),
        embedded=embedded.to(dtype),
        norms=read_off.norm(dim=1).to(dtype),
        reach=reach.to(dtype),
        beta=beta.to(dtype),
        to_tokens=(g @ out.T).to(dtype),
        to_stream=out.to(dtype),
        to_stream_norms=out.norm(dim=1).to(dtype),
        out_bias=out_bias.to(dtype),
        out_bias_tokens=(out_bias @ g.T).to(dtype),
        offset=(model.ln_final.b @ model.unembed.W_U + model.unembed.b_U).to(dtype),
        dtype=dtype,
    )


def _mlp(block: Block, config: ModelConfig) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What the neurons read, their biases, what they write, and the MLP's own bias; centred."""
    if block.mlp is None:
        none = torch.zeros(0, config.d_model, dtype=torch.float64)
        return none, none[:, 0], none, torch.zeros(config.d_model, dtype=torch.float64)
    into = _centred(block.ln2.w * block.mlp.W_in.T)
    beta = block.ln2.b @ block.mlp.W_in + block.mlp.b_in
    return into, beta, _centred(block.mlp.W_out), _centred(block.mlp.b_out)


def _centred(vectors: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
    return vectors - vectors.mean(-1, keepdim=True)
