"""Claims about what each head does: how much is lost without it, and what it carries.

In: head and node ablations, and the purposes found by interchange. Out: checks.
"""

from __future__ import annotations

from collections.abc import Sequence

from carryscope.core.evidence import Mean, Share
from carryscope.dissection.heads import HeadEffect
from carryscope.dissection.keys import SURE
from carryscope.dissection.nodes import NodeEffect
from carryscope.dissection.purposes import Purpose, SubtasksFinding
from carryscope.dissection.rows import PAPER_THRESHOLD
from carryscope.task.columns import QuestionClass
from paper.claims.claims import Check, Claim, Number
from paper.claims.numbers import at_least, count, loss, rate, share
from paper.claims.reading import Studies, Study

STANDS_OUT = 2
"""Times the loss without the next head; the paper's table has more than 70 times."""

BASE_ADD_LEAST = "head.base-add.text"
"""The smaller of the two losses the paper gives for its base-add head taken away."""


def without_head(study: Study, layer: int, head: int, kind: QuestionClass) -> HeadEffect:
    """Questions of a class with one head set to its mean at all rows."""
    return next(
        effect
        for effect in study.heads.effects
        if (effect.layer, effect.head, effect.how) == (layer, head, "mean")
        and effect.question_class == kind.label
    )


def adds(study: Study) -> Check:
    """Whether there is anything to take away, or to look at: a model that adds."""
    wrong = study.risk.teacher_forced
    return Check(
        what=f"{study.name} answers more than half of all questions right",
        holds=wrong.high < 0.5,
        numbers=[rate("wrong answers", study, wrong, study.risk.evaluated)],
        role="premise",
    )


def rises(study: Study, layer: int, head: int) -> Check:
    """Without a head the loss rises, on the class of questions that suffers most from it."""
    kinds = [k for k in QuestionClass if any(e.question_class == k.label for e in _whole(study))]

    def rise(kind: QuestionClass) -> float:
        without = without_head(study, layer, head, kind).loss
        return without.low - study.whole(kind).loss.high

    worst = max(kinds, key=rise)
    return Check(
        what=f"without L{layer}H{head} the loss on {worst.label} questions rises",
        holds=rise(worst) > 0,
        numbers=[
            loss(f"without L{layer}H{head}", study, without_head(study, layer, head, worst).loss),
            loss("with it", study, study.whole(worst).loss),
        ],
    )


def _whole(study: Study) -> list[HeadEffect]:
    return [effect for effect in study.heads.effects if effect.head is None]


def base_add_head(claim: Claim, studies: Studies) -> list[Check]:
    """One head carries BA, it reads its own column, and BA hardly needs the others."""
    (study,) = studies.of(claim)
    heads = [(role.layer, role.head) for role in study.attention.heads]
    losses = {h: without_head(study, *h, QuestionClass.BA).loss for h in heads}
    first, *others = sorted(heads, key=lambda head: -losses[head].estimate)
    whole, role = study.whole(QuestionClass.BA).loss, study.heads.base_add_role
    second = losses[others[0]].high if others else 0.0
    least = at_least(BASE_ADD_LEAST)
    needed = loss(f"without L{first[0]}H{first[1]}", study, losses[first], paper="head.base-add")
    return [
        Check(
            what="one head stands out: without it BA questions have more than "
            f"{STANDS_OUT} times the loss than without any other",
            holds=study.heads.base_add_head is not None and losses[first].low > STANDS_OUT * second,
            numbers=[needed, *(_other(study, head, losses[head]) for head in others)],
            role="core",
        ),
        Check(
            what=f"that head reads its own column (it reads: {role or 'no column by itself'})",
            holds=role == "own column",
            numbers=[],
        ),
        Check(
            what=f"without it the loss on BA questions is at least {least:g}",
            holds=losses[first].high >= least,
            numbers=[needed],
        ),
    ] + [
        Check(
            what=f"without L{head[0]}H{head[1]} it rises by at most {PAPER_THRESHOLD} (estimated)",
            holds=losses[head].estimate <= whole.estimate + PAPER_THRESHOLD,
            numbers=[_other(study, head, losses[head]), loss("with all heads", study, whole)],
        )
        for head in others
    ]


def _other(study: Study, head: tuple[int, int], value: Mean) -> Number:
    return loss(f"without L{head[0]}H{head[1]}", study, value, paper="head.others")


