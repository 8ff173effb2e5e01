"""What a reader sees first: how often it is right, on what it fails, what to do about it.

In: the shelf of a run. Out: a section.
"""

from __future__ import annotations

from carryscope.certificate.finding import Certificate
from carryscope.core.words import (
    between,
    counted,
    counted_share,
    listed,
    percent,
    with_interval,
)
from carryscope.report.parts import Facts, KeyNumber, Numbers, Part, Section, Text
from carryscope.report.shelf import Shelf
from carryscope.report.words import PASSES, TASK, above, is_sum
from carryscope.task.operation import State
from carryscope.verification.guard import guard
from carryscope.verification.risk import RiskFinding
from carryscope.verification.risk_verdict import SAFE, UNSAFE, how_often, on_what


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
        Numbers(_numbers(shelf)),
        _judgement(shelf),
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


def _judgement(shelf: Shelf) -> Part:
    """Is it safe to use, on what not, and what to do about it?"""
    if shelf.risk is not None:
        proved = shelf.certificate.statement.partition(". ")[0] if shelf.certificate else ""
        facts = {
            "How often": how_often(shelf.risk),
            "On what": _kind(shelf.risk, shelf.config.model.digits),
            "What is proved": proved and f"{proved.rstrip('.')}.",
            "What to do": _advice(shelf.risk),
        }
        return Facts({name: text for name, text in facts.items() if text})
    if shelf.training is None:
        return Text(
            "This model was imported: how it was trained is not known here, and its failures have "
            "not been measured. Do not rely on it before they are.",
            lead=True,
        )
    right, exam = shelf.training.uniform_correct, shelf.training.curated_correct
    told = [f"{share.count} of {share.of} {name}" for name, share in exam.items()]
    return Text(
        f"Of {right.of:,} fresh uniform questions, {right.count:,} got the right answer "
        f"({between(right)}, 95 % confidence, free-running). Hard questions are rare among those: "
        f"of the curated ones it got {listed(told)} right. Where it is safe to use is not known "
        "until its risk is measured.",
        lead=True,
    )


def _kind(risk: RiskFinding, digits: int) -> str:
    """The kind of question that it fails on; its code is grey."""
    first = next(iter(risk.failures), None)
    if first is None or not is_sum(first.simplest, digits):
        return ""
    return on_what(risk).replace(f"({first.name},", f"(`{first.name}`,")


def _advice(risk: RiskFinding) -> str:
    """What a user can do: refuse what fails."""
    found = guard(risk)
    if found is None:
        lost = any(case.wrong.low >= UNSAFE for case in risk.cases)
        return "Do not use it: it does not add." if lost else ""
    columns = counted(found.columns, "neighbouring column")
    passing = TASK.columns[State.PROPAGATE] if found.columns > 1 else PASSES
    return (
        f"Refuse a {TASK.question} if {columns} {passing}: that is {percent(found.refused)} of all "
        f"{TASK.question}s. Of the others, {with_interval(found.wrong)} get a wrong answer."
    )


def _numbers(shelf: Shelf) -> list[KeyNumber]:
    """What is measured, what a guard leaves, and what is proved."""
    numbers: list[KeyNumber] = []
    if shelf.risk is not None:
        numbers += _measured(shelf.risk)
    elif shelf.training is not None:
        right, loss = shelf.training.uniform_correct, shelf.training.held_out_loss
        value = percent(right.estimate) if right.count else "none"
        detail = f"{between(right)}, {right.of:,} questions asked"
        numbers.append(KeyNumber(value, "of uniform questions right", detail))
        ends = f"{loss.low:.4f} to {loss.high:.4f}, {loss.of:,} enriched questions"
        numbers.append(KeyNumber(f"{loss.estimate:.4f}", "held-out loss", ends))
    return numbers + ([_proved(shelf.certificate)] if shelf.certificate is not None else [])


def _measured(risk: RiskFinding) -> list[KeyNumber]:
    wrong, found = risk.teacher_forced, guard(risk)
    known = f"{'all ' * risk.exhaustive}{risk.evaluated:,} questions asked"
    if wrong.low != wrong.high:
        known = f"{percent(1 - wrong.high)} to {percent(1 - wrong.low)}, {known}"
    numbers = [KeyNumber(percent(1 - wrong.estimate), "of all answers right", known)]
    if wrong.estimate:
        worst = max(risk.cases, key=lambda case: case.wrong.estimate)
        detail = f"worst: {above(worst)}, wrong in {percent(worst.wrong.estimate)}"
        numbers.append(KeyNumber(f"1 in {round(1 / wrong.estimate):,}", "answers wrong", detail))
    if found is not None:
        left = percent(found.wrong.estimate) if found.wrong.estimate else "none"
        detail = f"with {percent(found.refused)} of all {TASK.question}s refused"
        numbers.append(KeyNumber(left, "wrong behind a guard", detail))
    return numbers


def _proved(found: Certificate) -> KeyNumber:
    """Proved bounds, or how far the proof is as long as no whole answer is decided."""
    of, undecided = int(found.questions), int(found.undecided)
    if undecided == of:
        best = max(found.per_digit, key=lambda digit: int(digit.proved_right))
        share = counted_share(int(best.proved_right), of)
        return KeyNumber("none yet", "proved", f"furthest: {best.digit}, right in {share}")
    wrong = counted_share(int(found.proved_wrong), of)
    rest = counted_share(undecided, of, at_most=True)
    detail = f"{wrong} proved wrong, {rest} undecided"
    return KeyNumber(counted_share(int(found.proved_right), of), "proved right", detail)


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
