"""What a reader sees first: what was trained, how often it is right, on what not to use it.

In: the shelf of a run. Out: a section. The judgement is that of the risk finding, word for word.
"""

from __future__ import annotations

import shlex

from carryscope.certificate.finding import Certificate
from carryscope.core.words import between, counted, counted_share, listed, percent
from carryscope.report.page.parts import Missing, Number, Numbers, Part, Section, Text
from carryscope.report.shelf import Shelf
from carryscope.verification.risk_finding import RiskFinding
from carryscope.verification.risk_verdict import SAFE, UNSAFE


def verdict_section(shelf: Shelf) -> Section:
    """The verdict."""
    parts: list[Part] = [
        *_numbers(shelf),
        Text(_judgement(shelf), lead=True),
        *([Text(shelf.certificate.statement)] if shelf.certificate is not None else []),
        Text(trained(shelf)),
    ]
    if shelf.risk is None:
        why = shelf.refused.get("risk", "")
        what = "How often it fails over all questions, and on which"
        parts.append(Missing(what, f"carryscope risk {shlex.quote(shelf.where)}", why))
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
        columns = counted(min(unsafe), "column")
        return f"{right}; not safe where {columns} or more in a row sum to 9"
    if all(case.wrong.high <= SAFE for case in risk.cases):
        return f"{right}, and safe at every look-ahead that was tried"
    return f"{right}; no look-ahead was found unsafe"


def _judgement(shelf: Shelf) -> str:
    """Is it safe to use, and on what not?"""
    if shelf.risk is not None:
        return shelf.risk.verdict
    if shelf.training is None:
        return (
            "This model was imported: nothing is known here about how it was trained, and its "
            "failures have not been measured. Do not rely on it before they are."
        )
    right, exam = shelf.training.uniform_correct, shelf.training.curated_correct
    told = [f"{name} {share.count} of {share.of}" for name, share in exam.items()]
    return (
        f"Of {right.of:,} fresh uniform questions {right.count:,} got the right answer "
        f"({between(right)}, 95 % confidence, free-running). Hard questions are rare among those: "
        f"of the curated ones it got right {listed(told)}. Whether it is safe to use, and on what "
        "not, is not known until its risk is measured."
    )


def _numbers(shelf: Shelf) -> list[Numbers]:
    """What is known, and on a line of its own what is proved."""
    proved = _proved(shelf)
    if len(proved) > 1:
        return [Numbers([*_right(shelf), *_work(shelf)]), Numbers(proved)]
    return [Numbers([*_right(shelf), *proved, *_work(shelf)])]


def _right(shelf: Shelf) -> list[Number]:
    if shelf.risk is not None:
        wrong = shelf.risk.teacher_forced
        asked = f"{shelf.risk.evaluated:,} questions asked"
        known = "every question was asked" if shelf.risk.exhaustive else asked
        interval = "" if wrong.low == wrong.high else f"{percent(1 - wrong.high)} to "
        interval += "" if wrong.low == wrong.high else f"{percent(1 - wrong.low)}, "
        share = Number(percent(1 - wrong.estimate), "of all answers right", interval + known)
        if not wrong.estimate:
            return [share]
        rare = Number(f"1 in {round(1 / wrong.estimate):,}", "answers wrong", _worst(shelf.risk))
        return [share, rare]
    if shelf.training is not None:
        right = shelf.training.uniform_correct
        detail = f"{between(right)}, {right.of:,} questions asked"
        value = percent(right.estimate) if right.count else "none"
        return [Number(value, "of uniform questions right", detail)]
    return []


def _worst(risk: RiskFinding) -> str:
    worst = max(risk.cases, key=lambda case: case.wrong.estimate)
    kind = f"{worst.digit} above {counted(worst.depth, 'nine')}"
    return f"worst: {kind}, wrong in {percent(worst.wrong.estimate)}"


def _proved(shelf: Shelf) -> list[Number]:
    """Proved bounds, or how far the proof is as long as no whole answer is decided."""
    found = shelf.certificate
    if found is None:
        return []
    of, undecided = int(found.questions), int(found.undecided)
    if undecided == of:
        return [Number("none yet", "of all answers proved", _nearest(found))]
    right, wrong = int(found.proved_right), int(found.proved_wrong)
    open_ = "every question is decided" if not undecided else "of all answers, at most"
    return [
        Number(counted_share(right, of), "proved right", _least(right, of)),
        Number(counted_share(wrong, of), "proved wrong", _least(wrong, of)),
        Number(counted_share(undecided, of, at_most=True), "undecided", open_),
    ]


def _least(part: int, of: int) -> str:
    return "of all answers" if part == of else "of all answers, at least"


def _nearest(found: Certificate) -> str:
    """The token of which most is proved."""
    of = int(found.questions)
    best = max(found.per_digit, key=lambda digit: int(digit.proved_right))
    return f"furthest: {best.digit}, right in {counted_share(int(best.proved_right), of)}"


def _work(shelf: Shelf) -> list[Number]:
    model = shelf.config.model
    shape = f"{counted(model.layers, 'layer')}, {counted(model.heads, 'head')}"
    numbers = [Number(f"{model.digits}", "digits a number", f"{shape}, {model.format} format")]
    if shelf.training is not None:
        loss = shelf.training.held_out_loss
        detail = f"{loss.low:.4f} to {loss.high:.4f}, {loss.of:,} enriched questions"
        numbers.append(Number(f"{loss.estimate:.4f}", "held-out loss", detail))
    return numbers


def trained(shelf: Shelf) -> str:
    """What was trained, in a sentence."""
    model, recipe, summary = shelf.config.model, shelf.config.training, shelf.training
    shape = (
        f"A transformer with {counted(model.layers, 'layer')} and {counted(model.heads, 'head')} "
        f"(d_model {model.d_model}, d_mlp {model.d_mlp}) that adds two {model.digits}-digit numbers"
    )
    if recipe is None:
        source = f" from `{shelf.config.source}`" if shelf.config.source else ""
        return f"{shape}, imported{source}."
    by = f"the recipe `{shelf.config.preset}`" if shelf.config.preset else "a recipe of its own"
    told = f"{shape}, trained by {by}, seed {recipe.seed}"
    if summary is None:
        return f"{told}."
    return f"{told}: {summary.steps:,} steps, {summary.questions_seen:,} questions."
