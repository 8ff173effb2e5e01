"""The verdict on faithfulness: one paragraph, generated from the numbers.

In: the parts of the finding. Out: text for someone who must decide what to trust the model with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from carryscope.core.evidence import Share
from carryscope.verification.agreement import Agreement, AgreementFinding
from carryscope.verification.estimate import Rate
from carryscope.verification.scrubbing import Scrubbed
from carryscope.verification.stratified import WeightedShare
from carryscope.verification.table import LearnedDigit

TELLS_ANSWERS = 0.99
"""An algorithm tells a model's answers if it surely gives the same in so many questions."""

TELLS_ERRORS = 0.9
"""It tells the errors if, where either is wrong, both surely say the same so often."""


def faithfulness_verdict(
    agreement: AgreementFinding, inside: Sequence[Scrubbed], table: Sequence[LearnedDigit]
) -> str:
    """What the numbers come to."""
    if agreement.best is None:
        return (
            f"None of the {_candidates(agreement)} algorithms describes this model: no whole "
            f"answer of its {agreement.questions:,} was that of any. Nothing follows from them."
        )
    parts = [
        _headline(agreement),
        _ranking(agreement),
        _errors(agreement),
        _inside(agreement, inside),
        _table(table),
        _parting(agreement),
    ]
    return " ".join(part for part in parts if part)


def _candidates(agreement: AgreementFinding) -> int:
    return sum(not one.control and one.same_as is None for one in agreement.algorithms)


def _headline(agreement: AgreementFinding) -> str:
    best = agreement.of(str(agreement.best))
    if best.answer.agreement.low < TELLS_ANSWERS:
        return (
            "None of the algorithms describes this model: what they get right or wrong says "
            "nothing reliable about it."
        )
    alike = best.answer.errors_alike
    if alike is None:
        return f"On all that was asked this model does as {best.name} does, without an error."
    if alike.low >= TELLS_ERRORS:
        return (
            f"{_opening(best.name)} tells what this model says, errors included: where the "
            "algorithm fails the model fails, and hardly anywhere else."
        )
    return (
        f"{_opening(best.name)} tells most of what this model says but not where it fails: do not "
        "rely on it to decide which answers to trust."
    )


def _ranking(agreement: AgreementFinding) -> str:
    best = agreement.of(str(agreement.best)).answer.agreement
    told = (
        f"Of {_candidates(agreement)} algorithms, {agreement.best} agrees best: it gives the same "
        f"whole answer in {_rate(best)} of all questions (teacher-forced)"
    )
    gap = agreement.difference
    if gap is None:
        return f"{told}."
    points = f"{_points(gap.estimate)} ({_points(gap.low)} to {_points(gap.high)})"
    if gap.low > 0:
        return f"{told}, {points} percentage points more than the runner-up, {agreement.runner_up}."
    return (
        f"{told}. The runner-up, {agreement.runner_up}, cannot be told from it: they differ by "
        f"{points} percentage points."
    )


def _errors(agreement: AgreementFinding) -> str:
    best = agreement.of(str(agreement.best)).answer
    if best.also_wrong is None:
        return "The model made no error in the sample, so there are none to compare."
    told = f"The model fails on {_rate(best.model_wrong)}."
    if agreement.best_on_errors is None:
        return f"{told} No algorithm shares any of these errors."
    nearest = agreement.of(agreement.best_on_errors)
    return f"{told} Its errors are told best by {nearest.name}: {_error_shares(nearest.answer)}."


def _error_shares(found: Agreement) -> str:
    also, same = found.also_wrong, found.same_wrong
    assert also is not None
    assert same is not None
    told = f"the algorithm makes {_share(also)} of them, {_share(same)} with the same answer"
    if found.model_also_wrong is not None:
        told += f", and the model makes {_share(found.model_also_wrong)} of the algorithm's"
    if found.left_wrong is not None:
        told += (
            f"; not asking the {_percent(found.algorithm_wrong.estimate)} of questions that the "
            f"algorithm gets wrong would leave failures on {_share(found.left_wrong)}"
        )
    return told


def _inside(agreement: AgreementFinding, inside: Sequence[Scrubbed]) -> str:
    claimed = {agreement.best, agreement.best_on_errors} - {None}
    told = [_kept(one) for one in inside if one.name in claimed]
    control = next(one for one in inside if one.control)
    return (
        "Inside, with all that an algorithm calls irrelevant exchanged for other questions' at "
        f"once, answer digits stay for {'; for '.join(told)}; for an algorithm about the wrong "
        f"columns in {_counted(control.joint.overall)}."
    )


def _kept(one: Scrubbed) -> str:
    told = f"{one.name} in {_counted(one.joint.overall)}"
    if one.heads is not None:
        told += f" (head by head {_counted(one.heads.overall)})"
    digit, least = min(one.joint.digits.items(), key=lambda pair: pair[1].estimate)
    return told if least.count == least.of else f"{told}, least at {digit} ({_counted(least)})"


def _table(table: Sequence[LearnedDigit]) -> str:
    entries = [(digit.digit, entry) for digit in table for entry in digit.entries]
    differing = [digit.digit for digit in table for _ in digit.differing]
    impure = sum(entry.next_token is not None for _, entry in entries)
    if differing:
        where = f" (at {', '.join(dict.fromkeys(differing))})"
        first = f"In {len(differing)} of {len(entries)} keys of the learned table{where} its digit "
        first += "is not Algorithm 1's"
    else:
        first = f"In all {len(entries)} keys of the learned table its usual digit is Algorithm 1's"
    if not impure:
        return f"{first}, and it never gives another."
    digit, least = min(entries, key=lambda pair: pair[1].purity.estimate)
    return f"{first}; in {impure} it also gives others, down to {_share(least.purity)} at {digit}."


def _parting(agreement: AgreementFinding) -> str:
    best = agreement.of(str(agreement.best))
    if not best.worst:
        return ""
    w = best.worst[0]
    return (
        f"{_opening(best.name)} and the model part most in the stratum {w.stratum}, as in "
        f"{w.example}: {w.model} says the model, {w.algorithm} the algorithm."
    )


def _opening(name: str) -> str:
    return name[:1].upper() + name[1:]


def _percent(share: float) -> str:
    """A share with three digits of its distance from 0 or 1."""
    near = min(share, 1 - share)
    if near <= 0:
        return f"{share:.0%}"
    decimals = max(1, min(6, 2 - math.floor(math.log10(100 * near))))
    return f"{share:.{decimals}%}"


def _rate(rate: Rate) -> str:
    return f"{_percent(rate.estimate)} ({_percent(rate.low)} to {_percent(rate.high)})"


def _share(share: WeightedShare) -> str:
    return f"{_percent(share.estimate)} ({_percent(share.low)} to {_percent(share.high)})"


def _counted(share: Share) -> str:
    return _percent(share.estimate)


def _points(difference: float) -> str:
    return f"{100 * difference:.3g}"
