"""The bare matrix products of a training step: what its arithmetic costs and nothing else.

In: a one-layer model shape and a batch size. Out: a function that does once all the matrix
products that one step of the answer path does, forward and backward, into buffers made
beforehand. A step cannot be faster than this; how near it comes is a measure of its overhead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from carryscope.core.errors import CallError
from carryscope.model.config import ModelConfig


class Product(NamedTuple):
    """`copies` products (rows x inner) @ (inner x columns), and which factors need gradients."""

    copies: int
    rows: int
    inner: int
    columns: int
    gradients: str = "both"
    """`both`, `left` or `right`: the factors that are not fixed data."""


def products_of_a_step(config: ModelConfig, batch: int) -> list[Product]:
    """Every matrix product of the answer path of a one-layer model, in order."""
    if config.layers != 1 or not config.d_mlp:
        raise CallError("The bare products are written down for one layer with an MLP.")
    layout = config.layout
    heads, d_model, d_head, d_mlp = config.heads, config.d_model, config.d_head, config.d_mlp
    keys, rows = layout.answer_rows.stop, layout.answer_length
    own, m = config.vocabulary + rows, config.vocabulary + keys
    basis, flat = own + heads * m + 1, batch * rows
    return [
        Product(heads, own + 1, d_model, d_head),  # queries
        Product(heads, m, d_model, d_head),  # keys
        Product(heads, m + 1, d_model, d_head),  # values
        Product(heads, own + 1, d_head, m),  # the form of each head
        Product(1, flat, own, heads * m, "right"),
        Product(batch, heads * rows, m, keys, "left"),  # scores
        Product(batch, heads * rows, keys, m, "left"),  # mixtures
        Product(heads, m + 1, d_head, d_model),  # what each head writes
        Product(1, flat, basis, d_model),  # the residual stream
        Product(1, basis + 1, d_model, d_mlp),
        Product(1, flat, basis + 1, d_mlp),  # into the MLP
        Product(1, flat, d_mlp, d_model),  # and out of it
        Product(1, flat, d_model, config.vocabulary),  # logits
    ]


def bare_step(products: list[Product], generator: torch.Generator) -> Callable[[], None]:
    """A function that does these products once as a step does: forward, then back in reverse."""
    jobs = [_jobs(product, generator) for product in products]
    in_order = [job for job, *_ in jobs] + [job for _, *back in reversed(jobs) for job in back]

    def step() -> None:
        for left, right, out in in_order:
            torch.bmm(left, right, out=out)

    return step


def _jobs(product: Product, generator: torch.Generator) -> list[tuple[Tensor, Tensor, Tensor]]:
    """The forward product, then the gradient of each factor that needs one."""
    left = torch.randn(product.copies, product.rows, product.inner, generator=generator)
    right = torch.randn(product.copies, product.inner, product.columns, generator=generator)
    out = torch.randn(product.copies, product.rows, product.columns, generator=generator)
    jobs = [(left, right, torch.empty_like(out))]
    if product.gradients != "right":
        jobs.append((out, right.transpose(1, 2), torch.empty_like(left)))
    if product.gradients != "left":
        jobs.append((left.transpose(1, 2), out, torch.empty_like(right)))
    return jobs
