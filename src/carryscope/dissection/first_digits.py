"""How the first digits are computed, which the paper leaves open: A_n, and the one after it.

In: an engine and questions. Out: `FirstDigitsFinding`.

Two sources could tell A_n-1 what carry arrives: the columns below, as for every digit, and the
token A_n that stands just before it. Where the highest column sums to 9, A_n *is* that carry:
for 40000+59999 the model reads "=0" and may conclude that no carry arrives, whatever is below.
So we change the two separately, in pairs of questions that differ in one carry, made at a
known depth, and see whether the digit follows.

What comes out is stated as a rule, how far down the digit looks and whether it reads the token,
and the rule is tested on fresh questions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
import numpy as np
import torch
from jaxtyping import Bool, Int

from carryscope.core.evidence import Share
from carryscope.dissection.engine import Engine
from carryscope.dissection.samples import Samples
from carryscope.model.prediction import log_probabilities
from carryscope.task.algorithms import ALGORITHM_1_REACH
from carryscope.task.columns import Columns
from carryscope.task.operation import Array
from carryscope.task.questions import Questions
from carryscope.task.sampling import Variable, counterfactuals

PAIRS = 200
"""Pairs for each digit, depth and kind of question."""

FRESH_QUESTIONS = 4000
"""Fresh questions, rich in nines, for testing the rules that come out."""

SURE = 0.9
"""A digit surely follows a carry if it does in more than nine pairs of ten, interval included."""

Source = Literal["columns", "token", "both"]
"""What is taken from the other question: the digits of the sum, the answer token before, both."""


class CarryEffect(msgspec.Struct, frozen=True, kw_only=True):
    """Pairs of questions that differ in the carry that arrives at one digit, and in no more."""

    digit: str
    depth: int
    """Columns that pass the carry on; it is made in the column below them."""
    column: int
    """The column that makes it, or not."""
    own_nine: bool
    """Whether the digit's own column sums to 9, so that the token before it shows the carry."""
    changed: Source
    follows: Share
    """Answers that become the other question's digit."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """How one answer digit is computed, as the effects say, and how that fares on fresh questions.

    The digit is its own column plus the carry that an adder sees which looks `reach` columns
    below; and, if `reads_token`, where its own column sums to 9 the token before it counts
    too. Teacher-forced: that token is the true one.
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
    own_nine: Share
    """Fresh questions whose own column sums to 9: the model's digit is right."""
    beyond: Share
    """The rest, of which the rule says nothing: the model's digit is right."""
    against: int
    """The reach of the rule it is compared with: Algorithm 1's, or one less if that is the same."""
    sides: Share
    """Fresh questions on which the two rules differ, own column not 9: the model says this one's
    digit."""


class FirstDigitsFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The first digits, with a digit from the middle for comparison."""

    seed: int
    questions: int
    effects: list[CarryEffect]
    rules: list[Rule]
    statement: str


def study_first_digits(
    engine: Engine, samples: Samples, on_progress: Callable[[int], object] = lambda _: None
) -> FirstDigitsFinding:
    """What A_n, A_n-1 and one digit from the middle follow."""
    digits = [k for k in range(samples.digits, max(0, samples.digits - 3), -1) if k >= 1]
    effects = [effect for k in digits for effect in _effects(engine, samples, k, on_progress)]
    fresh = samples.nines_rich("fresh", FRESH_QUESTIONS)
    said = _said(engine, engine.layout.encode(fresh))
    on_progress(FRESH_QUESTIONS)
    rules = [_rule(k, effects, Columns.of(fresh), said[:, k]) for k in digits]
    pairs = {(e.digit, e.depth, e.own_nine): e.follows.of for e in effects}
    return FirstDigitsFinding(
        seed=samples.seed,
        questions=sum(pairs.values()) + FRESH_QUESTIONS,
        effects=effects,
        rules=rules,
        statement=_statement(rules),
    )


def _said(engine: Engine, tokens: Int[Array, "batch position"]) -> Int[Array, "batch answer"]:
    """The model's answer tokens, lowest digit first, when it reads these tokens."""
    chunks = []
    for start in range(0, len(tokens), 512):
        with torch.inference_mode():
            chances = log_probabilities(engine.model, torch.from_numpy(tokens[start : start + 512]))
        chunks.append(chances.argmax(-1).numpy()[:, ::-1])
    return np.concatenate(chunks)


