"""Does a model work inside as an algorithm says? Resample everything it calls irrelevant.

In: a model, what its heads attend to, and algorithms. Out: a `Scrubbed` for each algorithm.

At the row of answer digit k, in the last layer, values of other questions replace the model's own
in three ways:

- *tokens*: every column that the algorithm does not read. The answer tokens stay.
- *joint*: the sum of all heads' outputs, from one other question with the same key.
- *heads*: each head's output, each from another question. It shares only the variable that the
  algorithm reads in the column this head attends to. If the head attends to no column, or to one
  that the algorithm does not read, any question will do.

If the algorithm describes the inside, the model's answers stay the same, right or wrong. The
control, an algorithm about the wrong columns, shows how many stay by chance. An algorithm that
reads more than the model uses is not detected here, but in its answers (`agreement`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
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
from carryscope.task.operation import Array, State
from carryscope.task.sampling import with_states
from carryscope.verification.algorithms import Algorithm, numbered

POOL = 2000
"""Questions to resample from. Every column has each state equally often, so cascades are common
and 33 questions share each of Algorithm 1's 60 keys."""

BASES = 800
"""How many of them are tested at each answer digit."""

CHUNK = 512
"""Questions per forward pass."""

Way = Literal["tokens", "joint", "heads"]


class Scrub(msgspec.Struct, frozen=True, kw_only=True):
    """The share of answers that stay the same."""

    overall: Share
    """All answer digits together."""
    digits: dict[str, Share]
    """A digit with nothing to resample has a share of no questions."""


class Scrubbed(msgspec.Struct, frozen=True, kw_only=True):
    """One algorithm as a claim about the inside of the model."""

    name: str
    control: bool
    """Wrong on purpose."""
    tokens: Scrub
    joint: Scrub
    heads: Scrub | None
    """Null if one of its variables belongs to no single column, and so to no head."""


class Scrubber:
    """The last layer at every answer row of many questions, and what was resampled so far.

    Algorithms often claim the same of a digit, so each result is kept.
    """

    def __init__(self, engine: Engine, samples: Samples, attention: AttentionFinding) -> None:
        self._engine, self._samples = engine, samples
        generator = samples.generator("scrubbing")
        states = generator.integers(0, len(State), (POOL, samples.digits))
        self._questions = with_states(generator, states)
        self._columns = Columns.of(self._questions)
        self._own, self._heads, self._said = self._capture()
        last = engine.config.layers - 1
        self._attended = {
            (r.answer, r.head): r.column for r in attention.readings if r.layer == last
        }
        self._made: dict[Hashable, Share] = {}

    def _capture(self) -> tuple[Tensor, Tensor, Int[Array, "batch digit"]]:
        """The stream without the heads, each head's output, and the answers: units first."""
        own, heads, said = [], [], []
        for state in self._engine.captures(self._questions):
            last, digits = state.layers[-1], slice(-1 - self._samples.digits, None)
            own.append((last.middle - last.heads.sum(2))[:, digits].flip(1))
            heads.append(last.heads[:, digits].flip(1))
            said.append(state.logits[:, digits].argmax(-1).flip(1))
        return torch.cat(own), torch.cat(heads), torch.cat(said).numpy()

    def by(self, algorithm: Algorithm) -> Scrubbed:
        """One algorithm, in all three ways."""
        assert algorithm.reads is not None
        reads, digits = algorithm.reads, range(self._samples.digits + 1)
        variables = dict(algorithm.variables(self._columns))
        keys = [[algorithm.keys(self._columns, k)] for k in digits]
        heads = None
        if set(variables) <= set(algorithm.offsets):
            claims = [self._claims(k, variables, algorithm) for k in digits]
            heads = _scrub([self._exchanged("heads", k, claims[k]) for k in digits])
        return Scrubbed(
            name=algorithm.name,
            control=algorithm.control,
            tokens=_scrub([self._tokens(k, reads[k]) for k in digits]),
            joint=_scrub([self._exchanged("joint", k, keys[k]) for k in digits]),
            heads=heads,
        )

    def _claims(
        self, k: int, variables: dict[str, Array], algorithm: Algorithm
    ) -> list[Int[Array, " batch"]]:
        """For each head, a number: questions that share it may exchange the head's output."""
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
        """Take head outputs from other questions: all together if there is one claim, else each."""
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
        """The share of answers at one digit that stay."""
        at_row = self._heads[:, k]
        if len(sources) == 1:
            added = at_row[sources[0]].sum(1)
        else:
            parts = [at_row[source, head] for head, source in enumerate(sources)]
            added = torch.stack(parts).sum(0)
        middle = self._own[bases, k] + added
        block = block_of(self._engine.model, self._engine.config.layers - 1)
        said = chosen_tokens(self._engine.model, before_mlp(block, middle))
        return Share.of_hits(said.numpy() == self._said[bases, k])

    def _tokens(self, k: int, read: Bool[Array, " column"]) -> Share:
        """Resample every column that is not read, if there is one."""
        known = ("tokens", k, read.tobytes())
        if known not in self._made:
            self._made[known] = Share.measured(0, 0) if read.all() else self._resampled(k, read)
        return self._made[known]

    @torch.inference_mode()
    def _resampled(self, k: int, read: Bool[Array, " column"]) -> Share:
        other = self._samples.generator(f"tokens A{k}").permutation(POOL - BASES)[:BASES] + BASES
        base, source = self._questions[:BASES], self._questions[other]
        hybrid = replace(
            base,
            first=np.where(read, base.first, source.first),
            second=np.where(read, base.second, source.second),
        )
        tokens = torch.from_numpy(self._engine.layout.encode_answer(hybrid, exact_sum(base)))
        said = [
            answer_tokens(self._engine.model, tokens[start : start + CHUNK])[:, -1 - k]
            for start in range(0, BASES, CHUNK)
        ]
        return Share.of_hits(torch.cat(said).numpy() == self._said[:BASES, k])


def _scrub(shares: list[Share]) -> Scrub:
    """One record from the shares of the digits, A0 first."""
    overall = Share.measured(sum(s.count for s in shares), sum(s.of for s in shares))
    by_digit = {f"A{k}": shares[k] for k in reversed(range(len(shares)))}
    return Scrub(overall=overall, digits=by_digit)
