"""The MLP's 60 keys: is the answer digit looked up by (carry two below, state one below, BA)?

In: an engine and questions. Out: `MlpFinding`.

The paper claims that for each digit the MLP has memorised a table of 2 x 3 x 10 = 60 keys. It
did not test this. We swap the whole attention output at an answer row between two questions.
If only the key matters, a swap between questions of the same key changes nothing, and with
another key the answer follows the key that came in.

A table of 60 entries keeps keys separate that have the same answer. An adder need not. So we
count how many such pairs are separable in what the MLP reads and in what it writes, and which
neurons respond to which part of the key. With several layers all of this is about the last one.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from carryscope.core.evidence import Share
from carryscope.core.progress import Advance, unheard
from carryscope.core.words import spanned
from carryscope.dissection.capture import before_mlp, block_of
from carryscope.dissection.engine import CHUNK, Engine
from carryscope.dissection.neurons import NeuronCount, count_neurons
from carryscope.dissection.samples import Samples, partners
from carryscope.model.answer_path import logits_of
from carryscope.model.choice import chosen_tokens
from carryscope.task.columns import Columns
from carryscope.task.operation import BASE, Array, State
from carryscope.task.questions import Questions
from carryscope.task.sampling import with_states

KEY_QUESTIONS = 6000
"""Questions, for the 60 keys of each digit: at least 40 for the rarest."""

PROPAGATING = 0.2
"""The share of columns that propagate: twice as many as by chance, so that rare keys occur."""

SURE = 0.99
"""The key decides a digit if it does so in more than 99 of 100 swaps, interval included."""

SEPARABLE = 0.9
"""Two keys are separable if nine in ten of their vectors lie nearer to their own centroid."""

ROUNDING = 1e-4
"""A vector of length 1 counts as nearer only by more than this: float32 is good to 1e-6."""

KEY_PARTS = {"BA": BASE, "state": len(State), "carry": 2}
"""The parts of a key and their sizes: base add, state one below, carry (MC1) two below."""


class KeyTest(msgspec.Struct, frozen=True, kw_only=True):
    """One answer digit and its keys."""

    digit: str
    keys: int
    """Keys the digit has: 60, or fewer for the lowest two and the highest."""
    kept: Share
    """Same key swapped in: answers that stay."""
    follows: Share
    """Another key swapped in, with another digit: answers that turn into its digit."""
    alike: int
    """Pairs of keys that have the same digit,"""
    apart_in: int
    """how many of them are separable in the residual stream before the MLP,"""
    apart_out: int
    """and in what the MLP writes. An adder that keeps only the answer would separate none."""
    neurons: NeuronCount
    without_mlp: dict[str, Share]
    """Right answers with the MLP at this row ablated, by how; and with it in place."""

    @property
    def decided(self) -> bool:
        """Whether the key alone decides the digit."""
        return self.kept.low > SURE and self.follows.low > SURE


class MlpFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The MLP and its keys."""

    questions: int
    digits: list[KeyTest]
    statement: str


@dataclass(frozen=True, eq=False)
class RowStates:
    """One answer row of many questions, in the last layer."""

    own: Float[Tensor, "batch d_model"]
    """The residual stream without what the heads of this layer add."""
    heads: Float[Tensor, "batch d_model"]
    """What all heads add, together."""
    mlp: Float[Tensor, "batch d_model"]
    truth: Int[Array, " batch"]
    predicted: Int[Array, " batch"]

    @property
    def middle(self) -> Float[Tensor, "batch d_model"]:
        """What the MLP reads."""
        return self.own + self.heads


@dataclass(frozen=True, eq=False)
class Keys:
    """The key of one answer digit in each question."""

    digit: int
    parts: dict[str, Int[Array, " batch"]]
    """The parts that exist for this digit, each counted from 0."""
    answer: Int[Array, " batch"]
    """The digit that the paper's table has for the key."""

    @classmethod
    def of(cls, columns: Columns, digit: int) -> Keys:
        """The keys of one answer digit."""
        parts, arrives = {}, np.zeros(len(columns.sums), dtype=bool)
        if digit < columns.digits:
            parts["BA"] = columns.base_add[:, digit].astype(np.int64)
        if digit >= 1:
            parts["state"] = columns.state[:, digit - 1].astype(np.int64)
            arrives = parts["state"] == State.GENERATE
        if digit >= 2:
            parts["carry"] = columns.make_carry[:, digit - 2].astype(np.int64)
            arrives |= (parts["state"] == State.PROPAGATE) & (parts["carry"] == 1)
        return cls(digit, parts, columns.answer_digit(digit, arrives).astype(np.int64))

    @property
    def code(self) -> Int[Array, " batch"]:
        """The whole key as one number."""
        code = np.zeros(len(self.answer), dtype=np.int64)
        for name, part in self.parts.items():
            code = code * KEY_PARTS[name] + part
        return np.unique(code, return_inverse=True)[1]


def study_mlp(engine: Engine, samples: Samples, advance: Advance = unheard) -> MlpFinding:
    """Swap, separate and ablate."""
    generator = samples.generator("keys")
    shares = [(1 - PROPAGATING) / 2, PROPAGATING, (1 - PROPAGATING) / 2]
    states = generator.choice(len(State), (KEY_QUESTIONS, samples.digits), p=shares)
    questions = with_states(generator, states)
    rows, columns = row_states(engine, questions), Columns.of(questions)
    tests = []
    for k in reversed(range(samples.digits + 1)):
        with torch.inference_mode():
            tests.append(_test(engine, rows[-1 - k], Keys.of(columns, k), generator))
        advance(2 * len(questions))
    return MlpFinding(questions=len(questions), digits=tests, statement=_statement(tests))


