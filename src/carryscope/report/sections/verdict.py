"""What a reader sees first: what was trained, how often it is right, on what not to use it.

In: the shelf of a run. Out: a section. The judgement is that of the risk finding, word for word.
"""

from __future__ import annotations

from carryscope.certificate.finding import Certificate
from carryscope.core.words import between, counted, counted_share, listed, percent
from carryscope.report.parts import KeyNumber, Numbers, Part, Section, Text
from carryscope.report.shelf import Shelf
from carryscope.report.words import TASK, above
from carryscope.task.operation import State
from carryscope.verification.risk import RiskFinding
from carryscope.verification.risk_verdict import SAFE, UNSAFE


def shelf_parts(shelf: Shelf) -> list[Part]:
    """A run in short: its verdict."""
    return [verdict_section(shelf)]


def ending(shelf: Shelf) -> list[Part]:
    """The verdict in a sentence, the likeliest failure, and what is proved."""
    parts: list[Part] = [Text(f"{headline(shelf)}.", lead=True)]
    if shelf.risk is not None and shelf.risk.failures:
        first = shelf.risk.failures[0]
        share = first.contribution / shelf.risk.teacher_forced.estimate
        parts.append(
            Text(
                f"It fails most often on {TASK.question}s like {first.simplest} `{first.name}`, "
                f"{percent(share)} of all wrong answers."
            )
        )
    if shelf.certificate is not None:
        parts.append(Text(shelf.certificate.statement))
    return parts


def verdict_section(shelf: Shelf) -> Section:
    """The verdict."""
    parts: list[Part] = [
        *_numbers(shelf),
        Text(_judgement(shelf), lead=True),
        *([Text(shelf.certificate.statement)] if shelf.certificate is not None else []),
        Text(trained(shelf)),
        *([shelf.absent["risk"]] if "risk" in shelf.absent else []),
    ]
    return Section("verdict", headline(shelf), "Verdict", parts)


def headline(shelf: Shelf) -> str:
    """The verdict in a line."""
    found = shelf.certificate
    if found is not None and found.proved_right == found.questions:
        return f"Proved right in all {int(found.questions):,} questions"
    if shelf.risk is not None:
        return _from_risk(shelf.risk)
    if found is not None and int(found.proved_right):
        least = counted_share(int(found.proved_right), int(found.questions))
        return f"Proved right in {least} of all questions or more"
    if shelf.training is not None:
        right = shelf.training.uniform_correct
        tested = f"{right.count:,} of {right.of:,} uniform questions"
        return f"Right in {tested}; where it fails is not known"
    return "Nobody has measured yet how often it is right"


def _from_risk(risk: RiskFinding) -> str:
    unsafe = [case.depth for case in risk.cases if case.wrong.low >= UNSAFE]
    right = f"Right in {percent(1 - risk.teacher_forced.estimate)} of all questions"
    if unsafe and not min(unsafe):
        return f"{right}: not fit for use"
    if unsafe:
        columns, pass_on = counted(min(unsafe), "column"), TASK.columns[State.PROPAGATE]
        return f"{right}; not safe where {columns} or more in a row {pass_on}"
    if all(case.wrong.high <= SAFE for case in risk.cases):
        return f"{right}, and safe at every look-ahead that was tried"
    return f"{right}; no look-ahead was found unsafe"


def _judgement(shelf: Shelf) -> str:
    """Is it safe to use, and on what not?"""
    if shelf.risk is not None:
        return shelf.risk.verdict
    if shelf.training is None:
        return (
            "This model was imported: how it was trained is not known here, and its failures have "
            "not been measured. Do not rely on it before they are."
        )
    right, exam = shelf.training.uniform_correct, shelf.training.curated_correct
    told = [f"{share.count} of {share.of} {name}" for name, share in exam.items()]
    return (
        f"Of {right.of:,} fresh uniform questions, {right.count:,} got the right answer "
        f"({between(right)}, 95 % confidence, free-running). Hard questions are rare among those: "
        f"of the curated ones it got {listed(told)} right. Where it is safe to use is not known "
        "until its risk is measured."
    )


