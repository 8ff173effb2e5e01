"""Claims about carries: simple US9 and cascades by length, 99999+1, and the first digits.

In: the exam by look-ahead, losses by question class, and the rules of the first digits. Out:
checks. Wrong digits are counted teacher-forced, whole answers in either way alike.
"""

from __future__ import annotations

from typing import Literal

from carryscope.core.evidence import Share
from carryscope.dissection.first_digits import Rule
from carryscope.dissection.rows import PAPER_THRESHOLD
from carryscope.task.columns import QuestionClass
from carryscope.task.strata import LookAhead
from carryscope.verification.risk_verdict import UNSAFE
from paper.claims.claims import Check, Claim, Number
from paper.claims.numbers import count, loss, share
from paper.claims.reading import NotMeasured, Studies, Study, reproduce
from paper.exam import case_of


def wrong_at_depth(study: Study, depth: int) -> Number:
    """How often a digit is wrong whose carry came through so many nines, at any place alike."""
    if depth >= study.digits:
        return share(_nines(depth), study, Share.measured(0, 0), of_what="answer digits")
    case = case_of(LookAhead(study.digits, depth, True))
    right = [cell.right for cell in study.exam.right if cell.case == case]
    total = sum(cell.of for cell in right)
    wrong = Share.measured(total - sum(cell.count for cell in right), total)
    return share(_nines(depth), study, wrong, of_what="answer digits")


def _nines(depth: int) -> str:
    return f"wrong after {depth} nine{'s' * (depth != 1)}"


def _safe_at(study: Study, depth: int, *, role: Literal["part", "premise"] = "part") -> Check:
    wrong = wrong_at_depth(study, depth)
    return Check(
        what=f"digits of {study.name} whose carry came through {depth or 'no'} "
        f"nine{'s' * (depth != 1)} are wrong less than {UNSAFE:.0%} of the time",
        holds=wrong.high is not None and wrong.high < UNSAFE,
        numbers=[wrong],
        role=role,
    )


def simple_us9_works(claim: Claim, studies: Studies) -> list[Check]:
    """Carries that came through one nine arrive, and such questions have little loss."""
    checks = []
    for study in studies.of(claim):
        value = study.whole(QuestionClass.SIMPLE_US9).loss
        checks += [
            Check(
                what=f"the loss of {study.name} on simple US9 is below {PAPER_THRESHOLD}",
                holds=value.high < PAPER_THRESHOLD,
                numbers=[loss("simple US9", study, value)],
            ),
            _safe_at(study, 1),
        ]
    return checks


def cascades_fail(claim: Claim, studies: Studies) -> list[Check]:
    """Carries that came through two nines or more do not arrive safely, at any length."""
    checks = []
    for study in studies.of(claim):
        value = study.whole(QuestionClass.CASCADE_US9).loss
        checks += [
            _safe_at(study, 1, role="premise"),
            Check(
                what=f"the loss of {study.name} on cascades is above {PAPER_THRESHOLD}",
                holds=value.low > PAPER_THRESHOLD,
                numbers=[loss("cascade US9", study, value)],
            ),
        ]
        for depth in range(2, study.digits):
            wrong = wrong_at_depth(study, depth)
            checks.append(
                Check(
                    what=f"digits of {study.name} whose carry came through {depth} nines are "
                    f"wrong more than {UNSAFE:.0%} of the time",
                    holds=wrong.low is not None and wrong.low > UNSAFE,
                    numbers=[wrong],
                )
            )
    return checks


def nines_plus_one(claim: Claim, studies: Studies) -> list[Check]:
    """Questions in which a carry runs through all columns, as in 99999+1, fail."""
    checks = []
    for study in studies.of(claim):
        right = study.exam.through_all
        wrong = Share.measured(right.of - right.count, right.of)
        number = share("whole answers wrong", study, wrong)
        checks += [
            _safe_at(study, 0, role="premise"),
            Check(
                what=f"{study.name} fails more than {UNSAFE:.0%} of questions like "
                f"{'9' * study.digits}+1",
                holds=number.low is not None and number.low > UNSAFE,
                numbers=[number],
            ),
        ]
    return checks


def _rules(study: Study) -> list[Rule]:
    """The rules of A_n, the digit after it and one from the middle."""
    rules = study.first_digits.rules
    if len(rules) < 3:
        raise NotMeasured(f"{study.name} has too few digits for it", reproduce(study.name))
    return rules[:3]


def first_digits_differ(claim: Claim, studies: Studies) -> list[Check]:
    """A5 and A4 find their carry by other rules than A3."""
    (study,) = studies.of(claim)
    *first, middle = _rules(study)
    knows = Check(
        what=f"{middle.digit} follows the carry of at least one column",
        holds=middle.reach > 0,
        numbers=[_reach(study, middle)],
        role="premise",
    )
    return [knows] + [
        Check(
            what=f"{rule.digit} looks down another number of columns than {middle.digit}, or "
            "reads the token before it",
            holds=(rule.reach, rule.reads_token) != (middle.reach, middle.reads_token),
            numbers=[_reach(study, rule), _reach(study, middle), *_token(study, rule)],
        )
        for rule in first
    ]


def _reach(study: Study, rule: Rule) -> Number:
    return count(f"columns {rule.digit} looks down", study, rule.reach, of_what="columns")


def _token(study: Study, rule: Rule) -> list[Number]:
    """How often the token before decides where the digit's own column sums to 9, by the nines
    below that."""
    return [
        share(
            f"{rule.digit} follows the token before it above {depth} nine{'s' * (depth != 1)}",
            study,
            follows,
            of_what="pairs",
        )
        for depth, follows in enumerate(rule.token_follows)
    ]


def more_compute_for_a4(claim: Claim, studies: Studies) -> list[Check]:
    """What the row of "=" wrote is used for A4, and for A4 alone.

    In one layer, teacher-forced, that row cannot reach A4 in any other way.
    """
    (study,) = studies.of(claim)
    _, second, middle = _rules(study)
    row = study.layout.first_row + study.layout.signs
    heads = [node for node in study.nodes.nodes if node.row == row and node.head is not None]
    useful = Share.measured(sum(node.useful for node in heads), len(heads))
    return [
        Check(
            what=f"every head at row {row} is useful",
            holds=useful.count == useful.of,
            numbers=[
                count("useful heads", study, useful.count, of=useful.of, of_what="heads"),
            ],
        ),
        Check(
            what=f"where its column sums to 9, {second.digit} mostly follows the digit that row "
            f"{row} wrote, with some number of nines below",
            holds=second.reads_token,
            numbers=_token(study, second),
        ),
        Check(
            what=f"{middle.digit} does not mostly follow the digit before it, with any",
            holds=not middle.reads_token and middle.reach > 0,
            numbers=_token(study, middle),
        ),
    ]