def head_ranking(claim: Claim, studies: Studies) -> list[Check]:
    """At A3's row the own-column head matters most, one below less, two below least."""
    (study,) = studies.of(claim)
    row = study.layout.context - 2 - 3
    having = [role for role in study.attention.heads if role.role is not None]
    nodes = sorted((_node(study, row, role.head) for role in having), key=_lost)
    offsets = {role.head: role.offset for role in having}
    by_offset = {offsets[node.head]: node for node in nodes if node.head is not None}
    names = {0: "own column", 1: "one below", 2: "two below"}
    checks = []
    for more, less in ((0, 1), (1, 2)):
        ours, theirs = (_wrong(by_offset.get(offset)) for offset in (more, less))
        checks.append(
            Check(
                what=f"A3 suffers more without the head of {names[more]} than of {names[less]}",
                holds=ours.of > 0 and theirs.of > 0 and ours.low > theirs.high,
                numbers=[share(names[more], study, ours), share(names[less], study, theirs)],
            )
        )
    return checks


def _node(study: Study, row: int, head: int) -> NodeEffect:
    return next(node for node in study.nodes.nodes if (node.row, node.head) == (row, head))


def _lost(node: NodeEffect) -> float:
    """How much is lost at A3 without a head. Of two with the same role the more useful counts."""
    return _wrong(node).estimate


def _wrong(node: NodeEffect | None) -> Share:
    """Answers that were right and no longer are at A3; no data if no head has the role."""
    if node is None:
        return Share.measured(0, 0)
    return node.digits.get("A3", Share.measured(0, node.fails.of))


def head_tasks(claim: Claim, studies: Studies) -> list[Check]:
    """At every digit in the middle: BA, the state one below and MC1 two below, a head each."""
    return [check for study in studies.of(claim) for check in _head_tasks(study)]


def _head_tasks(study: Study) -> list[Check]:
    digits = range(study.digits - 2, 1, -1)
    wanted = [
        ("BA", "BA of its own column", ("BA",), 0),
        ("state", "MC1 and MS9 (the state) of the column below", ("state",), 1),
        ("MC1", "MC1 of the column two below", ("MC1", "state"), 2),
    ]
    checks = []
    for name, what, kinds, below in wanted:
        found = [p for k in digits if (p := _carried(study.subtasks, k, kinds, k - below))]
        checks.append(
            Check(
                what=f"at each of A{digits[0]} to A2 of {study.name} one head carries {what}",
                holds=len(found) == len(digits),
                numbers=_found(study, name, found, len(digits)),
            )
        )
    return checks


def _carried(
    subtasks: SubtasksFinding, k: int, kinds: Sequence[str], column: int
) -> Purpose | None:
    """The purpose of one head, by itself, for a digit: one of these kinds, of this column."""
    return next(
        (
            p
            for p in subtasks.purposes
            if p.digit == f"A{k}" and len(p.heads) == 1 and p.column == column and p.kind in kinds
        ),
        None,
    )


def _found(study: Study, name: str, found: Sequence[Purpose], of: int) -> list[Number]:
    """At how many digits, and how well the answers follow where they do least."""
    numbers = [count(f"digits with {name}", study, len(found), of=of, of_what="digits")]
    if found:
        least = min(found, key=lambda p: p.follows.estimate).follows
        numbers.append(share(f"{name} followed at the least", study, least, of_what="pairs"))
    return numbers


def last_digits(claim: Claim, studies: Studies) -> list[Check]:
    """A1 needs BA and the carry of column 0, A0 needs BA alone; and that decides them."""
    (study,) = studies.of(claim)
    wanted = [
        ("A1", "BA(1)", _carried(study.subtasks, 1, ("BA",), 1)),
        ("A1", "MC1(0)", _carried(study.subtasks, 1, ("MC1", "state"), 0)),
        ("A0", "BA(0)", _carried(study.subtasks, 0, ("BA", "digit"), 0)),
    ]
    checks = [
        Check(
            what=f"for {digit} one head carries {what}",
            holds=purpose is not None,
            numbers=_found(study, f"{digit} {what}", [purpose] if purpose else [], 1),
        )
        for digit, what, purpose in wanted
    ]
    for test in study.mlp.digits:
        if test.digit in ("A1", "A0"):
            checks.append(
                Check(
                    what=f"these decide {test.digit}: it follows a swapped key",
                    holds=test.kept.low > SURE and test.follows.low > SURE,
                    numbers=[
                        share(
                            f"{test.digit} stays with the same key",
                            study,
                            test.kept,
                            of_what="swaps",
                        ),
                        share(
                            f"{test.digit} follows another", study, test.follows, of_what="swaps"
                        ),
                    ],
                )
            )
    return checks
