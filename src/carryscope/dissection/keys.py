"""The MLP's 60 keys: is the answer digit looked up by (carry two below, state one below, BA)?

In: an engine and questions. Out: `MlpFinding`.

The paper claims that for each digit the MLP has memorised a table of 2 x 3 x 10 = 60 keys and
did not test it. We swap the whole attention output at an answer row between two questions.
If the key is all that matters, then between questions of the same key nothing changes, and
between questions of different keys the answer follows the key that came in. A table of 60
entries keeps keys apart that have the same answer, a mere adder has no need to: so we ask of
such pairs how many can be told apart in what the MLP is given and in what it writes, and which
neurons respond to which part of the key.

In a model of several layers all of this is about the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from carryscope.core.evidence import Share
from carryscope.dissection.capture import before_mlp, block_of
from carryscope.dissection.engine import CHUNK, Engine
from carryscope.dissection.neurons import Neuron, NeuronCount, study_neurons
from carryscope.dissection.samples import Samples, partners
from carryscope.dissection.separation import alike_pairs, told_apart
from carryscope.model.answer_path import logits_of
from carryscope.model.choice import chosen_tokens
from carryscope.task.columns import Columns
from carryscope.task.operation import Array
from carryscope.task.questions import Questions
from carryscope.task.sampling import with_states

QUESTIONS = 6000
"""Questions, for the 60 keys of each digit: at least 40 for the rarest."""

NINES = 0.2
"""The share of columns that sum to 9: twice what it is by chance, for the rare keys' sake."""

SURE = 0.99
"""The key decides a digit if it does so in more than 99 of 100 swaps, interval included."""

PARTS = ("BA", "state", "carry")
"""The parts of a key: base add, state one below, carry (MC1) two below."""


class KeyTest(msgspec.Struct, frozen=True, kw_only=True):
    """One answer digit and its keys."""

    digit: str
    keys: int
    """Keys the digit has: 60, or fewer for the lowest two and the highest."""
    kept: Share
    """Same key swapped in: answers that stay what they were."""
    follows: Share
    """Another key swapped in, whose digit is another: answers that turn into its digit."""
    stays: Share
    """The same pairs: answers that stay what they were."""
    same_answer: Share
    """Another key swapped in that has the same digit: answers that stay what they were."""
    alike: int
    """Pairs of keys that have the same digit:"""
    apart_in: int
    """how many of them can be told apart in the residual stream before the MLP,"""
    apart_out: int
    """and in what the MLP writes. An adder that keeps only the answer would tell none apart."""
    neurons: NeuronCount
    strongest: list[Neuron]
    without_mlp: dict[str, Share]
    """Answers that are right with the MLP at this row ablated, by how; and with it in place."""
    margin_share: dict[str, float]
    """How much of the true digit's lead over the other digits comes from the stream before this
    layer, from its heads and from its MLP, before the last LayerNorm's scale."""


class MlpFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The MLP and its keys."""

    seed: int
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


def study_mlp(
    engine: Engine, samples: Samples, on_progress: Callable[[int], object] = lambda _: None
) -> MlpFinding:
    """Swap, separate, ablate."""
    generator = samples.generator("keys")
    shares = [(1 - NINES) / 2, NINES, (1 - NINES) / 2]
    states = generator.choice(3, (QUESTIONS, samples.digits), p=shares)
    questions = with_states(generator, states)
    rows = row_states(engine, questions)
    columns = Columns.of(questions)
    tests = []
    for k in reversed(range(samples.digits + 1)):
        with torch.inference_mode():
            row = rows[engine.layout.answer_length - 1 - k]
            tests.append(_test(engine, row, Keys.of(columns, k), generator))
        on_progress(2 * len(questions))
    return MlpFinding(
        seed=samples.seed, questions=len(questions), digits=tests, statement=_statement(tests)
    )


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
        zero = np.zeros(len(columns.sums), dtype=np.int64)
        has_own = digit < columns.digits
        ba = columns.base_add[:, digit].astype(np.int64) if has_own else zero
        state = columns.state[:, digit - 1].astype(np.int64) if digit >= 1 else zero
        carry = columns.make_carry[:, digit - 2].astype(np.int64) if digit >= 2 else zero
        arrives = (state == 2) | ((state == 1) & (carry == 1))
        exists = dict(zip(PARTS, (has_own, digit >= 1, digit >= 2), strict=True))
        parts = dict(zip(PARTS, (ba, state, carry), strict=True))
        kept = {name: parts[name] for name in PARTS if exists[name]}
        return cls(digit, kept, (ba + arrives) % 10)

    @property
    def code(self) -> Int[Array, " batch"]:
        """The whole key as one number."""
        sizes = {"BA": 10, "state": 3, "carry": 2}
        code = np.zeros(len(self.answer), dtype=np.int64)
        for name, part in self.parts.items():
            code = code * sizes[name] + part
        return np.unique(code, return_inverse=True)[1]


def row_states(engine: Engine, questions: Questions) -> list[RowStates]:
    """The answer rows of the last layer, one after the other."""
    answers = engine.layout.answer_length
    heads, middle, mlp, logits = [], [], [], []
    for state in engine.captures(questions):
        last = state.layers[-1]
        heads.append(last.heads.sum(2)[:, -answers:])
        middle.append(last.middle[:, -answers:])
        mlp.append(last.mlp[:, -answers:])
        logits.append(state.logits)
    truth = engine.layout.answer_part(engine.layout.encode(questions))
    predicted = torch.cat(logits).argmax(-1).numpy()
    added, after, written = torch.cat(heads), torch.cat(middle), torch.cat(mlp)
    return [
        RowStates(
            own=after[:, p] - added[:, p],
            heads=added[:, p],
            mlp=written[:, p],
            truth=truth[:, p],
            predicted=predicted[:, p],
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
    alike = keys.answer[other] == keys.answer
    middle = row.own + row.heads
    pairs = alike_pairs(code, keys.answer)
    block = block_of(engine.model, engine.config.layers - 1)
    neurons, strongest = study_neurons(block, middle, keys.parts, code)
    return KeyTest(
        digit=f"A{keys.digit}",
        keys=int(code.max()) + 1,
        kept=Share.of_hits(kept),
        follows=Share.of_hits((said == keys.answer[other])[telling]),
        stays=Share.of_hits((said == row.predicted)[telling]),
        same_answer=Share.of_hits((said == row.predicted)[alike]),
        alike=int(pairs.sum()),
        apart_in=int((told_apart(middle, code) & pairs).sum()),
        apart_out=int((told_apart(row.mlp, code) & pairs).sum()),
        neurons=neurons,
        strongest=strongest,
        without_mlp=_without_mlp(engine, row),
        margin_share=_margin_shares(engine, row),
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


def _without_mlp(engine: Engine, row: RowStates) -> dict[str, Share]:
    middle = row.own + row.heads
    ways = {"whole": row.mlp, "mean": row.mlp.mean(0), "zero": torch.zeros_like(row.mlp[0])}
    return {
        how: Share.of_hits(logits_of(engine.model, middle + mlp).argmax(-1).numpy() == row.truth)
        for how, mlp in ways.items()
    }


def _margin_shares(engine: Engine, row: RowStates) -> dict[str, float]:
    """Each part's share in (true digit's logit) - (mean logit of the other digits)."""
    direction = (engine.model.ln_final.w[:, None] * engine.model.unembed.W_U)[:, :10]
    direction = direction - direction.mean(0)
    chosen = direction.T[torch.from_numpy(row.truth)]
    rest = (direction.sum(1) - chosen) / 9
    parts = {"before": row.own, "heads": row.heads, "MLP": row.mlp}
    leads = {name: float(((chosen - rest) * part).sum(1).mean()) for name, part in parts.items()}
    total = sum(leads.values())
    return {name: round(lead / total, 4) for name, lead in leads.items()}


def _statement(tests: list[KeyTest]) -> str:
    """Whether the key is all that counts, digit by digit, and whether keys are kept apart."""
    whole = [t.digit for t in tests if t.kept.low > SURE and t.follows.low > SURE]
    partly = [t for t in tests if t.digit not in whole]
    told = [f"The key decides {' '.join(whole)}" if whole else "The key decides no digit"]
    told += [
        f"{t.digit} stays in {t.kept.estimate:.1%} with another question of the same key, and "
        f"follows another key in {t.follows.estimate:.1%}"
        for t in partly
    ]
    alike, apart = sum(t.alike for t in tests), sum(t.apart_out for t in tests)
    before = sum(t.apart_in for t in tests)
    return (
        f"{'; '.join(told)}. Of {alike} pairs of keys with the same answer, {apart} are told apart "
        f"by what the MLP writes, {before} by what it is given."
    )
