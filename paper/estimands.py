"""The estimands: each public function takes a draw and returns one number.

Their names are those in `claims.json`, which has them in words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, permutations
from statistics import fmean

import numpy as np
import torch

from carryscope.dissection.engine import UNCHANGED
from carryscope.dissection.explaining import READS, column_shares
from carryscope.dissection.interventions import Ablate, Node
from carryscope.dissection.samples import Samples
from carryscope.dissection.story import LEARNT_LOSS, LossCurve, loss_curves
from carryscope.model.choice import answer_tokens
from carryscope.model.prediction import answer, predict
from carryscope.task.columns import Columns, QuestionClass, Task
from carryscope.task.operation import BASE, Array, State
from carryscope.task.questions import Questions
from carryscope.task.sampling import carry_pairs, uniform, with_states
from carryscope.training.data import held_out_questions
from carryscope.verification.algorithms import ALGORITHM_1
from paper.draw import QUESTIONS, SEED, Draw, of_class, uniform_states

KEY_PAIRS = 6000
"""Pairs of questions for the 60 keys: a hundred for each."""

TOKEN_PAIRS = 200
"""Pairs of questions for the token before A4, for each depth."""

ROW_QUESTIONS = 256
"""Questions for rows, of which one answer that changes elsewhere would be enough."""

COLUMNS = (0, 1, 2)
"""The columns that the paper's heads read, counted downwards from the digit's own."""


SHOWN = 1500
"""Steps that the paper's loss curves show."""

HALF_OF_GUESSING = math.log(BASE) / 2
"""A digit counts as learnt where its loss stays below half of what guessing costs."""


def columns_read(draw: Draw) -> float:
    """How many of the three columns have a head that reads them."""
    return len({head.offset for head in draw.heads if head.role} & set(COLUMNS))


def circuit(draw: Draw) -> float:
    """How many heads read each of the three columns, as a number of three digits."""
    offsets = [head.offset for head in draw.heads if head.role]
    return sum(
        offsets.count(column) * power for column, power in zip(COLUMNS, (100, 10, 1), strict=True)
    )


def packed(draw: Draw) -> float:
    """Heads and rows at which two columns get more than half of the attention, but none alone."""
    patterns = np.mean([*draw.attention.patterns.values()], axis=0)
    shares = np.sort(column_shares(patterns, draw.layout), axis=-1)
    together = shares[..., -2:].sum(axis=-1)
    return float(((shares[..., -1] <= READS) & (together > READS)).mean())


def doubled_heads(draw: Draw) -> float:
    """Pairs of heads with the same staircase."""
    roles = [head.role for head in draw.heads if head.role]
    return sum(one == other for one, other in combinations(roles, 2))


def a3_one_head_each(draw: Draw) -> float:
    """How well A3 follows three sub-tasks, each brought by a head of its own, in the worst."""
    heads, place = range(draw.model.config.heads), draw.place("A3")
    row = draw.layout.first_row + place
    follows = []
    for base, source in map(_one_column_apart, (3, 2, 1)):
        patches = [Node(row, 0, (head,)).patched(source) for head in heads]
        said = draw.engine.answers(base, patches).predicted[:, :, place]
        follows.append((said == _a3(source)).mean(axis=1).tolist())
    shared_out = permutations(heads, len(follows))
    worst = [min(f[head] for f, head in zip(follows, given, strict=True)) for given in shared_out]
    return max(worst, default=0.0)


def _a3(questions: Questions) -> Array:
    """The true digit A3."""
    columns = Columns.of(questions)
    return columns.answer_digit(3, columns.carry_in[:, 3])


def _one_column_apart(column: int) -> tuple[Questions, Questions]:
    """Pairs that differ in one column and by that in A3: in BA(3), in the state of column 2 or in
    MC1(1) below a nine."""
    generator, count = np.random.default_rng((SEED, column)), 4 * QUESTIONS
    states = uniform_states(generator, count, 5)
    if column < 3:
        states[:, 1] = generator.choice([State.KILL, State.GENERATE], count)
        states[:, 2] = generator.integers(0, len(State), count) if column == 2 else State.PROPAGATE
    others = states.copy()
    others[:, column] = generator.permutation(states[:, column])
    base, drawn = with_states(generator, states), with_states(generator, others)
    first, second = base.first.copy(), base.second.copy()
    first[:, column], second[:, column] = drawn.first[:, column], drawn.second[:, column]
    source = Questions(first, second)
    telling = np.flatnonzero(_a3(base) != _a3(source))[:QUESTIONS]
    return base[telling], source[telling]


