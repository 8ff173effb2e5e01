"""What the heads write, exchanged between questions at an answer row.

In: an engine and questions. Out: `AnswerRows`: the last layer at the row of each answer digit, and
the answers if the output of heads comes from other questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from carryscope.dissection.capture import before_mlp, block_of
from carryscope.dissection.engine import Engine
from carryscope.model.choice import chosen_tokens
from carryscope.model.transformer import Block
from carryscope.task.operation import Array
from carryscope.task.questions import Questions

AT_ONCE = 2048
"""Questions that go through the MLP at once."""


@dataclass(frozen=True, eq=False)
class AnswerRows:
    """The last layer at the answer rows of many questions, units first."""

    engine: Engine
    own: Float[Tensor, "batch digit d_model"]
    """The residual stream without what the heads of this layer add."""
    heads: Float[Tensor, "batch digit head d_model"]
    """What each head adds; a single sum if they are taken together."""
    said: Int[Array, "batch digit"]
    """The model's answers."""

    @classmethod
    def of(cls, engine: Engine, questions: Questions, *, together: bool = False) -> AnswerRows:
        """The answer rows of these questions."""
        own, heads, said = [], [], []
        digits = slice(-1 - engine.layout.digits, None)
        for state in engine.captures(questions):
            last = state.layers[-1]
            added = last.heads.sum(2, keepdim=True) if together else last.heads
            own.append((last.middle - last.heads.sum(2))[:, digits].flip(1))
            heads.append(added[:, digits].flip(1))
            said.append(state.logits[:, digits].argmax(-1).flip(1))
        return cls(engine, torch.cat(own), torch.cat(heads), torch.cat(said).numpy())

    @property
    def block(self) -> Block:
        """The last block."""
        return block_of(self.engine.model, self.engine.config.layers - 1)

    def middle(self, digit: int) -> Float[Tensor, "batch d_model"]:
        """What the MLP reads at the row of a digit."""
        return self.own[:, digit] + self.heads[:, digit].sum(1)

    @torch.inference_mode()
    def answers(
        self, digit: int, bases: Int[Array, " base"], sources: Sequence[Int[Array, " base"]]
    ) -> Int[Array, " base"]:
        """The digit that is written at some rows, with each head's output from another question."""
        at_row = self.heads[:, digit]
        parts = [at_row[source, head] for head, source in enumerate(sources)]
        middle = self.own[bases, digit] + torch.stack(parts).sum(0)
        tokens = [
            chosen_tokens(self.engine.model, before_mlp(self.block, rows))
            for rows in torch.split(middle, AT_ONCE)
        ]
        return torch.cat(tokens).numpy()
