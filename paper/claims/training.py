"""Claims about losses: how low, at which digit, in which class, on what mix of questions.

In: training summaries, and the metrics of the last steps. Out: checks. A final loss is the mean
over the held-out questions or over the last 100 steps, never that of one step. All of them are
teacher-forced.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, stdev

import msgspec

from carryscope.core.evidence import Mean, Share
from carryscope.dissection.rows import PAPER_THRESHOLD
from carryscope.dissection.story import LEARNT_LOSS
from carryscope.sweeps.finding import Sweep
from carryscope.task.columns import Task
from carryscope.training.losses import StepRecord
from paper.claims.claims import Check, Claim
from paper.claims.numbers import at_least, at_most, loss, noise_of, rate, share, step
from paper.claims.reading import Studies, Study

LARGEST_SUCCESS = "loss.15-digits"
"""The largest loss of a model that the paper calls successfully trained."""

LEVELS = (LEARNT_LOSS, PAPER_THRESHOLD, at_most(LARGEST_SUCCESS))
"""Losses to reach: where a digit counts as learnt, the paper's cut-off, its largest success."""


def final_loss(claim: Claim, studies: Studies) -> list[Check]:
    """The held-out loss, and that of the last steps, reach the paper's value."""
    (paper,), checks = claim.paper, []
    for study in studies.of(claim):
        checks += [
            _reaches(study, "held-out loss", study.training.held_out_loss, paper),
            _last_reach(study, paper),
        ]
        sweep = studies.seeds_of(study.name)
        if sweep is not None and sweep.results:
            checks.append(_most_seeds(sweep, at_most(paper)))
    return checks


def _most_seeds(sweep: Sweep, most: float) -> Check:
    """More than half of the seeds of a sweep end with a loss that low; those that failed do not."""
    low = sum(seed.held_out_loss.low <= most for seed in sweep.results)
    found = Share.measured(low, len(sweep.results) + len(sweep.failures))
    number = share(f"seeds with a held-out loss of at most {most:g}", None, found, of_what="seeds")
    best = min(sweep.results, key=lambda seed: seed.held_out_loss.estimate)
    lowest = loss(f"lowest, seed {best.seed}", None, best.held_out_loss)
    return Check(
        what=f"most seeds of {sweep.recipe.preset} do",
        holds=found.low > 0.5,
        numbers=[number, lowest],
    )


def _reaches(study: Study, what: str, value: Mean, paper: str, of_what: str = "questions") -> Check:
    """A loss is at most the paper's, within its interval and the paper's rounding."""
    most = at_most(paper)
    return Check(
        what=f"the {what} of {study.name} is at most {most:g}",
        holds=value.low <= most,
        numbers=[loss(what, study, value, of_what=of_what, paper=paper)],
    )


def _last_reach(study: Study, paper: str) -> Check:
    """The same for the last steps, and how many of them reach it one by one."""
    found = _reaches(study, "loss of the last 100 steps", _last_loss(study), paper, "steps")
    low = sum(record.loss <= at_most(paper) for record in study.last_steps)
    alone = Share.measured(low, len(study.last_steps))
    number = share("steps of these as low as that", study, alone, of_what="steps")
    return msgspec.structs.replace(found, numbers=[*found.numbers, number])


def _last_loss(study: Study) -> Mean:
    return Mean.measured([record.loss for record in study.last_steps])


def loss_per_digit(claim: Claim, studies: Studies) -> list[Check]:
    """The loss of each answer digit over the last steps reaches the paper's."""
    (study,) = studies.of(claim)
    means = _digit_means(study)
    return [
        _reaches(study, f"loss of {name}", means[name], paper, "steps")
        for paper in claim.paper
        if (name := paper.removeprefix("loss.")) in means
    ]


def _digit_means(study: Study) -> dict[str, Mean]:
    """The mean loss of each answer token over the last steps."""
    return {name: Mean.measured(losses) for name, losses in study.digit_losses().items()}


def hardest_digit(claim: Claim, studies: Studies) -> list[Check]:
    """A1 has the largest loss."""
    (study,) = studies.of(claim)
    means = _digit_means(study)
    others = [name for name in means if name != "A1"]
    rival = max(others, key=lambda name: means[name].estimate)
    return [
        Check(
            what="A1 has the largest loss of all digits",
            holds=means["A1"].low > means[rival].high,
            numbers=[loss(name, study, means[name], of_what="steps") for name in ("A1", rival)],
        )
    ]


def units_are_cleanest(claim: Claim, studies: Studies) -> list[Check]:
    """A0 ends with the lowest loss, and with the least noise from step to step."""
    (study,) = studies.of(claim)
    means, losses = _digit_means(study), study.digit_losses()
    noise = {name: stdev(values) for name, values in losses.items()}
    rivals = [name for name in means if name in [f"A{k}" for k in range(1, study.digits + 1)]]
    lowest = min(rivals, key=lambda name: means[name].estimate)
    calmest = min(rivals, key=lambda name: noise[name])
    return [
        Check(
            what="A0 has the lowest loss",
            holds=means["A0"].high < means[lowest].low,
            numbers=[loss(n, study, means[n], of_what="steps") for n in ("A0", lowest)],
        ),
        Check(
            what="A0 has the least noise (standard deviation from step to step)",
            holds=noise["A0"] < noise[calmest],
            numbers=[noise_of(name, study, noise[name]) for name in ("A0", calmest)],
        ),
    ]


