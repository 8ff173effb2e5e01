"""The trainer: a model, its optimizer and a step count that move forward together.

In: a `RunConfig`. Out: one `StepRecord` per call of `advance`. The whole state can be
packed into tensors and restored, and then continues exactly as if nothing had happened.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from carryscope.model.answer_path import answer_logits, answer_rows, logits_of
from carryscope.model.config import BYTES
from carryscope.model.transformer import Transformer, initialise, paper_std
from carryscope.task.columns import Columns
from carryscope.task.operation import Array
from carryscope.task.questions import Questions
from carryscope.training.config import RunConfig, TrainingConfig, part_of
from carryscope.training.data import Climbers, training_batch
from carryscope.training.growing import take_over
from carryscope.training.losses import StepRecord, blur, step_record, token_losses, unread

_EMBEDDINGS = ("embed.W_E", "pos_embed.W_pos")
_ATTENTION = ("W_Q", "W_K")
_PER_HEAD = ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V")
_MOMENTS = ("exp_avg", "exp_avg_sq")
_POOL = "climbers.pool"


def memory_needed(config: RunConfig) -> int:
    """About how many bytes a training takes.

    Weights, gradients and two moments for each parameter; and for each row of a batch what is kept
    for the backward pass: attention over all positions, the residual stream, the neurons.
    """
    assert config.training is not None
    model, batch = config.model, max(config.training.batch, config.training.final_batch)
    row = 2 * model.heads * model.context + 4 * model.d_model + 3 * model.d_mlp
    return 4 * model.size + BYTES * batch * model.context * model.layers * row


class Trainer:
    """Trains one model, one step at a time."""

    def __init__(self, config: RunConfig) -> None:
        assert config.training is not None
        self.recipe: TrainingConfig = config.training
        self.model = Transformer(config.model)
        self.step = 0
        """Steps done so far."""
        generator = torch.Generator().manual_seed(self.recipe.seed)
        initialise(self.model, generator, self._initial_std)
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(part_of(name) not in self.recipe.freeze)
        self.optimizer = self._make_optimizer()
        self.climbers = Climbers(self.recipe.seed, config.model.layout)

    def start_from(self, donor: Transformer) -> None:
        """Take over a donor's weights, except in the parts that are drawn anew."""
        names = dict(self.model.named_parameters())
        renewed = frozenset(name for name in names if part_of(name) in self.recipe.renew)
        take_over(self.model, donor, but=renewed)

    def advance(self) -> StepRecord:
        """Make one step on fresh questions."""
        layout = self.model.config.layout
        questions = self._batch()
        tokens = torch.from_numpy(layout.encode(questions))
        rows = answer_rows(self.model, tokens)
        chances = logits_of(self.model, rows.written()).double().log_softmax(-1)
        losses = token_losses(chances, layout.answer_part(tokens))
        total = losses.mean() + self._cost_of_attention(rows.pattern)
        self.optimizer.zero_grad()
        total.backward()  # type: ignore[no-untyped-call]
        self._update()
        self.step += 1
        return step_record(self.step, losses.detach().numpy(), Columns.of(questions))

    def _cost_of_attention(self, pattern: Tensor | None) -> Tensor | float:
        """What heads pay for reading several columns at once, and for columns that none reads."""
        costs = ((self.recipe.sharpness_at(self.step), blur), (self.recipe.coverage, unread))
        paid: Tensor | float = 0.0
        for cost, of in costs:
            if cost:
                assert pattern is not None
                paid = paid + cost * of(pattern, self.model.config.layout)
        return paid

    def _batch(self) -> Questions:
        """The questions of the next step. Those that climb take the place of the first ones."""
        layout = self.model.config.layout
        questions = training_batch(self.recipe, layout.digits, self.step, layout.operation)
        hard = self.recipe.hard_at(self.step)
        if not hard:
            return questions
        climbed = self.climbers.climbed(self.step, hard, self._loss_of)
        return Questions.joined([climbed, questions[hard:]])

    @torch.no_grad()
    def _loss_of(self, questions: Questions) -> Float[Array, " batch"]:
        layout = self.model.config.layout
        tokens = torch.from_numpy(layout.encode(questions))
        chances = answer_logits(self.model, tokens).double().log_softmax(-1)
        return token_losses(chances, layout.answer_part(tokens)).sum(-1).numpy()

    def _update(self) -> None:
        self._hold_back_heads()
        if self.recipe.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        rate = self.recipe.learning_rate * self.recipe.rate(self.step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["share"]
        self.optimizer.step()

    def _hold_back_heads(self) -> None:
        """No gradient for heads that have not started yet: only weight decay changes them."""
        heads = self.recipe.heads_at(self.step)
        if heads is None or heads >= self.model.config.heads:
            return
        for name, parameter in self.model.named_parameters():
            if name.endswith(_PER_HEAD) and parameter.grad is not None:
                parameter.grad[heads:] = 0.0

    def state(self) -> dict[str, Tensor]:
        """Weights, optimizer moments and, once there are any, hard questions, by name."""
        tensors = {f"weight.{name}": p.detach() for name, p in self.model.named_parameters()}
        for name, parameter in self.model.named_parameters():
            for moment in _MOMENTS:
                if parameter in self.optimizer.state:
                    tensors[f"{moment}.{name}"] = self.optimizer.state[parameter][moment]
        if self.recipe.hard_start < 1:
            pair = self.climbers.pool.first, self.climbers.pool.second
            tensors[_POOL] = torch.from_numpy(np.stack(pair))
        return tensors

    def restore(self, step: int, tensors: dict[str, Tensor]) -> None:
        """Continue from what `state` gave after `step` steps."""
        self.step = step
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(tensors[f"weight.{name}"])
                if f"exp_avg.{name}" in tensors:
                    moments = {moment: tensors[f"{moment}.{name}"].clone() for moment in _MOMENTS}
                    done = torch.tensor(float(step))
                    self.optimizer.state[parameter] = {"step": done, **moments}
        if self.recipe.hard_start < 1:
            self.climbers.pool.first[:], self.climbers.pool.second[:] = tensors[_POOL].numpy()

    def _initial_std(self, name: str) -> float:
        std = self.recipe.init_std or paper_std(self.model.config)
        if name in _EMBEDDINGS:
            return self.recipe.embedding_std or std
        if name.endswith(_ATTENTION):
            return self.recipe.attention_std or std
        return std

    def _make_optimizer(self) -> torch.optim.Adam:
        """An optimizer of all parameters that are not frozen."""
        named = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        embeddings = [named.pop(name) for name in _EMBEDDINGS if name in named]
        groups = [
            {"params": list(named.values()), "share": 1.0},
            {"params": embeddings, "share": self.recipe.embedding_rate},
        ]
        if self.recipe.optimizer == "adam":
            return torch.optim.Adam(groups, betas=self.recipe.betas, fused=True)
        decay = self.recipe.weight_decay
        return torch.optim.AdamW(groups, betas=self.recipe.betas, weight_decay=decay, fused=True)
