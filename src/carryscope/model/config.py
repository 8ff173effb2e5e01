"""The shape of a model, checked on construction. No torch here: `--help` stays fast."""

from __future__ import annotations

import math

import msgspec

from carryscope.core.errors import require
from carryscope.task.operation import OPERATIONS, OperationName
from carryscope.task.tokens import Format, FormatName

FORMAT_VERSION = 1
"""Version of the run directory's files. A newer one is refused, never guessed at."""


MOST_LAYERS = 100
"""More than anybody trains to add."""

BYTES = 4
"""Bytes of a parameter: they are float32."""


def paper_width(heads: int) -> int:
    """The paper's d_model: 512, or just below it so that the heads divide it."""
    return 512 // heads * heads


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that fixes the shape of a model. The defaults are the paper's."""

    digits: int = 5
    """Digits of each number in a question."""

    operation: OperationName = "addition"
    """`addition`, `subtraction`, or `mixed`: each question has its own. Answers that can be
    negative need the signed format and 15 tokens."""

    format: FormatName = "plain"
    """`plain` 12345+67890=080235, or `signed` 12345+67890=+080235."""

    vocabulary: int = 12
    """12 tokens as in the paper, or the 15 of its authors' later library."""

    layers: int = 1
    """Transformer blocks."""

    heads: int = 3
    """Attention heads in each block."""

    d_model: int = 0
    """Width of the residual stream. 0 means the paper's (512 // heads) * heads."""

    d_head: int = 0
    """Width of each attention head. 0 means d_model // heads."""

    d_mlp: int = -1
    """Neurons in each MLP. -1 means the paper's 4 * d_model, 0 an attention-only model."""

    def __post_init__(self) -> None:
        require(self.layers >= 1, "layers must be at least 1", self.layers)
        require(self.layers <= MOST_LAYERS, f"layers must be at most {MOST_LAYERS}", self.layers)
        require(self.heads >= 1, "heads must be at least 1", self.heads)
        if self.d_model == 0:
            few = self.heads <= 512
            require(few, "heads must be at most 512 unless d_model is set", self.heads)
            msgspec.structs.force_setattr(self, "d_model", paper_width(self.heads))
        require(self.d_model >= 1, "d_model must be at least 1", self.d_model)
        if self.d_head == 0:
            widths = f"{self.heads} heads and d_model {self.d_model}"
            divides = self.d_model % self.heads == 0
            require(divides, "heads must divide d_model unless d_head is set", widths)
            msgspec.structs.force_setattr(self, "d_head", self.d_model // self.heads)
        require(self.d_head >= 1, "d_head must be at least 1", self.d_head)
        if self.d_mlp == -1:
            msgspec.structs.force_setattr(self, "d_mlp", 4 * self.d_model)
        require(self.d_mlp >= 0, "d_mlp must be at least 0", self.d_mlp)
        known = self.operation in OPERATIONS
        require(known, f"operation must be one of {', '.join(OPERATIONS)}", self.operation)
        _ = self.layout

    @property
    def layout(self) -> Format:
        """How questions are written as tokens for this model."""
        return Format(self.digits, self.format, self.vocabulary, OPERATIONS[self.operation])

    @property
    def context(self) -> int:
        """Tokens in a question with its answer."""
        return self.layout.context

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every parameter, by its TransformerLens name."""
        d, heads, e = self.d_model, self.heads, self.d_head
        norm: dict[str, tuple[int, ...]] = {"w": (d,), "b": (d,)}
        block = {f"ln1.{name}": shape for name, shape in norm.items()}
        for part in "QKV":
            block |= {f"attn.W_{part}": (heads, d, e), f"attn.b_{part}": (heads, e)}
        block |= {"attn.W_O": (heads, e, d), "attn.b_O": (d,)}
        if self.d_mlp:
            block |= {f"ln2.{name}": shape for name, shape in norm.items()}
            block |= {"mlp.W_in": (d, self.d_mlp), "mlp.b_in": (self.d_mlp,)}
            block |= {"mlp.W_out": (self.d_mlp, d), "mlp.b_out": (d,)}
        return {
            "embed.W_E": (self.vocabulary, d),
            "pos_embed.W_pos": (self.context, d),
            **{f"blocks.{i}.{n}": shape for i in range(self.layers) for n, shape in block.items()},
            **{f"ln_final.{name}": shape for name, shape in norm.items()},
            "unembed.W_U": (d, self.vocabulary),
            "unembed.b_U": (self.vocabulary,),
        }

    @property
    def size(self) -> int:
        """The bytes of all parameters."""
        return BYTES * sum(math.prod(shape) for shape in self.shapes.values())
