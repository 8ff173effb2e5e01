"""The transformer, read top to bottom: tokens in, logits out, every site open on the way.

In: tokens of shape (batch, row). Out: logits of shape (batch, row, token), where row p
predicts token p+1. For 12345+67890=080235 the rows that matter are 11 .. 16, which predict
080235 digit by digit.

Names of parameters and sites are those of TransformerLens. This is the instrumented pass:
it calls `visit(site, value)` at every site and continues with what comes back. Nothing is
registered on the model, so no hook can be left behind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from carryscope.model.config import ModelConfig
from carryscope.model.sites import Hook, Visit, check_sites, leave_alone, sites

LAYER_NORM_EPSILON = 1e-5
"""Added to the variance, as TransformerLens does."""


def _weight(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape))


class LayerNorm(nn.Module):
    """Centre, divide by the scale, then multiply by w and add b."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(width))
        self.b = _weight(width)

    def forward(self, x: Float[Tensor, "*batch d_model"], visit: Visit) -> Tensor:
        x = x - x.mean(-1, keepdim=True)
        scale = visit("hook_scale", (x.pow(2).mean(-1, keepdim=True) + LAYER_NORM_EPSILON).sqrt())
        return visit("hook_normalized", x / scale * self.w + self.b)


class Embed(nn.Module):
    """One vector per token."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.W_E = _weight(config.vocabulary, config.d_model)

    def forward(self, tokens: Int[Tensor, "batch row"]) -> Tensor:
        return self.W_E[tokens]


class PositionEmbed(nn.Module):
    """One vector per position."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.W_pos = _weight(config.context, config.d_model)

    def forward(self, tokens: Int[Tensor, "batch row"]) -> Tensor:
        return self.W_pos[: tokens.shape[1]].expand(len(tokens), -1, -1)


class Attention(nn.Module):
    """Causal attention: each head reads earlier positions and adds to the residual stream."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        heads, d_model, d_head = config.heads, config.d_model, config.d_head
        self.W_Q, self.b_Q = _weight(heads, d_model, d_head), _weight(heads, d_head)
        self.W_K, self.b_K = _weight(heads, d_model, d_head), _weight(heads, d_head)
        self.W_V, self.b_V = _weight(heads, d_model, d_head), _weight(heads, d_head)
        self.W_O, self.b_O = _weight(heads, d_head, d_model), _weight(d_model)

    def forward(self, x: Float[Tensor, "batch row d_model"], visit: Visit) -> Tensor:
        q = visit("hook_q", torch.einsum("brd,hde->brhe", x, self.W_Q) + self.b_Q)
        k = visit("hook_k", torch.einsum("brd,hde->brhe", x, self.W_K) + self.b_K)
        v = visit("hook_v", torch.einsum("brd,hde->brhe", x, self.W_V) + self.b_V)
        scores = torch.einsum("bqhe,bkhe->bhqk", q, k) / math.sqrt(q.shape[-1])
        unseen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        scores = visit("hook_attn_scores", scores.masked_fill(unseen, -torch.inf))
        pattern = visit("hook_pattern", scores.softmax(-1))
        z = visit("hook_z", torch.einsum("bhqk,bkhe->bqhe", pattern, v))
        return torch.einsum("brhe,hed->brd", z, self.W_O) + self.b_O


class MLP(nn.Module):
    """One hidden layer of ReLU neurons."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.W_in, self.b_in = _weight(config.d_model, config.d_mlp), _weight(config.d_mlp)
        self.W_out, self.b_out = _weight(config.d_mlp, config.d_model), _weight(config.d_model)

    def forward(self, x: Float[Tensor, "batch row d_model"], visit: Visit) -> Tensor:
        pre = visit("hook_pre", x @ self.W_in + self.b_in)
        return visit("hook_post", pre.relu()) @ self.W_out + self.b_out


