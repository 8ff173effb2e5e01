"""The MLP study as a page: what it says, all models in one table, and a figure.

In: an `MlpStudy`. Out: Markdown, and how often each model is wrong, as a picture.
"""

from __future__ import annotations

from pathlib import Path

import altair as alt

from carryscope.core.storage import write_bytes
from carryscope.core.words import loss, with_interval
from carryscope.report.figures.drawing import TIP, Record, cells, names_across, names_down
from carryscope.report.figures.figure import AnyChart, Figure
from carryscope.report.markdown import table
from paper.mlp.study import BASE, MlpStudy, Subject

RECORD, PAGE, FIGURE = "mlp-study.json", "mlp-study.md", "mlp-study-abilities.svg"

AS_GOOD = 2
"""By convention a loss within this factor of the base's counts as the same."""

CELL, ROW = 34.0, 20.0
"""Width and height of a cell of the figure, in pixels."""


def write_study(study: MlpStudy, results: Path) -> Path:
    """Write the page and its figure."""
    abilities(study).save(results / FIGURE)
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
        f"![How often each model is wrong, by digit and case]({FIGURE})",
        table(head, rows),
        f"Cases are shares of right digits, teacher-forced, on the same {study.questions:,} "
        "questions for every model, at least 1,000 for each digit and case; an interval reaches "
        "at most 3.1 % to either side. UC1: the column below makes the carry. Simple US9: the "
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


def abilities(study: MlpStudy) -> Figure:
    """How often each answer digit is wrong in each case, model by model."""
    return Figure(
        alt.concat(*map(_panel, study.subjects), columns=2, spacing=14),
        "Without the MLP, and with one part learnt again",
        "Tables, one for each model: a column for each answer digit, a row for each case, and how "
        f"often the digit is wrong. {statement(study)}",
        "Share of questions in which the digit is wrong, teacher-forced, the same questions for "
        "all. Above each table: the held-out loss.",
    )


def _panel(subject: Subject) -> AnyChart:
    records: list[Record] = [
        {
            "digit": cell.digit,
            "case": cell.case,
            "share": 1 - cell.right.estimate,
            "_text": _brief(1 - cell.right.estimate),
            TIP: f"{subject.about}, {cell.digit}, {cell.case}: {1 - cell.right.estimate:.1%} wrong "
            f"of {cell.right.of:,}",
        }
        for cell in subject.right
    ]
    digits = sorted({record["digit"] for record in records}, key=lambda name: -int(name[1:]))
    cases = list(subject.by_case())
    x = names_across("digit", digits, labelAngle=0, domain=False)
    y = names_down("case", cases, domain=False)
    title = [subject.about, f"held-out loss {subject.held_out_loss.estimate:.4f}"]
    drawn: AnyChart = alt.layer(*cells(records, x, y, "digits that are wrong")).properties(
        width=CELL * len(digits), height=ROW * len(cases), title=title
    )
    return drawn


def _brief(share: float) -> str:
    """Whole per cents; a rare error does not become 0."""
    return f"{100 * share:.0f}" if share == 0 or share >= 0.01 else "<1"
