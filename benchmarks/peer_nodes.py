"""Nodes taken away on TransformerLens, as a process that waits for its turn.

Runs in a Python that has TransformerLens 2.x and nothing of carryscope. Every line read from
standard input is a list of passes, each a node by its number and the questions from one up to
another:

    [[0, 0, 1000]]              the first node, all questions in one batch
    [[0, 17, 18], [5, 3, 4]]    two nodes, one question each

The answer is the seconds the passes took, and for each question whether it was answered right.
The means that nodes are replaced by are taken beforehand.
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

OnePass = Callable[[int, int, int], Tensor]


def load(directory: Path) -> tuple[Any, dict[str, Any]]:
    """The model, and what is to be done with it."""
    from transformer_lens import (  # type: ignore[import-not-found]
        HookedTransformer,
        HookedTransformerConfig,
    )

    work: dict[str, Any] = torch.load(directory / WORK_FILE, weights_only=True)
    model = HookedTransformer(HookedTransformerConfig(**work["config"], device="cpu"))
    model.load_state_dict(torch.load(directory / WEIGHTS_FILE, weights_only=True), strict=True)
    return model, work


def ablation(mean: Tensor, row: int, head: int | None) -> Callable[[Tensor, Any], Tensor]:
    """The hook that puts the mean in the place of a head, or of the MLP, at one row."""

    def replace(value: Tensor, hook: Any) -> Tensor:
        if head is None:
            value[:, row] = mean[row]
        else:
            value[:, row, head] = mean[row, head]
        return value

    return replace


def make_pass(model: Any, work: dict[str, Any]) -> OnePass:
    """One hooked pass: which of the questions are answered right without a node."""
    tokens, answer = work["tokens"], work["answer_length"]
    sites = sorted({site for site, _, _ in work["nodes"]})
    _, cache = model.run_with_cache(tokens, names_filter=sites)
    means = {site: cache[site].mean(0) for site in sites}
    hooks = [[(site, ablation(means[site], row, head))] for site, row, head in work["nodes"]]

    def right(node: int, first: int, last: int) -> Tensor:
        some: Tensor = tokens[first:last]
        logits = model.run_with_hooks(some, fwd_hooks=hooks[node])
        said: Tensor = logits[:, -answer - 1 : -1].argmax(-1)
        return (said == some[:, -answer:]).all(1)

    return right


def reply_to(line: str, one_pass: OnePass) -> str:
    """Make the passes of a line; the seconds they took and what was answered right."""
    passes = json.loads(line)
    began = time.perf_counter()
    right = [one_pass(*which) for which in passes]
    seconds = time.perf_counter() - began
    return json.dumps({"seconds": seconds, "right": [some.tolist() for some in right]})


def main() -> None:
    """Answer each list of passes on standard input."""
    threads, directory = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.set_grad_enabled(False)
    one_pass = make_pass(*load(Path(directory)))
    for line in sys.stdin:
        sys.stdout.write(f"{reply_to(line, one_pass)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