def loss_per_task(claim: Claim, studies: Studies) -> list[Check]:
    """The losses by task reach the paper's, and stand in the paper's order."""
    (study,) = studies.of(claim)
    means = {task.name: Mean.measured(_task_losses(study, task)) for task in Task}
    checks = [
        _reaches(study, f"loss on {task.name}", means[task.name], f"class.{task.name}", "steps")
        for task in Task
    ]
    for more, less in pairwise(["BA", "UC1", "US9"]):
        pair = [loss(name, study, means[name], of_what="steps") for name in (more, less)]
        holds = means[more].low > means[less].high
        checks.append(Check(what=f"{more} has more loss than {less}", holds=holds, numbers=pair))
    return checks


def _task_losses(study: Study, task: Task) -> list[float]:
    """The loss of each of the last steps on one task, over all digits that have a column."""
    losses = []
    for record in study.last_steps:
        cases = _counts(study, record, task)
        values = record.task_loss[task.name][-study.digits :]
        if sum(cases):
            total = sum(n * (value or 0.0) for n, value in zip(cases, values, strict=True))
            losses.append(total / sum(cases))
    return losses


def _counts(study: Study, record: StepRecord, task: Task) -> Sequence[int]:
    """Questions of a task in one step, by answer digit, those with a column only."""
    return record.task_count[task.name][-study.digits :]


def task_mix(claim: Claim, studies: Studies) -> list[Check]:
    """The share of each task in the training data is the paper's."""
    (study,) = studies.of(claim)
    checks = []
    for task in Task:
        paper = f"mix.{task.name}"
        shares = [
            sum(_counts(study, record, task))
            / sum(sum(_counts(study, record, other)) for other in Task)
            for record in study.metrics
        ]
        mean, low, high = Mean.measured(shares), at_least(paper), at_most(paper)
        checks.append(
            Check(
                what=f"{task.name} is between {low:.1%} and {high:.1%} of the digits",
                holds=mean.low <= high and mean.high >= low,
                numbers=[
                    rate(task.name, study, mean, mean.of, of_what="batches", paper=paper),
                ],
            )
        )
    return checks


def trains_well(claim: Claim, studies: Studies) -> list[Check]:
    """Every model of the claim ends as low as the worst that the paper calls successful."""
    most = at_most(LARGEST_SUCCESS)
    return [
        Check(
            what=f"{study.name} ends at a held-out loss of at most {most:g}",
            holds=study.training.held_out_loss.low <= most,
            numbers=[loss(f"held-out loss of {study.name}", study, study.training.held_out_loss)],
        )
        for study in studies.of(claim)
    ]


def us9_struggles(claim: Claim, studies: Studies) -> list[Check]:
    """At A3 US9 ends with more loss than BA and than UC1."""
    (study,) = studies.of(claim)
    place = study.layout.answer_names.index("A3")
    means = {
        task.name: Mean.measured(
            [x for r in study.last_steps if (x := r.task_loss[task.name][place]) is not None]
        )
        for task in Task
    }
    return [
        Check(
            what=f"at A3 US9 has more loss than {other}",
            holds=means["US9"].low > means[other].high,
            numbers=[loss(task, study, means[task], of_what="steps") for task in ("US9", other)],
        )
        for other in ("BA", "UC1")
    ]


def no_memorisation(claim: Claim, studies: Studies) -> list[Check]:
    """Questions never trained on are answered right.

    The loss of the last steps is shown and not judged: those are fresh questions too.
    """
    return [
        Check(
            what=f"{study.name} answers most fresh questions right",
            holds=study.training.uniform_correct.low > 0.5,
            numbers=[
                share("whole answers right", study, study.training.uniform_correct),
                loss("held-out loss", study, study.training.held_out_loss),
                loss("loss of the last 100 steps", study, _last_loss(study), of_what="steps"),
            ],
        )
        for study in studies.of(claim)
    ]


def longer_takes_longer(claim: Claim, studies: Studies) -> list[Check]:
    """The more digits, the later the loss over all of them stays below a level, at each level."""
    checks = []
    for level in LEVELS:
        for shorter, longer in pairwise(studies.of(claim)):
            early, late = _reached(shorter, level), _reached(longer, level)
            checks.append(
                Check(
                    what=f"{longer.name} comes to a loss of {level:.3g} after {shorter.name}",
                    holds=early is not None and (late is None or late > early),
                    numbers=[
                        step(study.name, study, at)
                        for study, at in ((shorter, early), (longer, late))
                    ],
                )
            )
    return checks


def _reached(study: Study, level: float) -> int | None:
    """The first kept point of its curve from which the loss over all digits stays below a level."""
    curves = study.story.curves
    by_digit = [curves.digit_loss[digit.digit] for digit in study.story.digits]
    losses = [fmean(x for x in point if x is not None) for point in zip(*by_digit, strict=True)]
    above = [place for place, value in enumerate(losses) if value >= level]
    after = above[-1] + 1 if above else 0
    return curves.steps[after] if after < len(losses) else None
