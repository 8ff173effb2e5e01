"""How the first digits are computed, which the paper leaves open: A_n, and the one after it.

In: an engine and questions. Out: `FirstDigitsFinding`.

A_n-1 could learn of an arriving carry from two sources: the columns below, as for every digit,
and the token A_n just before it. If the highest column sums to 9, A_n *is* that carry. For
40000+59999 the model reads "=0" and may conclude that no carry arrives. So we change the two
sources separately, in pairs of questions that differ in one carry made at a known depth, and
see whether the digit follows.

The result is a rule: how far down the digit looks, and whether it reads the token. We test the
rule on fresh questions.
"""

from __future__ import annotations

from itertools import product
from typing import Literal

import msgspec
import numpy as np
import torch
from jaxtyping import Bool, Int

from carryscope.core.evidence import Share
from carryscope.core.progress import Advance, unheard
from carryscope.core.words import listed
from carryscope.dissection.engine import CHUNK, Engine
from carryscope.dissection.samples import Samples
from carryscope.model.choice import answer_tokens
from carryscope.task.columns import Columns
from carryscope.task.operation import Array, State, Words
from carryscope.task.questions import Questions
from carryscope.task.sampling import carry_pairs

CARRY_PAIRS = 200
"""Pairs for each digit, depth and kind of question."""

FRESH_QUESTIONS = 4000
"""Fresh questions, rich in nines, for testing the rules."""

FOLLOWED = 0.9
"""A digit surely follows a carry if it does in more than nine pairs of ten, interval included."""

Source = Literal["columns", "token"]
"""What is taken from the other question: the digits of the sum, or the answer token before."""


class CarryEffect(msgspec.Struct, frozen=True, kw_only=True):
    """Pairs of questions that differ only in the carry that arrives at one digit."""

    digit: str
    depth: int
    """Columns that pass the carry on; it is made in the column below them."""
    own_nine: bool
    """Whether the digit's own column sums to 9, so that the token before it shows the carry."""
    changed: Source
    follows: Share
    """Answers that become the other question's digit."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """How one answer digit is computed, and how well that predicts fresh questions.

    The digit is its own column plus the carry seen by an adder that looks `reach` columns
    below. If `reads_token`, the token before it counts too where its own column sums to 9.
    Teacher-forced: that token is the true one.
    """

    digit: str
    reach: int
    """Depths, counted from 0, at which the digit surely follows the carry of the columns, where
    its own column does not sum to 9."""
    token_follows: list[Share]
    """Where its own column sums to 9, by depth: answers that follow the token before when only
    the token is changed. Empty for A_n."""
    reads_token: bool
    """Whether at some depth more than half of them do, interval included."""
    within: Share
    """Fresh questions decided within reach, own column not 9: the model's digit is the rule's."""


class FirstDigitsFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The first digits, with a digit from the middle for comparison."""

    questions: int
    effects: list[CarryEffect]
    rules: list[Rule]
    statement: str


def study_first_digits(
    engine: Engine, samples: Samples, advance: Advance = unheard
) -> FirstDigitsFinding:
    """What A_n, A_n-1 and one digit from the middle follow; A_n of a difference is always 0."""
    top = samples.digits - all(one.signed for one in samples.operation.each_part)
    digits = range(top, max(0, top - 3), -1) or [0]
    effects = [effect for k in digits for effect in _effects(engine, samples, k, advance)]
    fresh = samples.nines_rich("fresh", FRESH_QUESTIONS)
    said = _said(engine, engine.layout.encode(fresh))
    advance(FRESH_QUESTIONS)
    columns = Columns.of(fresh)
    rules = [_rule(k, effects, columns, said[:, k]) for k in digits]
    pairs = {(e.digit, e.depth, e.own_nine): e.follows.of for e in effects}
    return FirstDigitsFinding(
        questions=sum(pairs.values()) + FRESH_QUESTIONS,
        effects=effects,
        rules=rules,
        statement=" ".join(_sentence(rule, columns.operation.words) for rule in rules),
    )


def _said(engine: Engine, tokens: Int[Array, "batch position"]) -> Int[Array, "batch answer"]:
    """The model's answer tokens, lowest digit first, when it reads these tokens."""
    chunks = torch.split(torch.from_numpy(tokens), 2 * CHUNK)
    return torch.cat([answer_tokens(engine.model, chunk) for chunk in chunks]).numpy()[:, ::-1]


