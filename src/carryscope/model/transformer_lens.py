"""TransformerLens state dicts, in and out.

In: a `.pth` file saved from a HookedTransformer. Out: a `Transformer` with the same logits;
and back. Our parameters have TransformerLens names. What is left is to read the shape, and to
handle the two constant buffers (`mask`, `IGNORE`) that its files also hold. TransformerLens 4
has other names, and joins the heads into one axis: `bridge_names` undoes both.

A state dict does not name the activation, the normalisation or the operation, nor, from
TransformerLens 4, the number of heads. `Beside` reads what the file's name or a JSON file next to
it says. Else we take ReLU and LayerNorm, which the paper's notebook and its authors' later library
train.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from pathlib import Path

import torch
from torch import Tensor

from carryscope.core.errors import CallError, require
from carryscope.core.machine import check_memory
from carryscope.core.storage import read_bytes, write_output
from carryscope.model.beside import Beside
from carryscope.model.config import ModelConfig
from carryscope.model.files import check_weights, with_weights
from carryscope.model.transformer import Transformer
from carryscope.task.operation import OPERATIONS, OperationName
from carryscope.task.tokens import FormatName

_BUFFERS = ("attn.mask", "attn.IGNORE")

_ENCODER = re.compile(r"token_type_embed|^(encoder|decoder|mlm_head|nsp_head|pooler)\b")
"""Names that only models other than decoders have."""

_NATIVE = {
    r"^tok_embed\.": "embed.",
    r"^pos\.": "pos_embed.",
    r"^layers\.": "blocks.",
    r"\.mlp\.fc_": ".mlp.",
    r"^ln_out\.": "ln_final.",
    r"^head\.": "unembed.",
}
"""TransformerLens 4: names of a model before the bridge is put around it."""

_BRIDGED = {"embed": "E", "pos_embed": "pos", "unembed": "U"}
"""TransformerLens 4: modules outside the blocks, and the letter of their weight in 2.x."""


def read_state_dict(
    path: Path, *, operation: OperationName | None = None, heads: int | None = None
) -> Transformer:
    """The model of a TransformerLens `.pth` file, its shape inferred from its tensors.

    The tensors do not show the operation, nor, in TransformerLens 4, the number of heads. If
    neither its name nor a config next to it says them, the caller must.
    """
    require(heads is None or heads >= 1, "heads must be at least 1", heads)
    weights = _read_tensors(path)
    beside = Beside.of(path)
    beside.check(path)
    # A few bytes can stand for a tensor of any size, until it is converted or copied.
    described = {name: torch.empty(t.shape, device="meta").float() for name, t in weights.items()}
    described = bridge_names(described, heads or beside.n_heads, path)
    config = infer_config(described, path, operation or beside.asked)
    check_weights(config, described, path)
    weights = bridge_names(weights, config.heads, path)
    return with_weights(config, {name: t.float() for name, t in weights.items()}, path)


def _read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a `.pth` file, without buffers; nothing in the file is run."""
    content = io.BytesIO(read_bytes(path))
    try:
        with warnings.catch_warnings():
            # Warnings about pickle protocols: the file is either read, or refused below.
            warnings.simplefilter("ignore")
            check_memory(_unpacked_size(content), f"Unpacking {path}")
            loaded = torch.load(content, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged pickle can raise anything
        if isinstance(error, CallError):
            raise
        raise CallError(
            f"{path} is not a state dict that can be read safely (weights only). "
            "Save it with torch.save(model.state_dict(), path)."
        ) from error
    if not isinstance(loaded, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in loaded.items()
    ):
        raise CallError(f"{path} must hold a state dict of tensors. Got {type(loaded).__name__}.")
    weights = {name: t for name, t in loaded.items() if not name.endswith(_BUFFERS)}
    for name, tensor in weights.items():
        _check_tensor(name, tensor, path)
    return weights


def bridge_names(weights: dict[str, Tensor], heads: int | None, source: Path) -> dict[str, Tensor]:
    """Weights of TransformerLens 4 with the names and axes of 2.x; others stay as they are."""
    for old, new in _NATIVE.items():
        weights = {re.sub(old, new, name): tensor for name, tensor in weights.items()}
    if "embed.weight" not in weights:
        return weights
    if heads is None:
        raise CallError(f"{source} does not say how many heads the model has. Add --heads N.")
    named = {}
    for name, tensor in weights.items():
        older = _older_name(name)
        named[older] = _split_heads(older, tensor, heads, source)
    if "unembed.W_U" in named:
        named.setdefault("unembed.b_U", torch.zeros_like(named["unembed.W_U"][0]))
    return named


def _older_name(name: str) -> str:
    """Its name in TransformerLens 2.x: `blocks.0.attn.q.bias` was `blocks.0.attn.b_Q`."""
    module, _, kind = name.rpartition(".")
    inside, _, part = module.rpartition(".")
    if part.startswith("ln"):
        return f"{module}.{kind[0]}"
    side = "W" if kind == "weight" else "b"
    if part in _BRIDGED:
        return f"{module}.{side}_{_BRIDGED[part]}"
    return f"{inside}.{side}_{part if inside.endswith('mlp') else part.upper()}"


def _split_heads(name: str, tensor: Tensor, heads: int, source: Path) -> Tensor:
    """A weight of TransformerLens 4, whose matrices are transposed and have no axis of heads."""
    kind = name.rpartition(".")[2]
    if kind in ("W_O", "W_U", "W_in", "W_out"):
        tensor = tensor.mT if tensor.ndim == 2 else tensor
    if kind not in ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V"):
        return tensor
    if tensor.ndim == 0 or len(tensor) % heads:
        size = len(tensor) if tensor.ndim else "none"
        raise CallError(f"{source}: {heads} heads must divide the axis of {name}. Got {size}.")
    tensor = tensor.reshape(heads, -1, *tensor.shape[1:])
    return tensor.mT if kind in ("W_Q", "W_K", "W_V") else tensor


def _unpacked_size(content: io.BytesIO) -> int:
    """The bytes that an archive holds: a small one can hold very many."""
    found = zipfile.is_zipfile(content)
    size = sum(file.file_size for file in zipfile.ZipFile(content).infolist()) if found else 0
    content.seek(0)
    return size


def _check_tensor(name: str, tensor: Tensor, source: Path) -> None:
    """Refuse what is no plain tensor of real numbers."""
    kind = str(tensor.dtype).removeprefix("torch.")
    if tensor.is_meta or tensor.is_nested or tensor.layout != torch.strided:
        kind = "meta" if tensor.is_meta else str(tensor.layout).removeprefix("torch.")
    elif tensor.is_floating_point() and not tensor.is_quantized:
        return
    raise CallError(f"{source}: {name} must be a plain tensor of real numbers. Got {kind}.")


def infer_config(
    weights: dict[str, Tensor], source: Path, operation: OperationName | None
) -> ModelConfig:
    """Layers, heads, widths, digits and format, from the names and shapes of the tensors."""
    if foreign := next(filter(_ENCODER.search, weights), None):
        raise CallError(f"{source} must be a decoder. Got an encoder: it has {foreign}.")
    try:
        vocabulary, d_model = weights["embed.W_E"].shape
        context, _ = weights["pos_embed.W_pos"].shape
        heads, _, d_head = weights["blocks.0.attn.W_Q"].shape
        mlp = weights.get("blocks.0.mlp.W_in")
        d_mlp = 0 if mlp is None else mlp.shape[1]
    except (KeyError, ValueError, IndexError) as error:
        raise CallError(
            f"{source} is not a TransformerLens state dict: its embed.W_E, pos_embed.W_pos and "
            "blocks.0.attn.W_Q must have 2, 2 and 3 axes."
        ) from error
    if "blocks.0.ln1.w" not in weights:
        raise CallError(
            f"{source} has no LayerNorm weights (blocks.0.ln1.w): folded models and models "
            "without LayerNorm look alike. Save the model with fold_ln=False."
        )
    if context % 3 == 2 or context < 6:
        raise CallError(
            f"{source}: the context must be 3n+3 (plain) or 3n+4 (signed) tokens. Got {context}."
        )
    layout: FormatName = "plain" if context % 3 == 0 else "signed"
    if operation is None and (layout, vocabulary) == ("signed", 15):
        names = ", ".join(OPERATIONS)
        raise CallError(f"{source} does not say what it computes. Add --operation, one of {names}.")
    blocks = {int(found[1]) for name in weights if (found := re.match(r"blocks\.(\d+)\.", name))}
    return ModelConfig(
        digits=(context - 3) // 3,
        operation=operation or "addition",
        format=layout,
        vocabulary=vocabulary,
        layers=len(blocks),
        heads=heads,
        d_model=d_model,
        d_head=d_head,
        d_mlp=d_mlp,
    )


def write_state_dict(model: Transformer, path: Path) -> None:
    """Write a `.pth` file that a HookedTransformer of the same shape loads strictly."""
    context = model.config.context
    state = dict(model.state_dict())
    for layer in range(model.config.layers):
        mask = torch.ones(context, context, dtype=torch.bool).tril()
        state[f"blocks.{layer}.attn.mask"] = mask
        state[f"blocks.{layer}.attn.IGNORE"] = torch.tensor(-torch.inf)
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_output(path, buffer.getvalue())


def hooked_transformer_config(config: ModelConfig) -> dict[str, object]:
    """The arguments of the HookedTransformerConfig that fits an exported state dict."""
    return {
        "n_layers": config.layers,
        "n_heads": config.heads,
        "d_model": config.d_model,
        "d_head": config.d_head,
        "d_mlp": config.d_mlp or None,
        "attn_only": not config.d_mlp,
        "act_fn": "relu" if config.d_mlp else None,
        "normalization_type": "LN",
        "d_vocab": config.vocabulary,
        "d_vocab_out": config.vocabulary,
        "n_ctx": config.context,
    }
