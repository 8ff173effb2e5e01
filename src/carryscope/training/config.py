"""A training recipe, and the record that makes a run reproducible. No torch here.

A recipe can draw some parts of a model anew, or freeze them. Every parameter belongs to one part:

    embeddings   W_E and W_pos
    attention    of every layer: Q, K, V, O with their biases, and ln1
    mlp          of every layer: W_in, b_in, W_out, b_out, and ln2
    readout      the final LayerNorm and the unembedding

A LayerNorm goes with what reads through it, so a frozen part stays the same function of the
residual stream.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import msgspec

from carryscope.core.errors import CallError, require
from carryscope.model.config import FORMAT_VERSION, ModelConfig
from carryscope.task.sampling import PAPER_BATCH_SHARE, PAPER_CELL_SHARE
from carryscope.task.strata import is_pattern
from carryscope.version import __version__

CHECKPOINT_SECONDS = 20.0
"""Time between checkpoints: what a kill can cost. Writing one takes a fraction of a second."""

LARGEST_SEED = 2**32 - 1
"""A seed is one word of 32 bits, so that no two (seed, step) draw the same batch."""

ModelPart = Literal["embeddings", "attention", "mlp", "readout"]
MODEL_PARTS: tuple[ModelPart, ...] = get_args(ModelPart)

_PART_OF: dict[str, ModelPart] = {
    "embed": "embeddings",
    "pos_embed": "embeddings",
    "ln1": "attention",
    "attn": "attention",
    "ln2": "mlp",
    "mlp": "mlp",
    "ln_final": "readout",
    "unembed": "readout",
}

Schedule = Literal["constant", "linear", "cosine"]
Optimizer = Literal["adamw", "adam"]
Stream = Literal["ours", "authors"]

_SHARES = (
    "enriched_batches enriched_cells nines near_nines nines_start paper_tail sharpness_start "
    "differences hard_start"
).split()

_NOT_NEGATIVE = (
    "seed warmup final_batch head_delay sharpness coverage clip weight_decay init_std "
    "embedding_std attention_std"
).split()


def part_of(parameter: str) -> ModelPart:
    """The part of a parameter such as `blocks.0.attn.W_Q`."""
    first, *rest = parameter.split(".")
    return _PART_OF[rest[1] if first == "blocks" else first]


def all_but(part: ModelPart) -> tuple[ModelPart, ...]:
    """Every other part."""
    return tuple(other for other in MODEL_PARTS if other != part)


class TrainingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that fixes a training, bit for bit on one machine. Defaults: the paper's."""

    seed: int = 129000
    """Seeds the initial weights and every batch."""

    steps: int = 5000
    """Optimizer steps, each on fresh questions."""

    stream: Stream = "ours"
    """Who draws the batches: `ours` from (seed, step), or `authors` as the paper's notebook does,
    draw for draw. The notebook's first update has rate 0."""

    batch: int = 64
    """Questions per step."""

    final_batch: int = 0
    """If above 0, the batch grows to this along a line over the second half of the steps."""

    optimizer: Optimizer = "adamw"
    """`adamw` decays weights apart from the gradient; `adam` has no decay."""

    learning_rate: float = 8e-5
    """The highest rate of the schedule."""

    embedding_rate: float = 1.0
    """The rate of W_E and W_pos, as a share of `learning_rate`."""

    betas: tuple[float, float] = (0.9, 0.98)
    """Decay of the running mean of the gradient and of its square."""

    weight_decay: float = 0.1
    """Pull towards zero, on every parameter."""

    warmup: int = 10
    """Steps over which the rate rises from zero."""

    schedule: Schedule = "constant"
    """After the warm-up: `constant`, or down to zero along a line or half a cosine."""

    clip: float = 0.0
    """Largest norm of the gradient; 0 leaves it alone."""

    init_std: float = 0.0
    """Standard deviation of the initial weights; 0 means the paper's 0.8/sqrt(d_model)."""

    embedding_std: float = 0.0
    """The same for W_E and W_pos; 0 means as `init_std`."""

    attention_std: float = 0.0
    """The same for W_Q and W_K; 0 means as `init_std`."""

    head_delay: int = 0
    """Steps between one head's start and the next's, so that heads find different work to do.
    0 starts them together."""

    first_heads: int = 1
    """With `head_delay`, heads that learn from the first step on."""

    sharpness: float = 0.0
    """How much it costs heads of the last layer to read several columns at once (`losses.blur`):
    what they read a little of makes the model hard to prove."""

    sharpness_start: float = 0.25
    """The first part of the steps, without that cost. Over the next half of the steps it rises to
    the whole along a line."""

    coverage: float = 0.0
    """How much it costs that no head of the last layer reads a column which can decide the digit
    of a row (`losses.unread`): what no head reads, no training on questions can mend."""

    enriched_batches: float = PAPER_BATCH_SHARE
    """Share of batches that get extra columns summing to 9 by the paper's rule. In subtraction
    these, and all that are called nines below, are columns of equal digits."""

    enriched_cells: float = PAPER_CELL_SHARE
    """Share of columns made to sum to 9 in such a batch."""

    nines: float = 0.0
    """Our own rule instead, if above 0: each question draws its share of columns that sum to
    9, uniformly between 0 and this."""

    near_nines: float = 0.0
    """With our own rule, each question also draws a share of columns that sum to 8 or 10,
    uniformly between 0 and this, before the nines: what nearly passes a carry on but does not."""

    differences: float = 0.5
    """In a mixed training, the share of questions that are differences."""

    nines_start: float = 0.0
    """With our own rule, the first part of the steps, in which shares are drawn between 0.3
    and 1: carries matter from the start."""

    paper_tail: float = 0.2
    """With our own rule, the last part of the steps, which goes back to the paper's."""

    patterns: tuple[str, ...] = ()
    """Patterns of columns such as KPPG* (kill, propagate, propagate, generate, any), highest
    first: half of each batch is drawn from them, evenly."""

    hard_start: float = 1.0
    """The first part of the steps. After it half of each batch are questions that climb towards
    what the model gets wrong (`data.Climbers`), and take the place of the patterns."""

    start_weights: str = ""
    """Hash of the weights that the training starts from; empty if all weights are drawn."""

    renew: tuple[ModelPart, ...] = ()
    """Parts drawn anew when the training starts from the weights of another run."""

    freeze: tuple[ModelPart, ...] = ()
    """Parts that do not change: no gradient, no weight decay."""

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "first_heads"):
            self._require(getattr(self, name) >= 1, name, "at least 1")
        for name in ("learning_rate", "embedding_rate"):
            self._require(getattr(self, name) > 0, name, "above 0")
        for name in _SHARES:
            self._require(0 <= getattr(self, name) <= 1, name, "between 0 and 1")
        for name in _NOT_NEGATIVE:
            self._require(getattr(self, name) >= 0, name, "at least 0")
        self._require(bool(self.nines) or not self.near_nines, "near_nines", "0 without nines")
        self._require(self.seed <= LARGEST_SEED, "seed", f"at most {LARGEST_SEED}")
        if self.stream == "authors":
            self._require(self.nines == 0, "nines", "0 with the authors' stream")
            self._require(self.final_batch == 0, "final_batch", "0 with the authors' stream")
            fifth = self.enriched_batches == PAPER_BATCH_SHARE
            self._require(fifth, "enriched_batches", "0.2 with the authors' stream")
        decays = self.optimizer == "adamw" or not self.weight_decay
        self._require(decays, "weight_decay", "0 with adam")
        for name in self.__struct_fields__:
            value = getattr(self, name)
            self._require(not isinstance(value, float) or math.isfinite(value), name, "finite")
        self._require(all(0 <= beta < 1 for beta in self.betas), "betas", "from 0 to below 1")
        for name in ("renew", "freeze"):
            known = set(getattr(self, name)) <= set(MODEL_PARTS)
            self._require(known, name, f"among {', '.join(MODEL_PARTS)}")
        known = all(map(is_pattern, self.patterns))
        self._require(known, "patterns", "words of the letters K, P, G and *")
        started = self.start_weights or not self.renew
        self._require(bool(started), "renew", "empty without --start-from RUN")

    def _require(self, holds: bool, name: str, what: str) -> None:
        require(holds, f"{name} must be {what}", getattr(self, name))

    def batch_at(self, step: int) -> int:
        """Questions in the batch of a step, counted from 0."""
        grown = max(0.0, 2 * step / self.steps - 1)
        return round(self.batch + grown * ((self.final_batch or self.batch) - self.batch))

    def questions_in(self, steps: int) -> int:
        """Questions in the first so many steps."""
        return sum(map(self.batch_at, range(steps))) if self.final_batch else steps * self.batch

    @property
    def expected_questions(self) -> float:
        """About how many questions the whole training has, however many steps that is."""
        return self.steps * (3 * self.batch + (self.final_batch or self.batch)) / 4

    def heads_at(self, step: int) -> int | None:
        """How many heads of each layer learn at a step; None for all of them."""
        return self.first_heads + step // self.head_delay if self.head_delay else None

    def sharpness_at(self, step: int) -> float:
        """The cost of reading several columns, at a step."""
        return self.sharpness * min(1.0, max(0.0, 2 * (step / self.steps - self.sharpness_start)))

    def hard_at(self, step: int) -> int:
        """Questions in the batch of a step that climb towards what the model gets wrong."""
        return self.batch_at(step) // 2 if step >= self.hard_start * self.steps else 0

    def rate(self, step: int) -> float:
        """The share of `learning_rate` used at a step, counted from 0."""
        if step < self.warmup:
            return (step + (self.stream == "ours")) / self.warmup
        if self.schedule == "constant":
            return 1.0
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        if self.schedule == "linear":
            return 1.0 - done
        return 0.5 * (1.0 + math.cos(math.pi * done))


class RunConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The whole of `config.json`."""

    format_version: int = FORMAT_VERSION
    package_version: str = __version__
    preset: str | None = None
    """The preset the run started from, before any override."""
    source: str | None = None
    """The name of the file an imported model came from, or of the run a training started from."""
    new_parts: tuple[str, ...] = ()
    """What the model has and the run it started from has not: drawn anew."""
    model: ModelConfig
    training: TrainingConfig | None = None
    """None for an imported model."""

    def __post_init__(self) -> None:
        authors = self.training is not None and self.training.stream == "authors"
        if authors and self.model.operation != "addition":
            raise CallError(f"The authors' stream has sums only. Got {self.model.operation}.")
        patterns = self.training.patterns if self.training is not None else ()
        if any(len(pattern) != self.model.digits for pattern in patterns):
            raise CallError(f"patterns must have {self.model.digits} letters, one per column.")
        there = {part for part in MODEL_PARTS if part != "mlp" or self.model.d_mlp}
        if self.training is not None and there <= set(self.training.freeze):
            raise CallError("freeze must leave a part of the model to train.")


def differences(wanted: RunConfig, found: RunConfig) -> list[str]:
    """The fields in which two configs would train different models, with both values."""
    pairs = {
        f"{part}.{name}": [getattr(getattr(one, part), name, None) for one in (wanted, found)]
        for part, kind in (("model", ModelConfig), ("training", TrainingConfig))
        for name in kind.__struct_fields__
    }
    return [
        f"{name} is {have}, asked for {want}"
        for name, (want, have) in pairs.items()
        if want != have
    ]