def _numbers(shelf: Shelf) -> list[Numbers]:
    """What is measured, and on a line of its own what is proved."""
    proved = _proved(shelf.certificate) if shelf.certificate is not None else []
    if len(proved) > 1:
        return [Numbers([*_right(shelf), *_work(shelf)]), Numbers(proved)]
    return [Numbers([*_right(shelf), *proved, *_work(shelf)])]


def _right(shelf: Shelf) -> list[KeyNumber]:
    if shelf.risk is not None:
        return _measured(shelf.risk)
    if shelf.training is not None:
        right = shelf.training.uniform_correct
        detail = f"{between(right)}, {right.of:,} questions asked"
        value = percent(right.estimate) if right.count else "none"
        return [KeyNumber(value, "of uniform questions right", detail)]
    return []


def _measured(risk: RiskFinding) -> list[KeyNumber]:
    wrong, asked = risk.teacher_forced, f"{risk.evaluated:,} questions asked"
    known = "every question was asked" if risk.exhaustive else asked
    if wrong.low != wrong.high:
        known = f"{percent(1 - wrong.high)} to {percent(1 - wrong.low)}, {known}"
    share = KeyNumber(percent(1 - wrong.estimate), "of all answers right", known)
    if not wrong.estimate:
        return [share]
    worst = max(risk.cases, key=lambda case: case.wrong.estimate)
    detail = f"worst: {above(worst)}, wrong in {percent(worst.wrong.estimate)}"
    return [share, KeyNumber(f"1 in {round(1 / wrong.estimate):,}", "answers wrong", detail)]


def _proved(found: Certificate) -> list[KeyNumber]:
    """Proved bounds, or how far the proof is as long as no whole answer is decided."""
    of, undecided = int(found.questions), int(found.undecided)
    if undecided == of:
        best = max(found.per_digit, key=lambda digit: int(digit.proved_right))
        share = counted_share(int(best.proved_right), of)
        furthest = f"furthest: {best.digit}, right in {share}"
        return [KeyNumber("none yet", "of all answers proved", furthest)]
    right, wrong = int(found.proved_right), int(found.proved_wrong)
    still = "every question is decided" if not undecided else "of all answers, at most"
    return [
        KeyNumber(counted_share(right, of), "proved right", _least(right, of)),
        KeyNumber(counted_share(wrong, of), "proved wrong", _least(wrong, of)),
        KeyNumber(counted_share(undecided, of, at_most=True), "undecided", still),
    ]


def _least(part: int, of: int) -> str:
    return "of all answers" if part == of else "of all answers, at least"


def _work(shelf: Shelf) -> list[KeyNumber]:
    model = shelf.config.model
    shape = f"{counted(model.layers, 'layer')}, {counted(model.heads, 'head')}"
    numbers = [KeyNumber(f"{model.digits}", "digits a number", f"{shape}, {model.format} format")]
    if shelf.training is not None:
        loss = shelf.training.held_out_loss
        detail = f"{loss.low:.4f} to {loss.high:.4f}, {loss.of:,} enriched questions"
        numbers.append(KeyNumber(f"{loss.estimate:.4f}", "held-out loss", detail))
    return numbers


def trained(shelf: Shelf) -> str:
    """What was trained, in a sentence."""
    model, recipe, summary = shelf.config.model, shelf.config.training, shelf.training
    shape = (
        f"A transformer with {counted(model.layers, 'layer')} and {counted(model.heads, 'head')} "
        f"(d_model {model.d_model}, d_mlp {model.d_mlp}) that {TASK.verb} two {model.digits}-digit "
        "numbers"
    )
    if recipe is None:
        source = f" from `{shelf.config.source}`" if shelf.config.source else ""
        return f"{shape}, imported{source}."
    by = f"the recipe `{shelf.config.preset}`" if shelf.config.preset else "a recipe of its own"
    told = f"{shape}, trained by {by}, seed {recipe.seed}"
    if summary is None:
        return f"{told}."
    return f"{told}: {summary.steps:,} steps, {summary.questions_seen:,} questions."
