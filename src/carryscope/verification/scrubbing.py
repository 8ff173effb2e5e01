"""Does a model work inside as an algorithm says? Resample everything it calls irrelevant.

In: a model, what its heads attend to, and algorithms. Out: a `Scrubbed` for each algorithm.

At the row of answer digit k, in the last layer, values of other questions replace the model's own
in two ways:

- *joint*: the sum of all heads' outputs, from one other question with the same key.
- *heads*: each head's output, each from another question. It shares only the variable that the
  algorithm reads in the column this head attends to. If the head attends to no column, or to one
  that the algorithm does not read, any question will do.

In subtraction the other question has the same sign, in a mixed model also the same operation.

If the algorithm describes the inside, the model's answers stay the same, right or wrong. The
control, an algorithm about the wrong columns, shows how many stay by chance. An algorithm that
reads more than the model uses is not detected here, but in its answers (`agreement`).
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
from jaxtyping import Int

from carryscope.core.evidence import Share
from carryscope.dissection.attention import AttentionFinding
from carryscope.dissection.engine import Engine
from carryscope.dissection.keys import AnswerRows
from carryscope.dissection.samples import Samples, numbered, partners
from carryscope.task.columns import Columns
from carryscope.task.operation import Array
from carryscope.verification.algorithms import Algorithm

POOL = 2000
"""Questions to resample from. Every column has each state equally often, so cascades are common
and 33 questions share each of Algorithm 1's 60 keys."""

BASES = 800
"""How many of them are tested at each answer digit."""

Way = Literal["joint", "heads"]


class Scrubbed(msgspec.Struct, frozen=True, kw_only=True):
    """One algorithm as a claim about the inside of the model: answer digits that stay the same."""

    name: str
    control: bool
    """Wrong on purpose."""
    joint: Share
    heads: Share | None
    """Null if one of its variables belongs to no single column, and so to no head."""


class Scrubber:
    """Resamples the answer rows of many questions."""

    def __init__(self, engine: Engine, samples: Samples, attention: AttentionFinding) -> None:
        self._samples = samples
        questions = samples.any_states(samples.generator("scrubbing"), POOL)
        self._columns = Columns.of(questions)
        self._rows, self._heads = AnswerRows.of(engine, questions), engine.config.heads
        last = engine.config.layers - 1
        readings = [reading for reading in attention.readings if reading.layer == last]
        self._attended = {(one.answer, one.head): one.column for one in readings}

    def by(self, algorithm: Algorithm) -> Scrubbed:
        """One algorithm, in both ways."""
        digits, by_head = range(self._samples.digits + 1), None
        variables = dict((algorithm.by_head or algorithm.variables)(self._columns))
        if set(variables) <= set(algorithm.offsets):
            claims = [self._claims(k, variables, algorithm) for k in digits]
            by_head = _all([self._exchanged("heads", k, claims[k]) for k in digits])
        keys = [algorithm.keys(self._columns, k) for k in digits]
        return Scrubbed(
            name=algorithm.name,
            control=algorithm.control,
            joint=_all([self._exchanged("joint", k, [keys[k]]) for k in digits]),
            heads=by_head,
        )

    def _claims(
        self, k: int, variables: dict[str, Array], algorithm: Algorithm
    ) -> list[Int[Array, " batch"]]:
        """For each head, a number: questions that share it may exchange the head's output."""
        claims = []
        for head in range(self._heads):
            column = self._attended[f"A{k}", head]
            mine = [
                values[:, k]
                for name, values in variables.items()
                if column is not None and algorithm.offsets[name] == k - column
            ]
            claims.append(numbered([self._columns.reading, *mine]))
        return claims

    def _exchanged(self, way: Way, k: int, claims: list[Int[Array, " batch"]]) -> Share:
        """Take head outputs from other questions: all from one, or each from its own."""
        generator = self._samples.generator(f"{way} A{k}")
        drawn = [partners(claim, generator) for claim in claims]
        paired = np.logical_and.reduce([partner != np.arange(POOL) for partner in drawn])
        bases = np.flatnonzero(paired)[:BASES]
        sources = [partner[bases] for partner in drawn] * (self._heads // len(drawn))
        said = self._rows.answers(k, bases, sources)
        return Share.of_hits(said == self._rows.said[bases, k])


def _all(shares: list[Share]) -> Share:
    """All digits together."""
    return Share.measured(sum(s.count for s in shares), sum(s.of for s in shares))