def a3_ranking(draw: Draw) -> float | None:
    """How far A3's loss without the head of a column exceeds that without the next one below."""
    at_a3 = draw.varied_without_heads[1:, :, draw.place("A3")].mean(axis=1)
    losses = [
        [float(at_a3[head.head]) for head in draw.heads if head.role and head.offset == column]
        for column in COLUMNS
    ]
    if not all(losses):
        return None
    own, one_below, two_below = map(max, losses)
    return min(own - one_below, one_below - two_below)


def second_ba_head(draw: Draw) -> float | None:
    """The second largest rise of the loss on BA questions, as a share of the largest."""
    whole, *without = draw.base_add_losses
    *_, second, largest = sorted(float(loss - whole) for loss in without)
    return second / largest if largest > 0 else None


def least_head_rise(draw: Draw) -> float:
    """The smallest rise of the loss without one head."""
    whole, *without = draw.varied_without_heads.mean(axis=(1, 2))
    return float(min(without) - whole)


def keys_followed(draw: Draw) -> float:
    """A3 becomes the digit of the key that all heads bring from another question."""
    generator, place = np.random.default_rng(SEED), draw.place("A3")
    base = uniform(generator, KEY_PAIRS, draw.digits)
    source = with_states(generator, _key_states(generator))
    row = Node(draw.layout.first_row + place, 0, tuple(range(draw.model.config.heads)))
    said = draw.engine.answers(base, [row.patched(source)]).predicted[0, :, place]
    return float((said == _a3(source)).mean())


def _key_states(generator: np.random.Generator) -> Array:
    """States that give A3 each of its keys equally often, with a carry that the key decides."""
    states = uniform_states(generator, KEY_PAIRS, 5)
    states[:, 2] = generator.integers(0, len(State), KEY_PAIRS)
    makes = generator.random(KEY_PAIRS) < 0.5
    nines = states[:, 2] == State.PROPAGATE
    quiet = np.where(nines | (states[:, 1] == State.GENERATE), State.KILL, states[:, 1])
    states[:, 1] = np.where(makes, State.GENERATE, quiet)
    return states


def errors_alike(draw: Draw) -> float | None:
    """Where the model or Algorithm 1 is wrong: how often both say the same."""
    found = draw.run.faithfulness(progress=draw.progress).agreement.of(ALGORITHM_1).answer
    return found.errors_alike.estimate if found.errors_alike else None


def a4_follows_token(draw: Draw) -> float:
    """How often A4 follows the token A5, at the depth where it does most.

    Column 4 sums to 9, so that A5 shows the carry that arrives. Only this token is changed.
    """
    samples, token = Samples(draw.digits, 0), draw.layout.first_row + draw.place("A4")
    follows = []
    for depth in range(4):
        generator = samples.generator(f"US9(4) at depth {depth}")
        pairs = carry_pairs(generator, TOKEN_PAIRS, draw.digits, 4, depth=depth, own_nine=True)
        tokens, theirs = map(draw.layout.encode, pairs)
        tokens[:, token] = theirs[:, token]
        said = answer_tokens(draw.model, torch.from_numpy(tokens))[:, draw.place("A4")]
        follows.append(float((said.numpy() == theirs[:, token + 1]).mean()))
    return max(follows)


def simple_loss(draw: Draw) -> float:
    """The loss where a carry travels through one nine, and none through more."""
    return _class_loss(draw, QuestionClass.SIMPLE_US9)


def cascade_loss(draw: Draw) -> float:
    """The loss where a carry travels through two nines or more."""
    return _class_loss(draw, QuestionClass.CASCADE_US9)


def _class_loss(draw: Draw, kind: QuestionClass) -> float:
    questions = of_class(draw.digits, kind)
    return float(predict(draw.model, questions, free_running=False).loss.mean())


