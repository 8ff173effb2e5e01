"""The weights and means of a model as text that a page can hold.

In: a model. Out: base64, and where in it each tensor begins. Nothing is rounded: the page has
the run's own float32 numbers. Their bytes are sorted into four planes before they are
deflated, because exponents are alike and the other bytes are noise; a 5-digit model of the
paper's shape shrinks from 16.8 MB of base64 to 14.3.
"""

from __future__ import annotations

import base64
import zlib

import msgspec
import numpy as np
import torch
from torch import Tensor

from carryscope.dissection.samples import Samples
from carryscope.model.transformer import Transformer

CHUNK = 128
"""Questions at a time while means are taken: a few megabytes for each site."""


class Place(msgspec.Struct, frozen=True):
    """Where a tensor stands among all numbers."""

    name: str
    start: int
    length: int


def pack(model: Transformer, seed: int) -> tuple[str, list[Place]]:
    """The weights, and the means that ablated parts are set to, as one text."""
    tensors = dict(model.state_dict()) | reference_means(model, seed)
    arrays = {name: tensor.detach().numpy().astype("<f4") for name, tensor in tensors.items()}
    places, start = [], 0
    for name, array in arrays.items():
        places.append(Place(name, start, array.size))
        start += array.size
    numbers = np.concatenate([array.ravel() for array in arrays.values()])
    planes = np.ascontiguousarray(numbers.view(np.uint8).reshape(-1, 4).T)
    return base64.b64encode(zlib.compress(planes.tobytes())).decode("ascii"), places


def reference_means(model: Transformer, seed: int) -> dict[str, Tensor]:
    """What mean ablation puts in the place of each part: the means that the engine takes.

    They are over the engine's reference questions, at the same row, teacher-forced.
    """
    sites = _ablated_sites(model)
    reference = Samples(model.config.digits, seed).varied
    tokens = torch.from_numpy(model.config.layout.encode(reference))
    totals = dict.fromkeys(sites, torch.zeros(()))
    with torch.inference_mode():
        for start in range(0, len(tokens), CHUNK):
            _, cache = model.run_with_cache(tokens[start : start + CHUNK], list(sites))
            for site in sites:
                totals[site] = totals[site] + cache[site].sum(0)
    return {name: totals[site] / len(tokens) for site, name in sites.items()}


def _ablated_sites(model: Transformer) -> dict[str, str]:
    """The sites that can be ablated in the page, and what their means are called there."""
    parts = {"attn.hook_z": "z", "hook_mlp_out": "mlp_out", "hook_resid_post": "resid_post"}
    return {
        f"blocks.{layer}.{part}": f"mean.{layer}.{name}"
        for layer in range(model.config.layers)
        for part, name in parts.items()
        if model.config.d_mlp or name != "mlp_out"
    }
