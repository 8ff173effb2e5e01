"""What the MLP study found, as records and in words.

In: how each model did in the exam. Out: a sentence on what each model can and cannot do, and a
statement on what the MLP and the attention contribute.
"""

from __future__ import annotations

import msgspec

from carryscope.core.evidence import Mean, Share
from carryscope.dissection.story import LEARNT_LOSS
from carryscope.model.config import ModelConfig
from paper.exam import CaseRight

CAN = 0.95
"""A case counts as done if at least this share is right, by the lower end of the interval."""

CANNOT = 0.5
"""It counts as not done if at most this share is right, by the upper end. Knowing everything but
the carry, and tossing a coin for it, gives this much."""

AS_GOOD = 2
"""By convention a loss within this factor of the base's counts as the same. The ratio and the
cases are always reported with it."""

BASE, NO_MLP = "base", "no-mlp"
FRESH_MLP, FRESH_ATTENTION = "fresh-mlp", "fresh-attention"
UNTRAINED_ATTENTION, UNTRAINED_MLP = "untrained-attention", "untrained-mlp"


class Milestone(msgspec.Struct, frozen=True, kw_only=True):
    """When a training came within a factor of the base's held-out loss."""

    times: int
    loss: float
    steps: int | None
    """Checked every 50 steps; null if it never did."""


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The mean training loss of the steps up to this one and after the point before."""

    step: int
    loss: float


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One model of the study."""

    name: str
    about: str
    control: bool
    weights_sha256: str
    seed: int
    steps: int
    trained: int
    """Parameters that were trained."""
    held_out_loss: Mean
    """On the fixed held-out questions of every training, enriched by the paper's rule."""
    held_out_digit_loss: dict[str, float]
    uniform_right: Share
    """Whole answers right, of fresh uniform questions; free-running, it is the same number."""
    right: list[CaseRight]
    milestones: list[Milestone]
    curve: list[CurvePoint]
    """Empty for a model that was not trained here."""

    def learnt_at(self) -> int | None:
        """The point of its curve from which the loss stays below `LEARNT_LOSS`."""
        above = [i for i, point in enumerate(self.curve) if point.loss >= LEARNT_LOSS]
        first = above[-1] + 1 if above else 0
        return self.curve[first].step if first < len(self.curve) else None

    def loss_at(self, step: int) -> float | None:
        """Its training loss near a step; None if it was not trained that far."""
        return next((point.loss for point in self.curve if point.step >= step), None)

    def by_case(self) -> dict[str, Share]:
        """Each case over all digits that have it."""
        cells: dict[str, list[Share]] = {}
        for cell in self.right:
            cells.setdefault(cell.case, []).append(cell.right)
        return {
            case: Share.measured(sum(s.count for s in shares), sum(s.of for s in shares))
            for case, shares in cells.items()
        }

    def can(self) -> list[str]:
        """The cases it can do."""
        return [case for case, share in self.by_case().items() if share.low >= CAN]

    def cannot(self) -> list[str]:
        """The cases it cannot do."""
        return [case for case, share in self.by_case().items() if share.high <= CANNOT]

    def statement(self) -> str:
        """What it can and cannot do, in one sentence."""
        shares, can, cannot = self.by_case(), self.can(), self.cannot()
        partly = [case for case in shares if case not in can and case not in cannot]
        lost = [f"{case} ({shares[case].estimate:.0%})" for case in cannot]
        parts = [f"can do {', '.join(can)}"] if can else []
        parts += [f"does in part {', '.join(map(self._partly, partly))}"] if partly else []
        parts += [f"cannot do {', '.join(lost)}"] if lost else []
        return f"{self.about}: held-out loss {self.held_out_loss.estimate:.4f}; {'; '.join(parts)}."

    def _partly(self, case: str) -> str:
        """A share, and the digit in which it is lowest."""
        cells = [cell for cell in self.right if cell.case == case]
        worst = min(cells, key=lambda cell: cell.right.estimate)
        share = self.by_case()[case].estimate
        least = f", least {worst.digit} {worst.right.estimate:.0%}" if len(cells) > 1 else ""
        return f"{case} ({share:.0%}{least})"


