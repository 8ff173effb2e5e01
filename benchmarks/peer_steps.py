"""The paper's training step on TransformerLens, as a process that waits for its turn.

Runs in a Python that has TransformerLens 2.x and nothing of carryscope. Reads a number of steps
from standard input, makes them, and writes the seconds they took.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import torch

DIGITS = 5


def make_step(threads: int) -> Any:
    """One step of the paper's recipe: 64 fresh questions, AdamW, float64 log-softmax."""
    from transformer_lens import (  # type: ignore[import-not-found]
        HookedTransformer,
        HookedTransformerConfig,
    )

    torch.set_num_threads(threads)
    config = HookedTransformerConfig(
        n_layers=1,
        n_heads=3,
        d_model=510,
        d_head=170,
        d_mlp=2040,
        act_fn="relu",
        normalization_type="LN",
        d_vocab=12,
        d_vocab_out=12,
        n_ctx=3 * DIGITS + 3,
        device="cpu",
        seed=129000,
    )
    model = HookedTransformer(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-5, betas=(0.9, 0.98), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(step / 10, 1.0))

    def step() -> None:
        tokens = _questions(64)
        chances = model(tokens)[:, -DIGITS - 2 : -1].to(torch.float64).log_softmax(-1)
        loss = -chances.gather(-1, tokens[:, -DIGITS - 1 :, None]).mean()
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()

    return step


def _questions(count: int) -> torch.Tensor:
    digits = torch.randint(0, 10, (2, count, DIGITS))
    place = 10 ** torch.arange(DIGITS, -1, -1)
    total = (digits * place[1:]).sum((0, 2))
    answer = total[:, None] // place % 10
    plus, equals = torch.full((count, 1), 10), torch.full((count, 1), 11)
    return torch.cat([digits[0], plus, digits[1], equals, answer], dim=1)


def main() -> None:
    """Reply to each number of steps with the seconds they took."""
    step = make_step(int(sys.argv[1]))
    for line in sys.stdin:
        began = time.perf_counter()
        for _ in range(int(line)):
            step()
        sys.stdout.write(f"{time.perf_counter() - began!r}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
