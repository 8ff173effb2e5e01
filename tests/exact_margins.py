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


def logits_and_scales(exact: Transformer, questions: Questions, row: int) -> tuple[Tensor, Tensor]:
    """The logits of an answer row (teacher-forced), and sigma times sigma_f."""
    tokens = torch.from_numpy(exact.config.layout.encode(questions))
    position = exact.config.layout.answer_rows[row]
    last = "ln_final.hook_scale"
    middle = "blocks.0.ln2.hook_scale" if exact.config.d_mlp else last
    with torch.inference_mode():
        logits, cache = exact.run_with_cache(tokens, list({last, middle}))
    scale = cache[last][:, position, 0] * cache[middle][:, position, 0]
    return logits[:, position], scale
