"""The work that is compared, done on TransformerLens, as a process that waits for its turn.

Runs in a Python that has TransformerLens 2.x and nothing of carryscope. It is started with a number
of threads and a directory. A line on standard input is a turn:

    step 8          makes eight steps of the paper's training
    node 5 125      ablates the sixth node, questions in batches of 125

The reply is JSON: the seconds it took, and which questions were answered right without the node.
The means that replace the nodes are computed beforehand.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

WEIGHTS_FILE, WORK_FILE = "weights.pth", "work.pt"
"""What carryscope leaves in the directory: a state dict; the config, tokens and nodes."""

DIGITS = 5


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


Turn = Callable[..., list[bool]]
"""Does the work of a line; which questions are right, if it is about questions."""


def training_steps(model: Any, work: dict[str, Any]) -> Turn:
    """Steps of the paper's recipe: 64 fresh questions, AdamW, float64 log-softmax."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-5, betas=(0.9, 0.98), weight_decay=0.1)

    def steps(count: int) -> list[bool]:
        for _ in range(count):
            tokens = _questions(64)
            chances = model(tokens)[:, -DIGITS - 2 : -1].to(torch.float64).log_softmax(-1)
            loss = -chances.gather(-1, tokens[:, -DIGITS - 1 :, None]).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        return []

    return steps


def _questions(count: int) -> Tensor:
    digits = torch.randint(0, 10, (2, count, DIGITS))
    place = 10 ** torch.arange(DIGITS, -1, -1)
    total = (digits * place[1:]).sum((0, 2))
    answer = total[:, None] // place % 10
    plus, equals = torch.full((count, 1), 10), torch.full((count, 1), 11)
    return torch.cat([digits[0], plus, digits[1], equals, answer], dim=1)


@torch.no_grad()
def ablated_nodes(model: Any, work: dict[str, Any]) -> Turn:
    """Every node, to be replaced by its mean."""
    tokens, answer = work["tokens"], work["answer_length"]
    sites = sorted({site for site, _, _ in work["nodes"]})
    _, cached = model.run_with_cache(tokens, names_filter=sites)
    means = {site: cached[site].mean(0) for site in sites}

    @torch.no_grad()
    def right(node: int, batch: int) -> list[bool]:
        site, row, head = work["nodes"][node]
        at = (row,) if head is None else (row, head)

        def replace(value: Tensor, hook: Any) -> Tensor:
            value[:, *at] = means[site][at]
            return value

        found = []
        for some in tokens.split(batch):
            logits = model.run_with_hooks(some, fwd_hooks=[(site, replace)])
            predicted = logits[:, -answer - 1 : -1].argmax(-1)
            found.append((predicted == some[:, -answer:]).all(1))
        return torch.cat(found).tolist()

    return right


WORK = {"step": training_steps, "node": ablated_nodes}


def reply_to(line: str, turn: Callable[[str], Turn]) -> str:
    """Take one turn."""
    kind, *numbers = line.split()
    do, began = turn(kind), time.perf_counter()
    right = do(*map(int, numbers))
    return json.dumps({"seconds": time.perf_counter() - began, "right": right})


def main() -> None:
    """Reply to each line on standard input."""
    threads, directory = sys.argv[1:]
    torch.set_num_threads(int(threads))
    turn = cache(lambda kind: WORK[kind](*load(Path(directory))))
    for line in sys.stdin:
        sys.stdout.write(f"{reply_to(line, turn)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
