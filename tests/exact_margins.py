"""Margins in float64 through the instrumented pass: what the bound is held against."""

from __future__ import annotations

import torch
from torch import Tensor

from carryscope.model.transformer import Transformer
from carryscope.task.questions import Questions


def as_double(model: Transformer) -> Transformer:
    """The model in float64."""
    exact = Transformer(model.config).double()
    exact.load_state_dict(model.state_dict())
    return exact


def logits_and_scales(model: Transformer, questions: Questions, row: int) -> tuple[Tensor, Tensor]:
    """The logits of an answer row (teacher-forced), and sigma times sigma_f."""
    exact = as_double(model)
    tokens = torch.from_numpy(model.config.layout.encode(questions))
    position = model.config.layout.answer_rows[row]
    sites = ["blocks.0.hook_resid_post", "ln_final.hook_scale"]
    middle = "blocks.0.ln2.hook_scale" if model.config.d_mlp else "ln_final.hook_scale"
    with torch.inference_mode():
        logits, cache = exact.run_with_cache(tokens, [*sites[1:], middle])
    scale = cache["ln_final.hook_scale"][:, position, 0] * cache[middle][:, position, 0]
    return logits[:, position], scale
