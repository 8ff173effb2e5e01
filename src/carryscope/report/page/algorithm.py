"""How the model adds, in five sentences that follow from its findings and change with them.

In: findings. Out: sentences: what the heads read, what they carry, what the MLP makes of it, how
far a carry is followed, where that ends. Where something was looked for and not found, the
sentence says so; where it was not looked for, there is none.
"""

from __future__ import annotations

from carryscope.core.evidence import Share
from carryscope.core.words import counted, listed, percent, place_of, spanned
from carryscope.dissection.attention import AttentionFinding, role_name
from carryscope.dissection.findings import Dissection
from carryscope.dissection.first_digits import FirstDigitsFinding, Rule
from carryscope.dissection.keys import KeyTest
from carryscope.dissection.purposes import Purpose, SubtasksFinding
from carryscope.report.drawing import head_name
from carryscope.report.shelf import Shelf
from carryscope.verification.risk_finding import CaseRisk, RiskFinding
from carryscope.verification.risk_verdict import UNSAFE

CARRIED = {
    "BA": "the base sum (BA) of {column}",
    "MC1": "whether {column} makes a carry (MC1)",
    "MS9": "whether {column} sums to 9 (MS9)",
    "state": "whether {column} makes a carry, passes one on or neither (its state)",
    "carry_in": "the carry that arrives at {column}",
    "digit": "the finished digit",
}
"""What a part can carry, in words."""


def algorithm_title(dissection: Dissection | None) -> str:
    """What to call the sentences: an algorithm takes heads that step, and work that they do."""
    if dissection is None or dissection.attention is None or dissection.subtasks is None:
        return "What is known so far"
    stepping = dissection.attention.staircase == "present"
    found = stepping and bool(dissection.subtasks.purposes)
    return "The algorithm" if found else "No algorithm was found"


def algorithm_sentences(shelf: Shelf) -> list[str]:
    """The five sentences, or as many as there are findings for."""
    found = shelf.dissection
    told: list[str] = []
    if found is not None:
        told += [_reads(found.attention, found.model.layers)] if found.attention else []
        told += [_carries(found.subtasks, found.model.layers)] if found.subtasks else []
        told += [_combines(found)] if found.mlp or not found.model.d_mlp else []
        told += [_follows(found.first_digits)] if found.first_digits else []
    return told + ([_ends(shelf.risk)] if shelf.risk else [])


def _reads(finding: AttentionFinding, layers: int) -> str:
    stepping = [head for head in finding.heads if head.role is not None]
    if not stepping:
        return (
            'There is no staircase: from "=" on no head reads one pair of digits after the other, '
            "so where the heads look does not explain the answers."
        )
    told = [f"{head_name(h.layer, h.head, layers)} reads {_column(h.offset)}" for h in stepping]
    rest = [head_name(h.layer, h.head, layers) for h in finding.heads if h.role is None]
    without = f"; {listed(rest)}: no one column" if rest else ""
    return (
        f'From "=" on every row writes one digit: to write it {listed(told)}, and from row to row '
        f"they step one column to the right{without}."
    )


def _column(below: int) -> str:
    return "the digit's own column" if below == 0 else f"the column {role_name(below)}"


def _carries(finding: SubtasksFinding, layers: int) -> str:
    jobs: dict[str, dict[str, list[str]]] = {}
    for p in finding.purposes:
        if p.heads:
            work = CARRIED[p.kind].format(column=_place(p)) if p.kind in CARRIED else p.kind
            jobs.setdefault(_heads(p, layers), {}).setdefault(work, []).append(p.digit)
    if not jobs:
        return "No head was found to carry any sub-task of addition."
    told = []
    for heads, works in sorted(jobs.items()):
        work, digits = max(works.items(), key=lambda item: len(item[1]))
        told.append(f"{heads} {work}, for {spanned(digits)}")
    mostly = "mostly " if any(len(works) > 1 for works in jobs.values()) else ""
    return f"Exchanging heads between questions shows what they {mostly}carry: {'; '.join(told)}."


def _heads(purpose: Purpose, layers: int) -> str:
    return "+".join(head_name(purpose.layer, head, layers) for head in purpose.heads)


def _place(purpose: Purpose) -> str:
    digit = place_of(purpose.digit)
    return f"column {purpose.column}" if digit is None else _column(digit - purpose.column)


def _combines(found: Dissection) -> str:
    if found.mlp is None:
        return "There is no MLP: what the heads write is added up and read off."
    tests = found.mlp.digits
    kept, follows = _all([t.kept for t in tests]), _all([t.follows for t in tests])
    if follows.low <= 0.5:
        return (
            "The MLP does not look its answer up by the paper's keys: given another question's "
            f"attention output with another key, the digit follows in {percent(follows.estimate)} "
            "of swaps only."
        )
    return (
        "The MLP makes the digit of this as if by a table with the keys base sum, state one below "
        "and carry two below: with the attention output of another question of the same key the "
        f"digit stays in {percent(kept.estimate)} of swaps, with that of another key it turns "
        f"into that key's digit in {percent(follows.estimate)}{_weakest(tests)}."
    )


def _weakest(tests: list[KeyTest]) -> str:
    weakest = min(tests, key=lambda test: test.follows.low)
    return f", least in {weakest.digit} ({percent(weakest.follows.estimate)})"


def _all(shares: list[Share]) -> Share:
    return Share.measured(sum(s.count for s in shares), sum(s.of for s in shares))


def _follows(finding: FirstDigitsFinding) -> str:
    reaching = [rule for rule in finding.rules if rule.reach]
    if not reaching:
        names = listed([rule.digit for rule in finding.rules])
        return f"No carry is followed: {names} do not change with the columns below them."
    depths: dict[int, list[str]] = {}
    for rule in reaching:
        depths.setdefault(rule.reach - 1, []).append(rule.digit)
    told = [f"through {counted(n, 'nine')} by {listed(by)}" for n, by in depths.items()]
    token = [rule for rule in finding.rules if rule.reads_token]
    return f"A carry is surely followed {listed(told)}{''.join(map(_token, token))}."


def _token(rule: Rule) -> str:
    return f"; where its own column sums to 9, {rule.digit} goes by the digit just written"


def _ends(finding: RiskFinding) -> str:
    unsafe = [case for case in finding.cases if case.wrong.low >= UNSAFE]
    if not unsafe:
        worst = max(finding.cases, key=lambda case: case.wrong.high)
        return (
            f"No look-ahead was found unsafe: the worst digit, {_above(worst)}, is wrong in at "
            f"most {percent(worst.wrong.high)}."
        )
    least, worst = min(c.depth for c in unsafe), max(unsafe, key=lambda c: c.wrong.estimate)
    if least == 0:
        return (
            f"It does not add: even {_above(min(unsafe, key=lambda c: c.depth))} digits are wrong, "
            f"and the worst, {_above(worst)}, in {percent(worst.wrong.estimate)}."
        )
    return (
        f"There it ends: with {counted(least, 'nine')} below or more, digits go wrong, the worst, "
        f"{_above(worst)}, in {percent(worst.wrong.estimate)} of such questions."
    )


def _above(case: CaseRisk) -> str:
    kind = "carrying" if case.carrying else "quiet"
    return f"{case.digit} above {counted(case.depth, 'nine')} ({kind})"