def _effects(
    engine: Engine, samples: Samples, k: int, on_progress: Callable[[int], object]
) -> list[CarryEffect]:
    """Every depth, with the digit's own column at 9 and not."""
    effects = []
    for depth in range(k):
        for own_nine in (False, True) if k < samples.digits else (False,):
            variable = Variable("US9" if own_nine else "carry_in", k)
            generator = samples.generator(f"{variable} at depth {depth}")
            base, source = counterfactuals(generator, PAIRS, samples.digits, variable, depth=depth)
            if not own_nine:
                base, source = _own_column_not_nine(base, source, k)
            ways: tuple[Source, ...] = ("columns", "token", "both") if own_nine else ("columns",)
            for changed in ways:
                follows = _follows(engine, base, source, k, changed)
                on_progress(len(base))
                effects.append(
                    CarryEffect(
                        digit=f"A{k}",
                        depth=depth,
                        column=k - 1 - depth,
                        own_nine=own_nine,
                        changed=changed,
                        follows=follows,
                    )
                )
    return effects


def _own_column_not_nine(base: Questions, source: Questions, k: int) -> tuple[Questions, Questions]:
    """The pairs whose own column, if the digit has one, does not sum to 9."""
    if k == base.digits:
        return base, source
    kept = Columns.of(base).sums[:, k] != 9
    return base[kept], source[kept]


def _follows(engine: Engine, base: Questions, source: Questions, k: int, changed: Source) -> Share:
    """Take columns, token or both from the source; the rest is the base's, its answer too."""
    layout = engine.layout
    ours, theirs = layout.encode(base), layout.encode(source)
    tokens, before = ours.copy(), layout.context - 2 - k
    if changed != "token":
        tokens[:, : layout.first_row] = theirs[:, : layout.first_row]
    if changed != "columns":
        tokens[:, before] = theirs[:, before]
    wanted = theirs[:, before + 1]
    assert (wanted != ours[:, before + 1]).all()
    hits = _said(engine, tokens)[:, k] == wanted
    return Share.measured(int(hits.sum()), len(hits))


def _rule(k: int, effects: list[CarryEffect], fresh: Columns, said: Int[Array, " batch"]) -> Rule:
    """The rule that the effects state, tested on fresh questions."""
    ours = [e for e in effects if e.digit == f"A{k}"]
    by_columns = {e.depth: e.follows for e in ours if not e.own_nine}
    by_token = [e.follows for e in ours if e.own_nine and e.changed == "token"]
    reach = 0
    while reach in by_columns and by_columns[reach].low > SURE:
        reach += 1
    against = ALGORITHM_1_REACH if reach != ALGORITHM_1_REACH else ALGORITHM_1_REACH - 1
    carry, depth = fresh.carry_in[:, k], fresh.look_ahead[:, k]
    rule, rival = (fresh.answer_digit(k, carry & (depth < r)) for r in (reach, against))
    right, nine = said == fresh.answer_digit(k, carry), _own_nine(fresh, k)
    return Rule(
        digit=f"A{k}",
        reach=reach,
        token_follows=by_token,
        reads_token=any(share.low > 0.5 for share in by_token),
        within=Share.of_hits((said == rule)[~nine & (depth < reach)]),
        own_nine=Share.of_hits(right[nine]),
        beyond=Share.of_hits(right[~nine & (depth >= reach)]),
        against=against,
        sides=Share.of_hits((said == rule)[~nine & (rule != rival)]),
    )


def _own_nine(columns: Columns, k: int) -> Bool[Array, " batch"]:
    if k == columns.digits:
        return np.zeros(len(columns.sums), dtype=bool)
    return np.equal(columns.sums[:, k], 9)


def _statement(rules: list[Rule]) -> str:
    return " ".join(map(_told, rules))


def _told(rule: Rule) -> str:
    """One rule in words, with what fresh questions say of it."""
    k = int(rule.digit[1:])
    columns = ", ".join(str(k - 1 - depth) for depth in range(rule.reach))
    if not rule.reach:
        return f"{rule.digit} does not follow the carry from any column."
    unless = f", where column {k} does not sum to 9" * bool(rule.token_follows)
    told = (
        f"{rule.digit} takes its carry from column{'s' * (rule.reach > 1)} {columns}{unless} (as "
        f"said in {rule.within.count:,} of {rule.within.of:,} fresh questions decided there, right "
        f"in {rule.beyond.count:,} of {rule.beyond.of:,} others)"
    )
    if rule.reads_token:
        shares = ", ".join(f"{share.estimate:.0%}" for share in rule.token_follows)
        told += (
            f"; where it does, the token A{k + 1} counts: changed alone it decides {shares} of the "
            f"answers, with 0, 1, .. nines below"
        )
    return f"{told}."
