"""The keys of the MLP: is the answer digit looked up by what the heads read?

In: an engine, questions, and what the heads read. Out: `MlpFinding`; and `AnswerRows`, which gives
the answers if the output of heads comes from other questions.

The key of a digit is the base sum of its own column, the state of each column below that its row
reads, and of the lowest only whether it makes a carry: 10 * 3^(r-1) * 2 keys for r columns. With
r = 2 these are the paper's 60 keys. To add exactly, A_k needs all columns below it:
10 * 3^(k-1) * 2 keys.

We swap the whole attention output at an answer row between two questions. If the key decides,
a swap between questions of the same key changes nothing, and with another key the digit becomes
that key's. A key can only decide where the look-ahead ends within it, so swaps are counted by the
look-ahead of the question that comes in.

A table keeps keys separate that have the same answer. An adder need not. So we count how many
such pairs are separable in what the MLP reads and in what it writes. With several layers all of
this is about the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from carryscope.dissection.attention import AttentionFinding
from carryscope.dissection.capture import after_mlp, before_mlp, block_of
from carryscope.dissection.engine import Engine
from carryscope.dissection.samples import Samples, numbered, partners
from carryscope.model.choice import chosen_tokens
from carryscope.model.transformer import Block
from carryscope.task.columns import ALGORITHM_1_REACH, Columns
from carryscope.task.operation import ADD, BASE, Array, Operation, State
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


KEY_QUESTIONS = 6000
"""Questions. Every column has each state equally often: 100 for each of 60 keys, 11 of 540."""

MOST_KEYS = 600
"""A digit with more keys is tested with fewer columns: there would be too few questions of each."""

SURE = 0.99
"""The key decides a digit if it does so in more than 99 of 100 swaps, interval included."""

SEPARABLE = 0.9
"""Two keys are separable if nine in ten of their vectors lie nearer to their own centroid."""

ROUNDING = 1e-4
"""A vector of length 1 counts as nearer only by more than this: float32 is good to 1e-6."""


class KeyTest(msgspec.Struct, frozen=True, kw_only=True):
    """One answer digit and its keys."""

    digit: str
    reach: int
    """Columns below its own that are in the key: those that its row reads, at least the paper's
    two, and no more than there are."""
    keys: int
    """How many keys that makes: 60 for two columns."""
    needed: int
    """Keys that exact addition must tell apart: all columns below are read."""
    kept: Share
    """Same key swapped in, look-ahead within it: answers that stay."""
    follows: Share
    """Another key swapped in, with another digit, look-ahead within it: answers that become its
    digit."""
    beyond: Share
    """The same where the look-ahead is longer than the key: answers that become the exact digit."""
    alike: int
    """Pairs of keys that have the same digit,"""
    apart_in: int
    """how many of them are separable in the residual stream before the MLP,"""
    apart_out: int
    """and in what the MLP writes. An adder that keeps only the answer would separate none."""

    @property
    def decided(self) -> bool:
        """Whether the key alone decides the digit."""
        return self.kept.low > SURE and self.follows.low > SURE


class MlpFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The MLP and its keys."""

    questions: int
    digits: list[KeyTest]
    statement: str


def study_mlp(
    engine: Engine, samples: Samples, attention: AttentionFinding, advance: Advance = unheard
) -> MlpFinding:
    """Swap and separate."""
    generator = samples.generator("keys")
    questions = samples.any_states(generator, KEY_QUESTIONS)
    rows, columns = AnswerRows.of(engine, questions, together=True), Columns.of(questions)
    tests = []
    for k in reversed(range(samples.digits + 1)):
        with torch.inference_mode():
            reach = _reach(attention, k, samples)
            tests.append(_test(rows, columns, k, reach, generator))
        advance(2 * len(questions))
    return MlpFinding(
        questions=len(questions), digits=tests, statement=_statement(tests, samples.operation)
    )


