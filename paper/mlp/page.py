"""The MLP study as a page: what it says, and all models in one table."""

from __future__ import annotations

from pathlib import Path

from carryscope.core.storage import write_bytes
from carryscope.core.words import loss, with_interval
from carryscope.report.markdown import table
from paper.mlp.study import BASE, MlpStudy, Subject

RECORD, PAGE = "mlp-study.json", "mlp-study.md"

AS_GOOD = 2
"""By convention a loss within this factor of the base's counts as the same."""


def write_study(study: MlpStudy, results: Path) -> Path:
    """Write the page."""
    write_bytes(results / PAGE, study_page(study).encode())
    return results / PAGE


def study_page(study: MlpStudy) -> str:
    """The whole page."""
    base, none = study.subject(BASE), study.subject("no-mlp")
    cases = list(base.by_case())
    rows = [
        [
            one.about,
            f"{one.trained:,}",
            loss(one.held_out_loss),
            with_interval(one.uniform_right),
            *(f"{share.estimate:.1%}" for share in one.by_case().values()),
        ]
        for one in study.subjects
    ]
    head = ["model", "trained parameters", "held-out loss", "whole answers right", *cases]
    parts = [
        "# Is the MLP essential?",
        "The paper asks for it in its limitations: remove or retrain the MLP and see. The base is "
        f"one model, one seed ({base.seed}, {base.steps:,} steps of the paper's recipe with our "
        "batches). In each variant one part is removed, or drawn again and trained for "
        f"{none.steps:,} steps by the same recipe. The model without an MLP is trained as a "
        "whole. In the others all else is frozen, embeddings and readout too. In the controls "
        "the frozen part was never trained.",
        statement(study),
        table(head, rows),
        f"Cases are shares of right digits, teacher-forced, on the same {study.questions:,} "
        "questions for every model, at least 1,000 for each digit and case; the record has each "
        "digit and its interval. UC1: the column below makes the carry. Simple US9: the "
        "column below sums to 9 and passes a carry on. Cascade d: d columns do. Quiet nines: "
        "columns below sum to 9, and no carry arrives. The longest cascade is about the highest "
        "digit alone: a model that expects a carry wherever there are nines scores high there, "
        "and low in quiet nines. `python -m paper.mlp` makes all of this again.",
    ]
    return "\n\n".join(parts) + "\n"


def statement(study: MlpStudy) -> str:
    """What the study says, in a few sentences."""
    base, none = study.subject(BASE), study.subject("no-mlp")
    then, now = (one.loss_at(none.steps) for one in (base, none))
    same_step = (
        f" ({now:.3f} against {then:.3f} in training after {none.steps:,} steps)"
        if now and then
        else ""
    )
    return " ".join(
        [
            f"Without an MLP the loss is {_ratio(none, base)} times the base's{same_step}.",
            _relearnt(study, "a fresh MLP", "the trained attention", "fresh-mlp", "attention"),
            _relearnt(study, "fresh attention", "the trained MLP", "fresh-attention", "mlp"),
        ]
    )


def _relearnt(study: MlpStudy, new: str, kept: str, name: str, frozen: str) -> str:
    """Whether one part can be learnt again next to the other, and whether any other would do."""
    base, fresh = study.subject(BASE), study.subject(name)
    control = study.subject(f"untrained-{frozen}")
    said = (
        f"With {kept}, frozen, {new} ends at {_ratio(fresh, base)} times the base's loss; with "
        f"untrained weights in its place, at {_ratio(control, base)} times."
    )
    limit = AS_GOOD * base.held_out_loss.high
    if fresh.held_out_loss.high < limit < control.held_out_loss.low:
        said += f" So what {new} needs is in {kept}, and training put it there."
    return said


def _ratio(subject: Subject, base: Subject) -> str:
    ratio = subject.held_out_loss.estimate / base.held_out_loss.estimate
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"
