"""How it learnt: losses by digit and task, phases, the order of learning, and the exam.

In: the summary and the story of a training. Out: parts, and the section.
"""

from __future__ import annotations

from functools import partial

from carryscope.core.words import listed, loss, with_interval
from carryscope.dissection.story import TrainingStory
from carryscope.report.figures import curves
from carryscope.report.parts import Folded, More, Note, Part, Picture, Section, evidence
from carryscope.report.shelf import Shelf
from carryscope.report.tables import Cell, Table
from carryscope.task.columns import Task
from carryscope.task.framework import Discovery, framework
from carryscope.task.operation import BASE
from carryscope.training.config import RunConfig
from carryscope.training.summary import LAST_STEPS, TrainingSummary


def training_section(shelf: Shelf) -> Section | None:
    """The training."""
    story, summary = shelf.story, shelf.training
    if story is None:
        return summary_section(summary) if summary is not None else None
    parts: list[Part] = [
        Picture("digits", partial(curves.digit_curves, story)),
        Picture("learning", partial(curves.task_curves, story)),
        _phases(story),
        _recipe_note(shelf.config),
        *(summary_section(summary).parts if summary is not None else []),
        Folded("What any adder must learn", [framework_table(shelf.config)]),
    ]
    return evidence("training", "Training", " ".join(story.statements), parts)


def summary_section(summary: TrainingSummary) -> Section:
    """What the training reached, then the exam and the final losses."""
    hardest = max(zip(summary.held_out_digit_loss, summary.answer_names, strict=True))
    claim = (
        f"After {summary.steps:,} steps ({summary.questions_seen:,} questions) the model answers "
        f"{with_interval(summary.uniform_correct)} of uniform questions right. Its held-out loss "
        f"is {loss(summary.held_out_loss)}; the hardest digit is {hardest[1]}, with "
        f"{hardest[0]:.4f}."
    )
    return evidence("training", "Training", claim, [More([_final(summary)]), _exam(summary)])


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
        f"comes after it. Learnt: from here on the loss stays below {story.learnt_loss:.2f}.",
    )


def framework_table(config: RunConfig) -> Table:
    """The paper's framework: what each task unlocks, and what must be learnt before it."""
    digits = config.model.digits
    hardest = f"{BASE**digits - 1}+1"

    def cell(found: Discovery) -> Cell:
        needs = listed([need.name for need in found.needs]) if found.needs else "nothing"
        chained = found.learnt.task is not Task.BA and found.learnt.depth == found.learnt.digit - 1
        share = f"{float(found.share * 100):.6g}%"
        return Cell(share, shade=0.25 * chained, tip=f"{found.learnt.name}, after {needs}: {share}")

    return Table.crossed(
        "framework",
        f"What must be learnt before what: {digits}-digit addition",
        sorted(framework(digits), key=lambda found: -found.learnt.digit),
        "task",
        row=lambda found: found.learnt.name.partition(" ")[2],
        column=lambda found: f"A{found.learnt.digit}",
        cell=cell,
        caption="The share of uniform questions on which the digit becomes right by this task. "
        "UC1 is learnt after BA. US9 is learnt after one depth less, in the same digit and in the "
        f"digit below. Shaded: the chain of {hardest}. Paper: Fig. 5.",
    )


def _recipe_note(config: RunConfig) -> Note:
    recipe = config.training
    own = recipe is not None and (recipe.nines > 0 or recipe.head_delay > 0)
    why = " This one starts heads one by one, or shows many nines early; the paper's does not."
    return Note(
        "Losses are those of the training batches, teacher-forced, on the recipe's own mix of "
        f"questions. An order found here belongs to the recipe as much as to the model.{why * own}"
    )


def _final(summary: TrainingSummary) -> Table:
    """Final losses by digit, and over all digits."""
    names = [*summary.answer_names, "all"]
    last = [*summary.last_steps_digit_loss, summary.last_steps_loss]
    held_out = [*summary.held_out_digit_loss, summary.held_out_loss.estimate]
    return Table.of(
        "final-loss",
        "Final loss of each answer digit",
        zip(names, last, held_out, strict=True),
        {
            "answer token": lambda row: row[0],
            f"last {LAST_STEPS} steps": lambda row: f"{row[1]:.5f}",
            "held-out": lambda row: f"{row[2]:.5f}",
        },
        "Teacher-forced. Last steps: the recipe's own questions. Held-out: "
        f"{summary.held_out_loss.of:,} questions enriched by the paper's rule.",
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
