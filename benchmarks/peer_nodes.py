"""Ablated nodes on TransformerLens, as a process that waits for its turn.

Runs in a Python that has TransformerLens 2.x and nothing of carryscope. A line on standard input
names a node by its number, and a batch size:

    0 1000      ablate the first node, all questions in one batch
    5 125       ablate the sixth node, questions in batches of 125

The reply has the seconds it took, and for each question whether it was answered right. The means
that replace the nodes are computed beforehand.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

WEIGHTS_FILE, WORK_FILE = "weights.pth", "work.pt"
"""What carryscope leaves in the directory: a state dict; the config, tokens and nodes."""

Ablated = Callable[[int, int], Tensor]


def load(directory: Path) -> tuple[Any, dict[str, Any]]:
    """The model, and the work to do with it."""
    from transformer_lens import (  # type: ignore[import-not-found]
        HookedTransformer,
        HookedTransformerConfig,
    )

    work: dict[str, Any] = torch.load(directory / WORK_FILE, weights_only=True)
    model = HookedTransformer(HookedTransformerConfig(**work["config"], device="cpu"))
    model.load_state_dict(torch.load(directory / WEIGHTS_FILE, weights_only=True), strict=True)
    return model, work


def ablation(mean: Tensor, row: int, head: int | None) -> Callable[[Tensor, Any], Tensor]:
    """A hook that replaces a head, or the MLP, by its mean at one row."""

    def replace(value: Tensor, hook: Any) -> Tensor:
        if head is None:
            value[:, row] = mean[row]
        else:
            value[:, row, head] = mean[row, head]
        return value

    return replace


def node_maps(model: Any, work: dict[str, Any]) -> Ablated:
    """A function of a node and a batch size: which questions are right without the node."""
    tokens, answer = work["tokens"], work["answer_length"]
    sites = sorted({site for site, _, _ in work["nodes"]})
    _, cache = model.run_with_cache(tokens, names_filter=sites)
    means = {site: cache[site].mean(0) for site in sites}
    hooks = [[(site, ablation(means[site], row, head))] for site, row, head in work["nodes"]]

    def right(node: int, batch: int) -> Tensor:
        found = []
        for some in tokens.split(batch):
            logits = model.run_with_hooks(some, fwd_hooks=hooks[node])
            predicted = logits[:, -answer - 1 : -1].argmax(-1)
            found.append((predicted == some[:, -answer:]).all(1))
        return torch.cat(found)

    return right


def reply_to(line: str, ablated: Ablated) -> str:
    """Ablate the node of a line; the seconds it took and which questions were right."""
    node, batch = map(int, line.split())
    began = time.perf_counter()
    right = ablated(node, batch)
    seconds = time.perf_counter() - began
    return json.dumps({"seconds": seconds, "right": right.tolist()})


def main() -> None:
    """Reply to each line on standard input."""
    threads, directory = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.set_grad_enabled(False)
    ablated = node_maps(*load(Path(directory)))
    for line in sys.stdin:
        sys.stdout.write(f"{reply_to(line, ablated)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
