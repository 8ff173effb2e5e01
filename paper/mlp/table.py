"""The MLP study as Markdown: what it says, all models in one table, then each digit by digit."""

from __future__ import annotations

import math

from carryscope.core.evidence import Share
from carryscope.report.markdown import table
from paper.mlp.finding import CAN, CANNOT, Milestone, MlpStudy, Subject


def study_page(study: MlpStudy) -> str:
    """The whole study; the heading is left to the page it stands on."""
    said = "\n".join(f"- {statement}" for statement in study.statements)
    parts = [_about(study), study.statement, said, _side_by_side(study)]
    parts += [
        f"{subject.about}, digit by digit:\n\n{_digits(subject)}" for subject in study.subjects
    ]
    parts.append(
        "Cells are shares of right digits with 95 % Wilson intervals, teacher-forced, on the same "
        f"{study.questions:,} questions for every model (seed {study.exam_seed}), 1,000 or more in "
        "each cell. BA: no carry arrives, and the column below does not sum to 9. UC1: the column "
        "below makes the carry. Simple US9: the column below sums to 9 and passes a carry on. "
        "Cascade d: d columns do. Quiet nines: columns below sum to 9, and no carry arrives. "
        f"A model can do a case if {CAN:.0%} or more are right, and cannot if {CANNOT:.0%} or less "
        "are, intervals included. The longest cascade is about the highest digit alone, which is "
        "0 or 1: a model that expects a carry wherever there are nines scores high there, and low "
        "in quiet nines. Held-out loss: on 8,192 questions enriched by the paper's rule. Steps are "
        "checked every 50."
    )
    return "\n\n".join(parts) + "\n"


def _about(study: MlpStudy) -> str:
    """What was done."""
    base = study.subjects[0]
    return (
        f"The base is `{study.base}` (seed {base.seed}, {base.steps:,} steps): one model, one "
        "seed. In each variant one part is removed, or drawn again and trained by the same recipe. "
        "The model without an MLP is trained as a whole. In the others all else is frozen, "
        "embeddings and readout too, so that a success is due to the new part. In the controls the "
        "frozen part was never trained."
    )


def _side_by_side(study: MlpStudy) -> str:
    """A row for each model."""
    cases = list(study.subjects[0].by_case())
    marks = [f"steps to {_times(mark)}" for mark in study.subjects[-1].milestones]
    head = ["model", "trained parameters", "held-out loss", "whole answers right", *cases, *marks]
    rows = []
    for subject in study.subjects:
        loss, shares = subject.held_out_loss, subject.by_case()
        rows.append(
            [
                subject.about,
                f"{subject.trained:,}",
                f"{loss.estimate:.4f} ({loss.low:.4f} to {loss.high:.4f})",
                _share(subject.uniform_right),
                *(_share(shares[case]) for case in cases),
                *_reached(subject, len(marks)),
            ]
        )
    return table(head, rows)


def _times(mark: Milestone) -> str:
    return f"{mark.times} x the base's loss" if mark.times > 1 else "the base's loss"


def _reached(subject: Subject, marks: int) -> list[str]:
    if not subject.milestones:
        return ["-"] * marks
    return [
        f"{mark.steps:,}" if mark.steps else f"not in {subject.steps:,}"
        for mark in subject.milestones
    ]


def _digits(subject: Subject) -> str:
    """A row for each case, a column for each answer digit."""
    cells = {(cell.case, cell.digit): _share(cell.right) for cell in subject.right}
    digits = sorted({digit for _, digit in cells}, key=lambda name: -int(name[1:]))
    rows = [
        [case, *(cells.get((case, digit), "") for digit in digits)] for case in subject.by_case()
    ]
    losses = [f"{subject.held_out_digit_loss[digit]:.4f}" for digit in digits]
    return table(["", *digits], [*rows, ["held-out loss", *losses]])


def _share(share: Share) -> str:
    """A share with its interval, rounded outwards; of what is not all right never 100 %."""
    low, high = math.floor(1000 * share.low) / 10, math.ceil(1000 * share.high) / 10
    most = 100.0 if share.count == share.of else 99.9
    return f"{min(100 * share.estimate, most):.1f} % ({low:.1f} to {high:.1f})"
