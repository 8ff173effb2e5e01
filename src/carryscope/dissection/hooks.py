"""Interventions by the instrumented pass: any of them, alone or together, one pass each.

In: a model, questions and interventions. Out: logits of the answer rows. This is the plain
way, with nothing clever in it, and what the engine's fast ways are held equal to.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from carryscope.dissection.interventions import Cut, Intervention, Patch
from carryscope.model.sites import Hook, Site
from carryscope.model.transformer import Transformer
from carryscope.task.questions import Questions


def answers_by_hooks(
    model: Transformer,
    questions: Questions,
    interventions: Sequence[Intervention],
    reference: Questions,
    chunk: slice = slice(None),
) -> Float[Tensor, "batch answer token"]:
    """The answer logits when all the interventions are made at once.

    `chunk` says which of a patch's sources belong to these questions.
    """
    layout = model.config.layout
    hooks = [(one.site, _hook(model, one, reference, chunk)) for one in interventions]
    with torch.inference_mode():
        logits = model.run_with_hooks(torch.from_numpy(layout.encode(questions)), hooks)
    return logits[:, layout.answer_rows.start : layout.answer_rows.stop]


def _hook(model: Transformer, one: Intervention, reference: Questions, chunk: slice) -> Hook:
    """The function that makes one intervention at its site."""
    if isinstance(one, Cut):
        return _cutting(one)
    if isinstance(one, Patch):
        new = _values(model, one.site, one.source[chunk])
    else:
        new = _values(model, one.site, reference).mean(0, keepdim=True)
        new = new if one.how == "mean" else torch.zeros_like(new)
    rows = list(one.rows)
    heads = None if one.heads is None else list(one.heads)

    def replace(value: Tensor, site: Site) -> Tensor:
        value = value.clone()
        if heads is None:
            value[:, rows] = new[:, rows].expand_as(value[:, rows])
        else:
            for head in heads:
                value[:, rows, head] = new[:, rows, head].expand_as(value[:, rows, head])
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