def _effects(engine: Engine, samples: Samples, k: int, advance: Advance) -> list[CarryEffect]:
    """Every depth, with the digit's own column at 9 and not."""
    effects = []
    for depth, own_nine in product(range(k), (False, True)):
        if own_nine and k == samples.digits:
            continue  # A_n has no column of its own
        pairs = _carry_pairs(samples, k, depth, own_nine)
        if not pairs:
            continue
        base, source = (Questions.joined(side) for side in zip(*pairs, strict=True))
        chosen = _own_nine(Columns.of(base), k) == own_nine
        base, source = base[chosen], source[chosen]
        ways: tuple[Source, ...] = ("columns", "token") if own_nine else ("columns",)
        for changed in ways:
            follows = _follows(engine, base, source, k, changed)
            effects.append(
                CarryEffect(
                    digit=f"A{k}", depth=depth, own_nine=own_nine, changed=changed, follows=follows
                )
            )
            advance(len(base))
    return effects


def _carry_pairs(
    samples: Samples, k: int, depth: int, own_nine: bool
) -> list[tuple[Questions, Questions]]:
    """Pairs of each operation; a borrow arrives at no digit above the highest column that kills."""
    purpose = f"{'US9' if own_nine else 'carry_in'}({k}) at depth {depth}"
    generator = samples.generator(purpose)
    return [
        carry_pairs(generator, CARRY_PAIRS, samples.digits, k, one, depth=depth, own_nine=own_nine)
        for one in samples.operation.each_part
        if not one.signed or k < samples.digits - own_nine
    ]


def _own_nine(columns: Columns, k: int) -> Bool[Array, " batch"]:
    """Whether the digit's own column sums to 9; A_n has none."""
    return np.pad(columns.make_sum_9, ((0, 0), (0, 1)))[:, k]


def _follows(engine: Engine, base: Questions, source: Questions, k: int, changed: Source) -> Share:
    """Take the columns or the token from the source, and the rest from the base."""
    layout = engine.layout
    tokens, theirs = layout.encode(base), layout.encode(source)
    before = layout.context - 2 - k
    assert (theirs[:, before + 1] != tokens[:, before + 1]).all()
    taken = before if changed == "token" else slice(layout.first_row)
    tokens[:, taken] = theirs[:, taken]
    return Share.of_hits(_said(engine, tokens)[:, k] == theirs[:, before + 1])


def _rule(k: int, effects: list[CarryEffect], fresh: Columns, said: Int[Array, " batch"]) -> Rule:
    """The rule that the effects imply, tested on fresh questions."""
    ours = [e for e in effects if e.digit == f"A{k}"]
    by_columns = {e.depth: e.follows for e in ours if not e.own_nine}
    by_token = [e.follows for e in ours if e.own_nine and e.changed == "token"]
    reach = 0
    while reach in by_columns and by_columns[reach].low > FOLLOWED:
        reach += 1
    carry, depth = fresh.carry_in[:, k], fresh.look_ahead[:, k]
    right, nine = said == fresh.answer_digit(k, carry), _own_nine(fresh, k)
    return Rule(
        digit=f"A{k}",
        reach=reach,
        token_follows=by_token,
        reads_token=any(share.low > 0.5 for share in by_token),
        within=Share.of_hits(right[~nine & (depth < reach)]),
    )


def _sentence(rule: Rule, words: Words) -> str:
    """One rule in words, with its score on fresh questions."""
    k = int(rule.digit[1:])
    if not rule.reach:
        return f"{rule.digit} does not follow the {words.carry} from any column."
    columns = listed([str(k - 1 - depth) for depth in range(rule.reach)])
    passing = f"column {k} {words.column[State.PROPAGATE]}"
    unless = f", unless {passing}" if rule.token_follows else ""
    said = (
        f"{rule.digit} takes its {words.carry} from column{'s' * (rule.reach > 1)} {columns}"
        f"{unless}. This predicts {rule.within.count:,} of {rule.within.of:,} fresh questions "
        "decided there."
    )
    return f"{said} If {passing}, the token A{k + 1} counts." if rule.reads_token else said
