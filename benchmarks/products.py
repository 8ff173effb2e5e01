"""The bare matrix products of a training step: what its arithmetic costs and nothing else.

In: a trainer. Out: a function that does once all the matrix products that one of its steps does,
forward and backward, into buffers made beforehand. A step cannot be faster than this. How near it
comes is a measure of its overhead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from carryscope.training.trainer import Trainer

aten = torch.ops.aten
FACTORS = {aten.mm.default: 0, aten.bmm.default: 0, aten.addmm.default: 1, aten.baddbmm.default: 1}
"""Every operation that multiplies matrices, and which of its arguments is the left factor."""


class _Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Writes down the factors of every matrix product."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[tuple[Tensor, Tensor, Tensor]] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        out = function(*args, **(kwargs or {}))
        if function in FACTORS:
            left, right = args[FACTORS[function] :][:2]
            self.found.append((left.clone(), right.clone(), torch.empty_like(out)))
        return out


def bare_step(trainer: Trainer) -> Callable[[], None]:
    """Make one step, and return a function that does its matrix products again."""
    with _Products() as products:
        trainer.advance()

    def step() -> None:
        for left, right, out in products.found:
            torch.matmul(left, right, out=out)

    return step
