"""Is a model inside what an algorithm says it is? Exchange all that should not matter, at once.

In: a model, where its heads look, and stated algorithms. Out: a `Scrubbed` for each algorithm.

At the row of answer digit k, in the last layer, three things are put in from other questions:

- *tokens*: every column that the algorithm does not look at. The answer tokens stay.
- *joint*: what all heads add together, from one other question with the same key.
- *heads*: what each head adds, each from another question of its own, which shares only the
  variable that the algorithm reads in the column this head attends to. A head that attends to
  no column, or to one the algorithm has no use for, comes from any question.

If the algorithm is right about the inside, the model's answers, right or wrong, stay what they
were. An algorithm about the wrong columns shows what staying by chance would look like. One that
looks at more than the model uses leaves more alone and is not found out here: that it says too
much shows in its answers (`agreement`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Literal

import msgspec
import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from carryscope.core.evidence import Share
from carryscope.dissection.attention import AttentionFinding
from carryscope.dissection.capture import before_mlp, block_of
from carryscope.dissection.engine import Engine
from carryscope.dissection.samples import Samples, partners
from carryscope.model.choice import answer_tokens, chosen_tokens
from carryscope.task.algorithms import exact_sum
from carryscope.task.columns import Columns
from carryscope.task.operation import Array
from carryscope.task.questions import Questions
from carryscope.task.sampling import with_states
from carryscope.verification.algorithms import Algorithm, numbered

POOL = 2000
"""Questions to take from, with every column in each state equally often: cascades are common,
and 33 questions share each of Algorithm 1's 60 keys."""

BASES = 800
"""How many of them are scrubbed, at each answer digit."""

CHUNK = 512
"""Questions per forward pass."""

Way = Literal["tokens", "joint", "heads"]


class Scrub(msgspec.Struct, frozen=True, kw_only=True):
    """Answers that stay what they were, of those that could have changed."""

    overall: Share
    """All answer digits together."""
    digits: dict[str, Share]
    """A digit of which nothing was left to exchange has none behind it."""


class Scrubbed(msgspec.Struct, frozen=True, kw_only=True):
    """One algorithm as a claim about the inside of the model."""

    name: str
    control: bool
    """Wrong on purpose."""
    tokens: Scrub
    joint: Scrub
    heads: Scrub | None
    """Null if some of its variables belong to no single column, and so to no head."""


def study_inside(
    engine: Engine,
    samples: Samples,
    attention: AttentionFinding,
    algorithms: Sequence[Algorithm],
    on_progress: Callable[[int], object] = lambda _: None,
) -> list[Scrubbed]:
    """Scrub the model by every algorithm."""
    scrubber = _Scrubber(engine, samples, attention, on_progress)
    return [scrubber.by(algorithm) for algorithm in algorithms]


