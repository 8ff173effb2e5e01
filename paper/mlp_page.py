"""The study of the MLP as a page: what it found, and all models in one table.

In: the records of the study. Out: text.
"""

from __future__ import annotations

from collections.abc import Sequence

from carryscope.core.words import loss, with_interval
from carryscope.report.markdown import table
from carryscope.task.strata import look_ahead_probabilities
from paper.mlp import BASE, EACH, VARIANTS, Subject
from paper.study import page

PAGE = "mlp-study.md"

AS_GOOD = 2
"""By convention a loss within this factor of the base's counts as the same."""


def mlp_page(subjects: Sequence[Subject]) -> str:
    """The whole page."""
    found = {one.name: one for one in subjects}
    base, none = found[BASE], found["no-mlp"]
    cases = list(base.by_case())
    rows = [
        [
            one.about,
            f"{one.trained:,}",
            loss(one.held_out_loss),
            with_interval(one.uniform_right),
            *(f"{share.estimate:.1%}" for share in one.by_case().values()),
        ]
        for one in (base, *(found[variant.name] for variant in VARIANTS))
    ]
    head = ["model", "trained parameters", "held-out loss", "whole answers right", *cases]
    return page(
        PAGE,
        base=base,
        none=none,
        statement=statement(found),
        table=table(head, rows),
        questions=EACH * len(look_ahead_probabilities(5)),
    )


def statement(found: dict[str, Subject]) -> str:
    """What the study found, in a few sentences."""
    base, none = found[BASE], found["no-mlp"]
    return " ".join(
        [
            f"Without an MLP the loss is {_ratio(none, base)} times the base's "
            f"({none.training_loss:.3f} against {base.training_loss:.3f} in training after "
            f"{none.steps:,} steps).",
            _relearnt(found, "a fresh MLP", "the trained attention", "fresh-mlp", "attention"),
            _relearnt(found, "fresh attention", "the trained MLP", "fresh-attention", "mlp"),
        ]
    )


def _relearnt(found: dict[str, Subject], new: str, kept: str, name: str, frozen: str) -> str:
    """Whether one part can be learnt again next to the other, and whether any other would do."""
    base, fresh, control = found[BASE], found[name], found[f"untrained-{frozen}"]
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
