"""Claims about the course of the training: order, independence, lag, phases, noise.

In: the training story of a run, and its metrics. Out: checks. An order that is found belongs to
the recipe as much as to the model.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import stdev

from carryscope.core.evidence import Mean
from carryscope.dissection.story import DigitStory, PairStory
from carryscope.task.columns import QuestionClass, Task
from paper.claims.claims import Check, Claim
from paper.claims.numbers import loss, noise_of, rate, share, step, steps
from paper.claims.reading import Studies, Study

STAYS = 0.95
"""A curve stays below another if it is so at this share of the points that were kept: smoothed
losses of the rare classes cross by noise alone."""

NEVER = float("inf")


def semi_independent(claim: Claim, studies: Studies) -> list[Check]:
    """Digits that are learnt one after the other are learnt at clearly different times."""
    (study,) = studies.of(claim)
    window = study.story.curves.window
    return [
        Check(
            what=f"{late.digit} is learnt more than {window} steps after {early.digit}",
            holds=window < when(late) - when(early) < NEVER,
            numbers=[step(d.digit, study, d.learnt_at) for d in (early, late)],
        )
        for early, late in pairwise(sorted(study.story.digits, key=when))
    ]


def when(story: DigitStory | PairStory) -> float:
    """The step at which it was learnt."""
    return NEVER if story.learnt_at is None else float(story.learnt_at)


def highest_first(claim: Claim, studies: Studies) -> list[Check]:
    """The highest answer digit is learnt before each of the others.

    By one loss for all, which it starts near to, having two values only; and by its own.
    """
    (study,) = studies.of(claim)
    first, *others = study.story.digits
    by_one = [
        Check(
            what=f"{first.digit} is learnt before {other.digit}",
            holds=when(first) < when(other) < NEVER,
            numbers=[step(d.digit, study, d.learnt_at) for d in (first, other)],
        )
        for other in others
    ]
    return [*by_one, *(_settles_before(study, first, other) for other in others)]


def _settles_before(study: Study, one: DigitStory, other: DigitStory) -> Check:
    """Whether one digit comes down to a tenth of its own early loss before another does."""
    settled = {d.digit: d.clean_up_from for d in (one, other)}
    early, late = (NEVER if at is None else at for at in settled.values())
    return Check(
        what=f"{one.digit} comes down to a tenth of its own early loss before {other.digit}",
        holds=early < late,
        numbers=[step(f"{name} at a tenth", study, at) for name, at in settled.items()],
    )


def first_digits_learn_better(claim: Claim, studies: Studies) -> list[Check]:
    """A5 and A4 are learnt before the digits in the middle, and end with less loss."""
    (study,) = studies.of(claim)
    stories = {story.digit: story for story in study.story.digits}
    means = {name: Mean.measured(values) for name, values in study.digit_losses().items()}
    middle = [f"A{k}" for k in range(2, study.digits - 1)]
    checks = []
    for name in (f"A{study.digits}", f"A{study.digits - 1}"):
        soonest = min(middle, key=lambda digit: when(stories[digit]))
        lowest = min(middle, key=lambda digit: means[digit].estimate)
        checks += [
            Check(
                what=f"{name} is learnt before {' and '.join(reversed(middle))}",
                holds=when(stories[name]) < when(stories[soonest]) < NEVER,
                numbers=[step(d, study, stories[d].learnt_at) for d in (name, soonest)],
            ),
            *(_settles_before(study, stories[name], stories[digit]) for digit in middle),
            Check(
                what=f"{name} ends with less loss than {' and '.join(reversed(middle))}",
                holds=means[name].high < means[lowest].low,
                numbers=[loss(d, study, means[d], of_what="steps") for d in (name, lowest)],
            ),
        ]
    return checks


def uc1_lags(claim: Claim, studies: Studies) -> list[Check]:
    """While a digit is discovered, UC1 has more loss than BA, and it is learnt later."""
    (study,) = studies.of(claim)
    lags = {lag.digit: lag for lag in study.story.lags}
    checks = []
    for name in ("A3", "A2", "A1"):
        lag = lags[name]
        above = share(
            f"{name} batches with UC1 above BA", study, lag.batches_above, of_what="batches"
        )
        checks += [
            Check(
                what=f"in phase 2 UC1 of {name} has more loss than BA in most batches",
                holds=lag.batches_above.low > 0.5,
                numbers=[above],
            ),
            Check(
                what=f"UC1 of {name} is learnt after BA",
                holds=lag.later is True,
                numbers=[steps(f"{name} from BA to UC1", study, lag.steps)],
            ),
        ]
    return checks


def three_phases(claim: Claim, studies: Studies) -> list[Check]:
    """A high start, a fall, a slow end: each longer than the smoothing window."""
    (study,) = studies.of(claim)
    window = study.story.curves.window
    checks = []
    for digit in study.story.digits:
        if digit.digit in ("A3", "A2", "A1"):
            begin, end = digit.discovery_from, digit.clean_up_from
            lengths = [
                begin and begin - 1,
                begin and end and end - begin,
                end and study.story.steps - end + 1,
            ]
            checks.append(
                Check(
                    what=f"{digit.digit} has three phases of more than {window} steps",
                    holds=all(length is not None and length > window for length in lengths),
                    numbers=[
                        steps(f"{digit.digit} phase {i}", study, length)
                        for i, length in enumerate(lengths, start=1)
                    ],
                )
            )
    return checks


def top_column_is_lower(claim: Claim, studies: Studies) -> list[Check]:
    """The digit of the highest column stays below those of the columns under it, task by task."""
    return [
        _stays_below(study, f"A{study.digits - 1}", task)
        for study in studies.of(claim)
        for task in Task
    ]


def _stays_below(study: Study, name: str, task: Task) -> Check:
    curves = study.story.curves.task_loss
    others = [f"A{k}" for k in range(1, study.digits - 1)]
    both = [
        (mine, theirs)
        for other in others
        for mine, theirs in zip(curves[name][task.name], curves[other][task.name], strict=True)
        if mine is not None and theirs is not None
    ]
    below = sum(mine < theirs for mine, theirs in both)
    found = below / len(both) if both else None
    what, points = f"points with {name} lower on {task.name}", "points of two smoothed curves"
    number = rate(what, study, found, len(both), of_what=points)
    return Check(
        what=f"{name} of {study.name} stays below {others[-1]} to A1 on {task.name}",
        holds=bool(both) and below >= STAYS * len(both),
        numbers=[number],
    )


def us9_is_noisy(claim: Claim, studies: Studies) -> list[Check]:
    """US9 varies more from step to step than BA and UC1, and cascades are why."""
    (study,) = studies.of(claim)
    checks = []
    for place, name in enumerate(study.layout.answer_names):
        if name in ("A3", "A2", "A1"):
            noise = {task.name: _noise(study, task, place) for task in Task}
            rival = max(("BA", "UC1"), key=lambda task: noise[task])
            cascades = name == "A3"  # to A2 a carry comes through one nine at most, to A1 none
            where = f"at {name}" if cascades else f"at {name}, where no cascade comes,"
            noisier = "is noisier" if cascades else "is no noisier"
            checks.append(
                Check(
                    what=f"{where} US9 {noisier} than BA and UC1 (standard deviation)",
                    holds=(noise["US9"] > noise[rival]) == cascades,
                    numbers=[
                        noise_of(f"{name} {task}", study, noise[task]) for task in ("US9", rival)
                    ],
                )
            )
    simple, cascade = (
        study.whole(kind).loss for kind in (QuestionClass.SIMPLE_US9, QuestionClass.CASCADE_US9)
    )
    why = Check(
        what="cascades have more loss than simple US9",
        holds=cascade.low > simple.high,
        numbers=[loss("cascade US9", study, cascade), loss("simple US9", study, simple)],
        role="core",
    )
    return [*checks, why]


def _noise(study: Study, task: Task, place: int) -> float:
    losses = [record.task_loss[task.name][place] for record in study.last_steps]
    known = [value for value in losses if value is not None]
    return stdev(known) if len(known) > 1 else 0.0
