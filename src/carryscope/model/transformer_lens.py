"""TransformerLens state dicts, in and out.

In: a `.pth` file saved from a HookedTransformer. Out: a `Transformer` with the same logits;
and back. Our parameters have TransformerLens names. What is left is to read the shape, and to
handle the two constant buffers (`mask`, `IGNORE`) that its files also hold.

A state dict does not name the activation or the normalisation. We take ReLU and LayerNorm, which
the paper's notebook and its authors' later library train.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from pathlib import Path

import torch
from torch import Tensor

from carryscope.core.errors import CallError
from carryscope.core.machine import check_memory
from carryscope.core.storage import read_bytes, write_output
from carryscope.model.config import ModelConfig
from carryscope.model.files import check_weights, with_weights
from carryscope.model.transformer import Transformer

_BUFFERS = ("attn.mask", "attn.IGNORE")


def read_state_dict(path: Path) -> Transformer:
    """The model of a TransformerLens `.pth` file, its shape inferred from its tensors."""
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
    config = infer_config(weights, path)
    # A few bytes can stand for a tensor of any size, until it is converted or copied.
    described = {n: torch.empty(t.shape, device="meta").float() for n, t in weights.items()}
    check_weights(config, described, path)
    return with_weights(config, {name: t.float() for name, t in weights.items()}, path)


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


def infer_config(weights: dict[str, Tensor], source: Path) -> ModelConfig:
    """Layers, heads, widths, digits and format, from the names and shapes of the tensors."""
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
    blocks = {int(found[1]) for name in weights if (found := re.match(r"blocks\.(\d+)\.", name))}
    return ModelConfig(
        digits=(context - 3) // 3,
        format="plain" if context % 3 == 0 else "signed",
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