def row_states(engine: Engine, questions: Questions) -> list[RowStates]:
    """The answer rows of the last layer, one after the other."""
    answers = engine.layout.answer_length
    chunks = []
    for state in engine.captures(questions):
        last, said = state.layers[-1], state.logits.argmax(-1)
        heads = last.heads.sum(2)[:, -answers:]
        chunks.append((heads, last.middle[:, -answers:], last.mlp[:, -answers:], said))
    heads, middle, mlp, said = (torch.cat(parts) for parts in zip(*chunks, strict=True))
    truth = engine.layout.answer_part(engine.layout.encode(questions))
    return [
        RowStates(
            own=middle[:, p] - heads[:, p],
            heads=heads[:, p],
            mlp=mlp[:, p],
            truth=truth[:, p],
            predicted=said[:, p].numpy(),
        )
        for p in range(answers)
    ]


def _test(engine: Engine, row: RowStates, keys: Keys, generator: np.random.Generator) -> KeyTest:
    code = keys.code
    same, other = partners(code, generator), _strangers(code, generator)
    alone = same == np.arange(len(same))
    kept = (_swapped(engine, row, same) == row.predicted)[~alone]
    said = _swapped(engine, row, other)
    telling = keys.answer[other] != row.predicted
    pairs = _alike_pairs(code, keys.answer)
    block = block_of(engine.model, engine.config.layers - 1)
    return KeyTest(
        digit=f"A{keys.digit}",
        keys=int(code.max()) + 1,
        kept=Share.of_hits(kept),
        follows=Share.of_hits((said == keys.answer[other])[telling]),
        alike=int(pairs.sum()),
        apart_in=int((_separable(row.middle, code) & pairs).sum()),
        apart_out=int((_separable(row.mlp, code) & pairs).sum()),
        neurons=count_neurons(block, row.middle, keys.parts, code),
        without_mlp=_without_mlp(engine, row),
    )


def _strangers(code: Int[Array, " batch"], generator: np.random.Generator) -> Array:
    """For each question another one with a different key."""
    other = generator.permutation(len(code))
    while (clash := np.flatnonzero(code[other] == code)).size:
        other[clash] = generator.integers(0, len(code), len(clash))
    return other


def _swapped(engine: Engine, row: RowStates, source: Array) -> Int[Array, " batch"]:
    """The answers with the whole attention output taken from other questions."""
    block = block_of(engine.model, engine.config.layers - 1)
    answers = []
    for start in range(0, len(source), 8 * CHUNK):
        part = slice(start, start + 8 * CHUNK)
        middle = row.own[part] + row.heads[source[part]]
        answers.append(chosen_tokens(engine.model, before_mlp(block, middle)))
    return torch.cat(answers).numpy()


def _separable(
    vectors: Float[Tensor, "batch width"], key: Int[Array, " batch"]
) -> Bool[Array, "key key"]:
    """For every two keys, whether the nearer of their centroids decides which is which.

    Centroids come from one half of the vectors, the decisions from the other. It is a lower bound:
    a reader that knows more than centroids may separate more. Means and lengths do not count,
    because LayerNorm removes them.
    """
    units = F.normalize(vectors - vectors.mean(1, keepdim=True), dim=1)
    member = F.one_hot(torch.from_numpy(key)).to(units.dtype)
    half = torch.arange(len(key)) % 2 == 0
    centroids = member[half].T @ units[half] / member[half].sum(0).clamp(min=1)[:, None]
    nearness = units[~half] @ centroids.T - centroids.square().sum(1) / 2
    own = nearness.gather(1, torch.from_numpy(key)[~half][:, None])
    wins = member[~half].T @ (own > nearness + ROUNDING).to(units.dtype)
    share = (wins / member[~half].sum(0).clamp(min=1)[:, None]).numpy()
    apart: Array = (share + share.T) / 2 >= SEPARABLE
    return apart


def _alike_pairs(key: Int[Array, " batch"], answer: Int[Array, " batch"]) -> Bool[Array, "key key"]:
    """Which pairs of different keys have the same answer, each pair once."""
    _, first = np.unique(key, return_index=True)
    answers = answer[first]
    alike: Array = np.triu(answers[:, None] == answers, k=1)
    return alike


def _without_mlp(engine: Engine, row: RowStates) -> dict[str, Share]:
    ways = {"whole": row.mlp, "mean": row.mlp.mean(0), "zero": torch.zeros_like(row.mlp[0])}
    said = {how: logits_of(engine.model, row.middle + mlp).argmax(-1) for how, mlp in ways.items()}
    return {how: Share.of_hits(tokens.numpy() == row.truth) for how, tokens in said.items()}


def _statement(tests: list[KeyTest]) -> str:
    """Whether the key decides the digits, and whether keys are kept separate."""
    decided = [test.digit for test in tests if test.decided]
    said = [f"The key decides {spanned(decided) if decided else 'no digit'}."]
    said += [
        f"{test.digit} stays in {test.kept.estimate:.1%} of swaps with the same key and follows "
        f"another key in {test.follows.estimate:.1%}."
        for test in tests
        if not test.decided
    ]
    alike, written, read = (
        sum(getattr(test, name) for test in tests) for name in ("alike", "apart_out", "apart_in")
    )
    return (
        f"{' '.join(said)} Of {alike} pairs of keys with the same answer, {written} are separable "
        f"in what the MLP writes, {read} in what it reads."
    )