def _reach(attention: AttentionFinding, digit: int, samples: Samples) -> int:
    """The columns below a digit that are read, as many as can be tested."""
    reach = min(max(attention.reach(digit), ALGORITHM_1_REACH), digit)
    while key_count(digit, samples.digits, reach, samples.operation) > MOST_KEYS:
        reach -= 1
    return reach


def key_count(digit: int, digits: int, reach: int, operation: Operation = ADD) -> int:
    """How many keys a digit has that reads so many columns below its own.

    In subtraction each sign has its own keys, in a mixture each operation.
    """
    own = BASE if digit < digits else 1
    readings = sum(1 + one.signed for one in operation.each_part)
    return readings * own * (len(State) ** (reach - 1) * 2 if reach else 1)


def _test(
    rows: AnswerRows, columns: Columns, digit: int, reach: int, generator: np.random.Generator
) -> KeyTest:
    code, answer = _keys(columns, digit, reach)
    said, everyone = rows.said[:, digit], np.arange(len(code))
    same, other = partners(code, generator), _strangers(code, generator)
    within = (columns.look_ahead[:, digit] < reach) | (reach >= digit)
    paired = (same != everyone) & within & within[same]
    kept = rows.answers(digit, everyone[paired], [same[paired]]) == said[paired]
    exact = columns.answer_digit(digit, columns.carry_in[:, digit])[other]
    follows = rows.answers(digit, everyone, [other]) == exact
    telling = exact != said
    of_key = answer[np.unique(code, return_index=True)[1]]
    pairs, middle = np.triu(of_key[:, None] == of_key, k=1), rows.middle(digit)
    written = after_mlp(rows.block, middle) - middle
    return KeyTest(
        digit=f"A{digit}",
        reach=reach,
        keys=key_count(digit, columns.digits, reach, columns.operation),
        needed=key_count(digit, columns.digits, digit, columns.operation),
        kept=Share.of_hits(kept),
        follows=Share.of_hits(follows[telling & within[other]]),
        beyond=Share.of_hits(follows[telling & ~within[other]]),
        alike=int(pairs.sum()),
        apart_in=int((_separable(middle, code) & pairs).sum()),
        apart_out=int((_separable(written, code) & pairs).sum()),
    )


def _keys(
    columns: Columns, digit: int, reach: int
) -> tuple[Int[Array, " batch"], Int[Array, " batch"]]:
    """The key of a digit in each question, as a number, and the digit that it decides.

    Where the look-ahead is longer than the key, that is the digit without a carry.
    """
    own = [columns.base_add[:, digit]] if digit < columns.digits else []
    states = [columns.state[:, digit - below] for below in range(1, reach)]
    lowest = [columns.make_carry[:, digit - reach]] if reach else []
    arrives = columns.carry_in[:, digit] & (columns.look_ahead[:, digit] < reach)
    return numbered([columns.reading, *own, *states, *lowest]), columns.answer_digit(digit, arrives)


def _strangers(code: Int[Array, " batch"], generator: np.random.Generator) -> Array:
    """For each question another one with a different key."""
    other = generator.permutation(len(code))
    while (clash := np.flatnonzero(code[other] == code)).size:
        other[clash] = generator.integers(0, len(code), len(clash))
    return other


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


def _statement(tests: list[KeyTest], operation: Operation) -> str:
    """Whether the key decides the digits, and whether keys are kept separate."""
    decided = [test for test in tests if test.decided]
    digits = spanned([test.digit for test in decided]) if decided else "no digit"
    keys, needed = sum(test.keys for test in decided), sum(test.needed for test in tests)
    alike, written = (sum(getattr(test, name) for test in tests) for name in ("alike", "apart_out"))
    return (
        f"The columns that the heads read decide {digits}: {keys:,} keys in all. Exact "
        f"{operation.name} needs {needed:,}. Of {alike:,} pairs of keys with the same answer, "
        f"{written:,} are separable in what the MLP writes."
    )
