"""How many keys can be told apart in a set of vectors.

In: vectors with the key of each. Out: the number of groups of keys such that keys of
different groups are told apart by the nearer of two centroids, on vectors that were not used
for the centroids.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from carryscope.task.questions import Array

TOLD_APART = 0.9
"""Two keys are told apart if nine in ten of their vectors lie nearer to their own centroid."""

ROUNDING = 1e-4
"""A vector of length 1 counts as nearer only by more than this: float32 is good to 1e-6."""


def distinct_groups(vectors: Float[Tensor, "batch width"], key: Int[Array, " batch"]) -> int:
    """The number of groups. Means and lengths do not count: LayerNorm will take them away."""
    units = torch.nn.functional.normalize(vectors - vectors.mean(1, keepdim=True), dim=1)
    of_key = np.arange(len(key)) % 2 == 0
    membership = torch.nn.functional.one_hot(torch.from_numpy(key)).to(units.dtype)
    fit, test = torch.from_numpy(of_key), torch.from_numpy(~of_key)
    counts = membership[fit].sum(0)
    centroids = membership[fit].T @ units[fit] / counts.clamp(min=1)[:, None]
    nearness = units[test] @ centroids.T - centroids.square().sum(1) / 2
    own = nearness.gather(1, torch.from_numpy(key)[test][:, None])
    wins = membership[test].T @ (own > nearness + ROUNDING).to(units.dtype)
    share = (wins / membership[test].sum(0).clamp(min=1)[:, None]).numpy()
    apart = (share + share.T) / 2 >= TOLD_APART
    return _components(~apart)


def _components(linked: np.ndarray) -> int:
    """The number of connected components of a graph."""
    left, count = set(range(len(linked))), 0
    while left:
        count += 1
        frontier = {left.pop()}
        while frontier:
            reached = {int(j) for i in frontier for j in np.flatnonzero(linked[i])}
            frontier = reached & left
            left -= frontier
    return count
