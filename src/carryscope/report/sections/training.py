"""How it learnt: losses by digit and task, phases, the order of learning, and the exam.

In: the summary and the story of a training. Out: parts, and the section.
"""

from __future__ import annotations

from functools import partial

from carryscope.core.words import loss, with_interval
from carryscope.dissection.story import TrainingStory
from carryscope.report.figures import curves
from carryscope.report.parts import Part, Picture, Section, evidence
from carryscope.report.shelf import Shelf
from carryscope.report.tables import Table
from carryscope.training.summary import TrainingSummary


def training_section(shelf: Shelf) -> Section | None:
    """The training."""
    story, summary = shelf.story, shelf.training
    if story is None:
        return summary_section(summary) if summary is not None else None
    parts: list[Part] = [
        Picture("digits", partial(curves.digit_curves, story)),
        Picture("learning", partial(curves.task_curves, story)),
        _phases(story),
        *(summary_section(summary).parts if summary is not None else []),
    ]
    return evidence("training", "Training", " ".join(story.statements), parts)


def summary_section(summary: TrainingSummary) -> Section:
    """What the training reached, then the exam."""
    hardest = max(zip(summary.held_out_digit_loss, summary.answer_names, strict=True))
    claim = (
        f"After {summary.steps:,} steps ({summary.questions_seen:,} questions) the model answers "
        f"{with_interval(summary.uniform_correct)} of uniform questions right. Its held-out loss "
        f"is {loss(summary.held_out_loss)}; the hardest digit is {hardest[1]}, with "
        f"{hardest[0]:.4f}."
    )
    return evidence("training", "Training", claim, [_exam(summary)])


def _phases(story: TrainingStory) -> Table:
    """The paper's three phases of each digit, and the step at which each task was learnt."""

    def step(at: int | None) -> str:
        return "never" if at is None else f"{at:,}"

    learnt = {(pair.digit, pair.task): step(pair.learnt_at) for pair in story.pairs}
    tasks = {
        f"{task} learnt": lambda digit, task=task: learnt.get((digit.digit, task), "")
        for task in dict.fromkeys(pair.task for pair in story.pairs)
    }
    return Table.of(
        "phases",
        "Three phases, and when each task was learnt",
        story.digits,
        {
            "digit": lambda digit: digit.digit,
            "memorisation until": lambda digit: step(digit.discovery_from),
            "discovery until": lambda digit: step(digit.clean_up_from),
            "learnt": lambda digit: step(digit.learnt_at),
            **tasks,
        },
        "Steps. Discovery is the fall of the loss from 90 % to 10 % of its early level; clean-up "
        f"comes after it. Learnt: from here on the loss stays below {story.learnt_loss:.2f}. The "
        "order belongs to the recipe, with its mix of questions, as much as to the model.",
    )


def _exam(summary: TrainingSummary) -> Table:
    curated = {f"curated, {name}": share for name, share in summary.curated_correct.items()}
    return Table.of(
        "exam",
        "Whole answers right after training",
        {"uniform": summary.uniform_correct, **curated}.items(),
        {
            "questions": lambda row: row[0],
            "right": lambda row: with_interval(row[1]),
            "asked": lambda row: f"{row[1].of:,}",
        },
        "Free-running, with 95 % intervals. Curated questions are chosen to be hard, with nines "
        "everywhere, and are never trained on.",
    )