class Block(nn.Module):
    """Attention, then (unless the model is attention-only) the MLP, each added to the stream."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.ln1 = LayerNorm(config.d_model)
        self.attn = Attention(config)
        self.mlp: MLP | None = None
        if config.d_mlp:
            self.ln2 = LayerNorm(config.d_model)
            self.mlp = MLP(config)

    def forward(self, residual: Float[Tensor, "batch row d_model"], visit: Visit) -> Tensor:
        residual = visit("hook_resid_pre", residual)
        normalized = self.ln1(residual, _within("ln1", visit))
        residual = residual + visit("hook_attn_out", self.attn(normalized, _within("attn", visit)))
        if self.mlp is not None:
            residual = visit("hook_resid_mid", residual)
            normalized = self.ln2(residual, _within("ln2", visit))
            residual = residual + visit("hook_mlp_out", self.mlp(normalized, _within("mlp", visit)))
        return visit("hook_resid_post", residual)


class Unembed(nn.Module):
    """From the residual stream to one logit per token."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.W_U = _weight(config.d_model, config.vocabulary)
        self.b_U = _weight(config.vocabulary)

    def forward(self, x: Float[Tensor, "batch row d_model"]) -> Tensor:
        return x @ self.W_U + self.b_U


class Transformer(nn.Module):
    """A decoder-only transformer with learned positions and LayerNorm before each part."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = Embed(config)
        self.pos_embed = PositionEmbed(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.ln_final = LayerNorm(config.d_model)
        self.unembed = Unembed(config)

    def forward(
        self, tokens: Int[Tensor, "batch row"], visit: Visit = leave_alone
    ) -> Float[Tensor, "batch row token"]:
        """The logits of every row."""
        residual = visit("hook_embed", self.embed(tokens))
        residual = residual + visit("hook_pos_embed", self.pos_embed(tokens))
        for layer, block in enumerate(self.blocks):
            residual = block(residual, _within(f"blocks.{layer}", visit))
        logits: Tensor = self.unembed(self.ln_final(residual, _within("ln_final", visit)))
        return logits

    def run_with_cache(
        self, tokens: Int[Tensor, "batch row"], names: Sequence[str] | None = None
    ) -> tuple[Float[Tensor, "batch row token"], dict[str, Tensor]]:
        """The logits, and the value at each of the named sites (all of them by default)."""
        names = list(sites(self.config)) if names is None else names
        check_sites(self.config, names)
        values: dict[str, Tensor] = {}

        def visit(name: str, value: Tensor) -> Tensor:
            if name in names:
                values[name] = value
            return value

        return self(tokens, visit), values

    def run_with_hooks(
        self, tokens: Int[Tensor, "batch row"], hooks: Sequence[tuple[str, Hook]]
    ) -> Float[Tensor, "batch row token"]:
        """The logits when each hook may replace the value at its site.

        A hook is called as `hook(value, site)` and returns the new value, or None to leave
        it. A site that this model does not have is an error, not a silent no-op.
        """
        check_sites(self.config, [name for name, _ in hooks])
        known = sites(self.config)

        def visit(name: str, value: Tensor) -> Tensor:
            for wanted, hook in hooks:
                if wanted == name:
                    changed = hook(value, known[name])
                    value = value if changed is None else changed
            return value

        logits: Tensor = self(tokens, visit)
        return logits


def paper_std(config: ModelConfig) -> float:
    """The standard deviation of the paper's initial weights."""
    return 0.8 / math.sqrt(config.d_model)


def initialise(
    model: Transformer, generator: torch.Generator, std_of: Callable[[str], float] | None = None
) -> Transformer:
    """Draw every weight matrix from a normal distribution; biases 0, LayerNorm weights 1.

    `std_of` gives the standard deviation by parameter name; the paper's is 0.8/sqrt(d_model).
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.rpartition(".")[2].startswith("W_"):
                std = std_of(name) if std_of else paper_std(model.config)
                parameter.normal_(0.0, std, generator=generator)
    return model


def _within(prefix: str, visit: Visit) -> Visit:
    """The same visitor, for the sites of one part."""
    return lambda name, value: visit(f"{prefix}.{name}", value)
