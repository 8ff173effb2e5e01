"""Interventions by the instrumented pass: any of them, alone or together, one pass each.

This is the plain, slow way. The tests compare the engine with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from carryscope.dissection.interventions import Ablate, Cut, Intervention, Patch
from carryscope.model.sites import Hook, Site
from carryscope.model.transformer import Transformer
from carryscope.task.questions import Questions


def answers_by_hooks(
    model: Transformer,
    questions: Questions,
    interventions: Sequence[Intervention],
    reference: Questions,
) -> Tensor:
    """The answer logits when all the interventions are made at once."""
    layout = model.config.layout
    hooks: list[tuple[str, Hook]] = []
    for one in interventions:
        if isinstance(one, Cut):
            hooks.append((one.site, _cutting(one)))
        elif isinstance(one, Patch):
            hooks.append((one.site, _replacing(one, _values(model, one.site, one.source))))
        else:
            mean = _values(model, one.site, reference).mean(0) if one.how == "mean" else None
            hooks.append((one.site, _replacing(one, mean)))
    with torch.inference_mode():
        logits = model.run_with_hooks(torch.from_numpy(layout.encode(questions)), hooks)
    return logits[:, layout.answer_rows.start : layout.answer_rows.stop]


def _replacing(one: Ablate | Patch, new: Tensor | None) -> Hook:
    """The function that puts a new value, or zero, in place of the old one."""
    rows = torch.tensor(one.rows)

    def replace(value: Tensor, site: Site) -> Tensor:
        changed = torch.zeros_like(value) if new is None else new.expand_as(value)
        heads = torch.arange(value.shape[2]) if one.heads is None else torch.tensor(one.heads)
        chosen = (slice(None), rows[:, None], heads)  # heads, or the numbers of the stream
        value = value.clone()
        value[chosen] = changed[chosen]
        return value

    return replace


def _cutting(one: Cut) -> Hook:
    """The function that hides keys from rows and scales up what is left."""

    def cut(pattern: Tensor, site: Site) -> Tensor:
        pattern = pattern.clone()
        for head in range(pattern.shape[1]) if one.heads is None else one.heads:
            for row in one.rows:
                left = pattern[:, head, row]
                left[:, list(one.keys)] = 0.0
                pattern[:, head, row] = (left / left.sum(-1, keepdim=True)).nan_to_num(0.0)
        return pattern

    return cut


def _values(model: Transformer, site: str, questions: Questions) -> Tensor:
    """The clean values at a site."""
    tokens = torch.from_numpy(model.config.layout.encode(questions))
    with torch.inference_mode():
        return model.run_with_cache(tokens, [site])[1][site]