def uniform_right(draw: Draw) -> float:
    """Uniform questions answered right."""
    return draw.run.training().uniform_correct.estimate


def through_all_wrong(draw: Draw) -> float:
    """Wrong answers where a carry from the units runs through all other columns."""
    states = np.full((QUESTIONS, draw.digits), State.PROPAGATE)
    states[:, 0] = State.GENERATE
    questions = with_states(np.random.default_rng((SEED, draw.digits)), states)
    return float(1 - answer(draw.model, questions, free_running=False).correct.mean())


def first_digits_lead(draw: Draw) -> float:
    """How much more held-out loss A3 and A2 have than A5 and A4."""
    return draw.held_out_loss("A3", "A2") - draw.held_out_loss("A5", "A4")


def a0_lead(draw: Draw) -> float:
    """How much more held-out loss than A0 the next best digit has."""
    others = [f"A{k}" for k in range(1, draw.digits + 1)]
    return min(map(draw.held_out_loss, others)) - draw.held_out_loss("A0")


def us9_variance(draw: Draw) -> float:
    """Of the variance of A3's loss on US9, the share of questions with further nines below."""
    columns = Columns.of(held_out_questions(draw.digits))
    us9 = columns.task[:, 3] == Task.US9
    losses = draw.held_out[us9, draw.place("A3")]
    apart = (losses - losses.mean()) ** 2
    return float(apart[columns.look_ahead[us9, 3] > 0].sum() / apart.sum())


def _learnt(curve: LossCurve, level: float = HALF_OF_GUESSING) -> int:
    """The step from which a smoothed loss stays below a level; never counts as the last step."""
    return curve.stays_below(level) or int(curve.steps[-1])


def a5_lead(draw: Draw) -> float:
    """Steps from the highest digit, which is 0 or 1, being learnt to the next digit."""
    found = loss_curves(draw.metrics[:SHOWN], draw.layout)
    first = _learnt(found[f"A{draw.digits}", None], math.log(2) / 2)
    return min(_learnt(found[f"A{k}", None]) for k in range(draw.digits)) - first


def uc1_lag(draw: Draw) -> float:
    """Steps from BA to UC1, in the digit of A1 to A3 where it is least."""
    found = loss_curves(draw.metrics[:SHOWN], draw.layout)
    return min(_learnt(found[f"A{k}", "UC1"]) - _learnt(found[f"A{k}", "BA"]) for k in (1, 2, 3))


def top_column_lead(draw: Draw) -> float:
    """How much less loss the highest column's digit has than those below, in its worst task."""
    found = loss_curves(draw.metrics[:SHOWN], draw.layout)

    def mean(k: int, task: Task) -> float:
        curve = found[f"A{k}", task.name]
        return float(np.nansum(curve.losses * curve.counts) / curve.counts.sum())

    top = draw.digits - 1
    return min(fmean(mean(k, task) for k in range(1, top)) - mean(top, task) for task in Task)


def steps_to_learn(draw: Draw) -> float:
    """The step from which the loss over all digits stays below half of ln 2."""
    steps = np.array([record.step for record in draw.metrics])
    losses = np.array([record.loss for record in draw.metrics])
    return _learnt(LossCurve(steps, losses, np.ones_like(steps)), LEARNT_LOSS)


def _changed(draw: Draw, rows: Sequence[int]) -> Array:
    """Which answers change when one row after the block is at its mean: row, question, token."""
    questions = draw.engine.reference[:ROW_QUESTIONS]
    changes = [Ablate("blocks.0.hook_resid_post", (row,)) for row in rows]
    clean, *said = draw.engine.answers(questions, [UNCHANGED, *changes]).predicted
    return np.asarray(np.stack(said) != clean)


def changed_by_unused_rows(draw: Draw) -> float:
    """Answers that change without a row before "=", or without the last."""
    rows = [*range(draw.layout.first_row), draw.layout.context - 1]
    return int(_changed(draw, rows).sum())


def changed_elsewhere(draw: Draw) -> float:
    """Answers that change without an answer row, at another digit than the next."""
    changed = _changed(draw, draw.layout.answer_rows)
    own = np.eye(len(changed), dtype=bool)[:, None]
    return int((changed & ~own).sum())
