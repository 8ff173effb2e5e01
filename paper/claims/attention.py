"""Claims about where heads look: the double staircase, and two, three or four heads.

In: the attention of runs. Out: checks. Heads are named by what they read, because their numbers
mean nothing between seeds.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from carryscope.core.evidence import Share
from carryscope.dissection.attention import AttentionFinding, HeadRole, Overlap
from carryscope.dissection.reading import READS, column_shares
from carryscope.task.tokens import Format
from paper.claims.claims import Check, Claim, Number
from paper.claims.heads import adds, rises
from paper.claims.numbers import count, rate, share
from paper.claims.reading import Studies, Study

ROLES = ("own column", "one below", "two below")
"""What the three heads of the paper read, seen from the digit that is written."""


def staircase(claim: Claim, studies: Studies) -> list[Check]:
    """Three heads step down the question, each one column apart, and read both numbers."""
    return [check for study in studies.of(claim) for check in staircase_checks(study)]


def staircase_checks(study: Study) -> list[Check]:
    """The double staircase of one run, three blocks wide."""
    found = study.attention
    stepping = [head for head in found.heads if head.role is not None]
    paired = _both_numbers(found, stepping)
    return [
        Check(
            what=f"a head of {study.name} steps down at {role}",
            holds=any(head.role == role for head in stepping),
            numbers=[_steps(study, role)],
        )
        for role in ROLES
    ] + [
        Check(
            what=f"at each step of {study.name} a digit of either number is read",
            holds=paired.of > 0 and paired.count == paired.of,
            numbers=[
                share("steps that read both numbers", study, paired, of_what="steps of heads")
            ],
        )
    ]


def _steps(study: Study, role: str) -> Number:
    """Rows at which the head of a role reads its column; of several, the one that does most."""
    offset = ROLES.index(role)
    heads = [head for head in study.attention.heads if head.offset == offset]
    best = max(heads, key=lambda head: head.rows, default=None)
    found = best.rows / best.of if best and best.of else None
    return rate(f"{role}, rows", study, found, best.of if best else 0, of_what="rows")


def _both_numbers(found: AttentionFinding, stepping: list[HeadRole]) -> Share:
    """Steps at which the column's two tokens are both among those the head attends to most."""
    steps = [
        reading
        for head in stepping
        for reading in found.readings
        if (reading.layer, reading.head) == (head.layer, head.head)
        and reading.column is not None
        and reading.answer == f"A{reading.column + head.offset}"
    ]
    both = sum({f"D{r.column}", f"D'{r.column}"} <= set(r.tokens) for r in steps)
    return Share.measured(both, len(steps))


def clearest_with_three(claim: Claim, studies: Studies) -> list[Check]:
    """Of two, three and four heads, three read one column at a time most often."""
    three, *others = studies.of(claim)
    best = _single(three)
    checks = [
        Check(
            what=f"heads of {three.name} read one column more often than those of {other.name}",
            holds=best.low > _single(other).high,
            numbers=[
                share(study.name, study, _single(study), of_what="heads and rows")
                for study in (three, other)
            ],
        )
        for other in others
    ]
    overlaps = [pair.overlap for pair in three.attention.overlaps]
    widest = max(overlaps, key=lambda overlap: overlap.estimate)
    apart = Check(
        what=f"no two heads of {three.name} share half of their attention",
        holds=widest.high < READS,
        numbers=[rate("largest overlap of two heads", three, widest, widest.of)],
    )
    return [*staircase_checks(three)[:3], *checks, apart]


def _single(study: Study) -> Share:
    """Heads and rows at which one column gets more than half of the attention."""
    readings = study.attention.readings
    return Share.measured(sum(r.column is not None for r in readings), len(readings))


def two_heads_pack(claim: Claim, studies: Studies) -> list[Check]:
    """With two heads, heads read two columns at once, and more so than with three."""
    two, three = studies.of(claim)
    packed = {study.name: packing(study.attention, study.layout) for study in (two, three)}
    numbers = [
        share(study.name, study, packed[study.name], of_what="heads and rows")
        for study in (two, three)
    ]
    return [
        adds(two),
        Check(
            what=f"heads of {two.name} read two columns at once somewhere",
            holds=packed[two.name].count > 0,
            numbers=numbers[:1],
            role="core",
        ),
        Check(
            what=f"they do so more often than those of {three.name}",
            holds=packed[two.name].low > packed[three.name].high,
            numbers=numbers,
        ),
    ]


def packing(found: AttentionFinding, layout: Format) -> Share:
    """Heads and rows at which two columns get more than half of the attention, but none alone."""
    patterns = np.mean([np.array(pattern) for pattern in found.patterns.values()], axis=0)
    shares = column_shares(patterns, layout)
    packed = total = 0
    for layer, head, row in product(*map(range, shares.shape[:3])):
        ordered = np.sort(shares[layer, head, row])[::-1]
        packed += bool(ordered[0] <= READS < ordered[:2].sum())
        total += 1
    return Share.measured(packed, total)


def four_heads_split(claim: Claim, studies: Studies) -> list[Check]:
    """With four heads, two step together, and each of them is needed."""
    (study,) = studies.of(claim)
    roles = {(head.layer, head.head): head.role for head in study.attention.heads}
    pairs = study.attention.overlaps
    together = [
        pair
        for pair in pairs
        if None is not roles[pair.layer, pair.heads[0]] == roles[pair.layer, pair.heads[1]]
    ]
    checks = [
        Check(
            what="two heads read the same columns, row by row",
            holds=bool(together),
            numbers=[
                count("pairs that do", study, len(together), of=len(pairs), of_what="pairs"),
                *(_same_tokens(study, pair) for pair in together),
            ],
            role="core",
        )
    ]
    heads = sorted({(pair.layer, head) for pair in together for head in pair.heads})
    return [*checks, *(rises(study, layer, head) for layer, head in heads)]


def _same_tokens(study: Study, pair: Overlap) -> Number:
    """How much attention two heads give to the same tokens, question by question."""
    first, second = pair.heads
    what = f"attention that H{first} and H{second} give to the same tokens"
    return rate(what, study, pair.overlap, pair.overlap.of)


def all_heads_useful(claim: Claim, studies: Studies) -> list[Check]:
    """Without any one head the loss rises."""
    (study,) = studies.of(claim)
    heads = [(role.layer, role.head) for role in study.attention.heads]
    return [adds(study), *(rises(study, layer, head) for layer, head in heads)]
