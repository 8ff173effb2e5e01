"""Which keys can be separated in a set of vectors.

In: vectors with the key of each. Out: for every two keys, whether the nearer of their two
centroids decides which is which, on vectors that were not used for the centroids. It is a lower
bound: a reader that knows more than centroids may separate more.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from carryscope.task.operation import Array

SEPARABLE = 0.9
"""Two keys are separable if nine in ten of their vectors lie nearer to their own centroid."""

ROUNDING = 1e-4
"""A vector of length 1 counts as nearer only by more than this: float32 is good to 1e-6."""


def separable(
    vectors: Float[Tensor, "batch width"], key: Int[Array, " batch"]
) -> Bool[Array, "key key"]:
    """Which keys are separable. Means and lengths do not count: LayerNorm removes them."""
    units = F.normalize(vectors - vectors.mean(1, keepdim=True), dim=1)
    member = F.one_hot(torch.from_numpy(key)).to(units.dtype)
    half = torch.arange(len(key)) % 2 == 0
    centroids = member[half].T @ units[half] / member[half].sum(0).clamp(min=1)[:, None]
    nearness = units[~half] @ centroids.T - centroids.square().sum(1) / 2
    own = nearness.gather(1, torch.from_numpy(key)[~half][:, None])
    wins = member[~half].T @ (own > nearness + ROUNDING).to(units.dtype)
    share = (wins / member[~half].sum(0).clamp(min=1)[:, None]).numpy()
    apart: Array = (share + share.T) / 2 >= SEPARABLE
    return apart


def alike_pairs(key: Int[Array, " batch"], answer: Int[Array, " batch"]) -> Bool[Array, "key key"]:
    """Which pairs of different keys have the same answer, each pair once."""
    _, first = np.unique(key, return_index=True)
    answers = answer[first]
    alike: Array = np.triu(answers[:, None] == answers, k=1)
    return alike