class MlpStudy(msgspec.Struct, frozen=True, kw_only=True):
    """Base and variants, all tested on the same questions."""

    package_version: str
    base: str
    """The name of the base run."""
    preset: str | None
    model: ModelConfig
    questions: int
    """In the exam, for each model."""
    exam_seed: int
    subjects: list[Subject]
    """The base first."""
    statements: list[str]
    """One for each subject, in their order."""
    statement: str

    def subject(self, name: str) -> Subject:
        """The subject of this name."""
        return next(subject for subject in self.subjects if subject.name == name)


def retold(study: MlpStudy) -> MlpStudy:
    """The same subjects, with the statements that this version makes of them."""
    return msgspec.structs.replace(
        study,
        statements=[subject.statement() for subject in study.subjects],
        statement=overall({subject.name: subject for subject in study.subjects}),
    )


def overall(subjects: dict[str, Subject]) -> str:
    """What the study says, in a few sentences."""
    base, none = subjects[BASE], subjects[NO_MLP]
    mlp = subjects[FRESH_MLP], subjects[UNTRAINED_ATTENTION]
    attention = subjects[FRESH_ATTENTION], subjects[UNTRAINED_MLP]
    return " ".join(
        [
            f"Without an MLP the same recipe {_without(none, base)}: {_needed_for(base, none)}.",
            _relearnt(*mlp, base, ("a fresh MLP", "the trained attention")),
            _relearnt(*attention, base, ("fresh attention", "the trained MLP")),
        ]
    )


def _without(none: Subject, base: Subject) -> str:
    """Its loss against the base's, at the same step first if the base was trained for longer."""
    ends = f"ends at {_ratio(none, base)} times the base's held-out loss"
    then, now = base.loss_at(none.steps), none.loss_at(none.steps)
    if base.steps <= none.steps or then is None or now is None:
        return ends
    return (
        f"has {now / then:,.0f} times the base's training loss after {none.steps:,} steps "
        f"({now:.3f} against {then:.3f}), and ends at {_ratio(none, base)} times the held-out loss "
        f"that the base has after {base.steps:,} steps"
    )


def _needed_for(base: Subject, none: Subject) -> str:
    """What the base can do and a model without an MLP cannot."""
    if not base.can():
        return "but the base does no case either"
    lost = [case for case in base.can() if case not in none.can()]
    if not lost:
        return "it does all that the base does"
    return f"in {none.steps:,} steps it does not learn {', '.join(lost)}"


def _relearnt(fresh: Subject, control: Subject, base: Subject, names: tuple[str, str]) -> str:
    """Whether one part can be learned again next to the other, and whether any other would do."""
    new, kept = names
    begin = f"With {kept}, frozen, {new} {_pace(fresh, base)}."
    times = f"{_ratio(control, base)} times that loss"
    untrained = f"with untrained weights in its place it ends at {times}"
    if not as_good(fresh, base):
        return f"{begin} It ends at {_ratio(fresh, base)} times that loss; {untrained}."
    if as_good(control, base):
        return f"{begin} But {untrained} too, so this says nothing about {kept}."
    needed = f"what {new} needs to reach such a loss is in {kept}, and training put it there"
    return f"{begin} {untrained[0].upper()}{untrained[1:]}. So {needed}."


def as_good(subject: Subject, base: Subject) -> bool:
    """Whether a loss counts as the base's."""
    return subject.held_out_loss.estimate <= AS_GOOD * base.held_out_loss.estimate


def _pace(subject: Subject, base: Subject) -> str:
    """How fast it learned, against the base, and how fast it came near the base's loss."""
    learnt = ""
    if subject.learnt_at() and base.learnt_at():
        learnt = (
            f"is learned (training loss below {LEARNT_LOSS:.2f}) after {subject.learnt_at():,} "
            f"steps, where the base took {base.learnt_at():,}; it "
        )
    marks = []
    for mark in subject.milestones:
        near = f"within {mark.times} times the base's loss" if mark.times > 1 else "down to it"
        after = f"after {mark.steps:,} steps" if mark.steps else f"not in {subject.steps:,} steps"
        marks.append(f"{near} {after}")
    return f"{learnt}comes {', '.join(marks)}"


def _ratio(subject: Subject, base: Subject) -> str:
    ratio = subject.held_out_loss.estimate / base.held_out_loss.estimate
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"