class _Scrubber:
    """The last layer at every answer row of many questions, and what was exchanged in it so far.

    Algorithms often claim the same of a digit, so each exchange is made once and kept.
    """

    def __init__(
        self,
        engine: Engine,
        samples: Samples,
        attention: AttentionFinding,
        on_progress: Callable[[int], object],
    ) -> None:
        self._engine, self._layout, self._samples = engine, engine.layout, samples
        self._on_progress = on_progress
        generator = samples.generator("scrubbing")
        states = generator.integers(0, 3, (POOL, samples.digits))
        self._questions = with_states(generator, states)
        self._columns = Columns.of(self._questions)
        self._own, self._heads, self._said = self._capture()
        last = engine.config.layers - 1
        self._attended = {
            (r.answer, r.head): r.column for r in attention.readings if r.layer == last
        }
        self._made: dict[Hashable, Share] = {}

    def _capture(self) -> tuple[Tensor, Tensor, Int[Array, "batch digit"]]:
        """What attention has not touched, what each head adds, what is said: units first."""
        own, heads, said = [], [], []
        for state in self._engine.captures(self._questions):
            last, digits = state.layers[-1], slice(-1 - self._samples.digits, None)
            own.append((last.middle - last.heads.sum(2))[:, digits].flip(1))
            heads.append(last.heads[:, digits].flip(1))
            said.append(state.logits[:, digits].argmax(-1).flip(1))
            self._on_progress(len(state.logits))
        return torch.cat(own), torch.cat(heads), torch.cat(said).numpy()

    def by(self, algorithm: Algorithm) -> Scrubbed:
        """One algorithm, all three ways."""
        assert algorithm.reads is not None
        reads = algorithm.reads
        variables = dict(algorithm.variables(self._columns))
        placed = set(variables) <= set(algorithm.offsets)
        digits = range(self._samples.digits + 1)
        return Scrubbed(
            name=algorithm.name,
            control=algorithm.control,
            tokens=_scrub([self._tokens(k, reads[k]) for k in digits]),
            joint=_scrub(
                [self._exchanged("joint", k, [algorithm.keys(self._columns, k)]) for k in digits]
            ),
            heads=_scrub(
                [self._exchanged("heads", k, self._claims(k, variables, algorithm)) for k in digits]
            )
            if placed
            else None,
        )

    def _claims(
        self, k: int, variables: dict[str, Array], algorithm: Algorithm
    ) -> list[Int[Array, " batch"]]:
        """For each head, a number for what its output must have in common with the base's."""
        nothing = np.zeros(POOL, dtype=np.int64)
        claims = []
        for head in range(self._engine.config.heads):
            column = self._attended[f"A{k}", head]
            mine = [
                values[:, k]
                for name, values in variables.items()
                if column is not None and algorithm.offsets[name] == k - column
            ]
            claims.append(numbered([nothing, *mine]))
        return claims

    def _exchanged(self, way: Way, k: int, claims: list[Int[Array, " batch"]]) -> Share:
        """Take what the heads add from other questions: with one claim together, else each."""
        known = (way, k, *(claim.tobytes() for claim in claims))
        if known not in self._made:
            generator = self._samples.generator(f"{way} A{k}")
            others = [partners(claim, generator) for claim in claims]
            own = np.arange(POOL)
            paired = np.logical_and.reduce([partner != own for partner in others])
            bases = np.flatnonzero(paired)[:BASES]
            self._made[known] = self._kept(k, bases, [partner[bases] for partner in others])
        return self._made[known]

    @torch.inference_mode()
    def _kept(self, k: int, bases: Array, sources: list[Array]) -> Share:
        """How many of the answers at one digit stay."""
        at_row = self._heads[:, k]
        if len(sources) == 1:
            added = at_row[sources[0]].sum(1)
        else:
            parts = [at_row[source, head] for head, source in enumerate(sources)]
            added = torch.stack(parts).sum(0)
        middle = self._own[bases, k] + added
        block = block_of(self._engine.model, self._engine.config.layers - 1)
        said = chosen_tokens(self._engine.model, before_mlp(block, middle))
        self._on_progress(len(bases))
        return Share.of_hits(said.numpy() == self._said[bases, k])

    def _tokens(self, k: int, read: Bool[Array, " column"]) -> Share:
        """Resample every column that is not read; nothing is measured if all are."""
        known = ("tokens", k, read.tobytes())
        if known not in self._made:
            self._made[known] = Share.measured(0, 0) if read.all() else self._resampled(k, read)
        return self._made[known]

    @torch.inference_mode()
    def _resampled(self, k: int, read: Bool[Array, " column"]) -> Share:
        other = self._samples.generator(f"tokens A{k}").permutation(POOL - BASES)[:BASES] + BASES
        base, source = self._questions[:BASES], self._questions[other]
        hybrid = Questions(
            np.where(read, base.first, source.first), np.where(read, base.second, source.second)
        )
        tokens = torch.from_numpy(self._layout.encode_answer(hybrid, exact_sum(base)))
        said = [
            answer_tokens(self._engine.model, tokens[start : start + CHUNK])[:, -1 - k]
            for start in range(0, BASES, CHUNK)
        ]
        self._on_progress(BASES)
        return Share.of_hits(torch.cat(said).numpy() == self._said[:BASES, k])


def _scrub(shares: list[Share]) -> Scrub:
    """Digits, given from A0 up, as one record."""
    overall = Share.measured(sum(s.count for s in shares), sum(s.of for s in shares))
    by_digit = {f"A{k}": shares[k] for k in reversed(range(len(shares)))}
    return Scrub(overall=overall, digits=by_digit)
