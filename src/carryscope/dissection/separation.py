"""Which keys can be told apart in a set of vectors.

In: vectors with the key of each. Out: for every two keys, whether the nearer of their two
centroids says which is which, on vectors that were not used for the centroids. It is a lower
bound: a reader that knows more than centroids may tell more.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from carryscope.task.operation import Array

TOLD_APART = 0.9
"""Two keys are told apart if nine in ten of their vectors lie nearer to their own centroid."""

ROUNDING = 1e-4
"""A vector of length 1 counts as nearer only by more than this: float32 is good to 1e-6."""


def told_apart(
    vectors: Float[Tensor, "batch width"], key: Int[Array, " batch"]
) -> Bool[Array, "key key"]:
    """Which keys are told apart. Means and lengths do not count: LayerNorm takes them away."""
    units = F.normalize(vectors - vectors.mean(1, keepdim=True), dim=1)
    member = F.one_hot(torch.from_numpy(key)).to(units.dtype)
    half = torch.arange(len(key)) % 2 == 0
    centroids = member[half].T @ units[half] / member[half].sum(0).clamp(min=1)[:, None]
    nearness = units[~half] @ centroids.T - centroids.square().sum(1) / 2
    own = nearness.gather(1, torch.from_numpy(key)[~half][:, None])
    wins = member[~half].T @ (own > nearness + ROUNDING).to(units.dtype)
    share = (wins / member[~half].sum(0).clamp(min=1)[:, None]).numpy()
    apart: Array = (share + share.T) / 2 >= TOLD_APART
    return apart


def alike_pairs(key: Int[Array, " batch"], answer: Int[Array, " batch"]) -> Bool[Array, "key key"]:
    """Which pairs of different keys have the same answer, each pair once."""
    _, first = np.unique(key, return_index=True)
    answers = answer[first]
    alike: Array = np.triu(answers[:, None] == answers, k=1)
    return alike
