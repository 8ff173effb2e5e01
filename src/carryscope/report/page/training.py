"""How the training went: curves, phases, order, final losses, beside the paper's.

In: the shelf of a run. Out: a section, or none for a model that was not trained here.
"""

from __future__ import annotations

from carryscope.core.words import percent, with_interval
from carryscope.dissection.story import TrainingStory
from carryscope.report.catalogue import figure
from carryscope.report.page.parts import Folded, Note, Part, Picture, Section, Table, Text
from carryscope.report.page.words import paper_cell, paper_share, paper_text
from carryscope.report.shelf import Shelf
from carryscope.task.columns import Columns, Task
from carryscope.training.data import held_out_questions
from carryscope.training.summary import LAST_STEPS, TrainingSummary


def training_section(shelf: Shelf) -> Section | None:
    """The training."""
    parts = [*_told(shelf), *_final(shelf), *_exam(shelf.training), *_mix(shelf)]
    if not parts:
        return None
    return Section("training", "How it learnt", "Training", [*parts, *_framework(shelf)])


def _told(shelf: Shelf) -> list[Part]:
    if shelf.story is None:
        return []
    model = shelf.config.model
    return [
        Text(" ".join(shelf.story.statements), lead=True),
        _curves(shelf, "digits", paper_text("order.first", model)),
        _curves(shelf, "learning", paper_text("lag", model)),
        Picture("phases", {"": figure("phases", shelf)}, paper_text("phases", model)),
        _recipe_note(shelf),
        Folded("Learning order, step by step", [_order(shelf.story)]),
    ]


def _curves(shelf: Shelf, name: str, paper: str) -> Picture:
    views = {"logarithmic": figure(name, shelf), "linear": figure(f"{name}-linear", shelf)}
    return Picture(name, views, paper)


def _recipe_note(shelf: Shelf) -> Note:
    recipe = shelf.config.training
    own = recipe is not None and (recipe.nines > 0 or recipe.head_delay > 0)
    why = (
        " This recipe starts its heads one after the other or shows many nines early, which the "
        "paper's does not, so its order need not be the paper's."
        if own
        else ""
    )
    return Note(
        "Losses are those of the training batches, teacher-forced, on the recipe's own mix of "
        f"questions. An order found here belongs to the recipe as much as to the model.{why}"
    )


def _order(story: TrainingStory) -> Table:
    """Every (digit, task) by when it was learnt, beside when the framework expects it."""
    expected = {name: place for place, name in enumerate(story.predicted_order, start=1)}
    learnt = {name: place for place, name in enumerate(story.observed_order, start=1)}
    pairs = sorted(story.pairs, key=lambda pair: learnt.get(pair.name, len(expected) + 1))
    rows = [
        [
            pair.name,
            f"{learnt[pair.name]}" if pair.name in learnt else "never",
            f"{expected[pair.name]}" if pair.name in expected else "",
            f"{pair.learnt_at:,}" if pair.learnt_at else "never",
            percent(pair.share),
            "" if pair.final_loss is None else f"{pair.final_loss:.5f}",
        ]
        for pair in pairs
    ]
    return Table(
        "learning-order",
        "Learning order",
        ["digit and task", "learnt", "expected", "at step", "share of questions", "final loss"],
        rows,
        "Expected: the framework's order, by the share of uniform questions that a task settles. "
        f"Final loss: the mean of the last {LAST_STEPS} steps.",
        frozenset({1, 2, 3, 4, 5}),
    )


def _final(shelf: Shelf) -> list[Part]:
    """Final losses by digit, and over all digits, beside the paper's tables."""
    summary, model = shelf.training, shelf.config.model
    if summary is None:
        return []
    losses = zip(
        summary.answer_names,
        summary.last_steps_digit_loss,
        summary.held_out_digit_loss,
        strict=True,
    )
    rows = [
        [name, f"{last:.5f}", f"{held_out:.5f}", paper_cell(f"loss.{name}", model)]
        for name, last, held_out in losses
    ]
    whole = paper_cell(f"loss.{model.digits}-digits", model)
    rows.append(
        ["all", f"{summary.last_steps_loss:.5f}", f"{summary.held_out_loss.estimate:.5f}", whole]
    )
    return [
        Table(
            "final-loss",
            "Final loss of each answer digit",
            ["answer token", f"last {LAST_STEPS} steps", "held-out", "paper"],
            rows,
            "Teacher-forced. Last steps: the recipe's own questions. Held-out: "
            f"{summary.held_out_loss.of:,} questions enriched by the paper's rule. Paper: Tab. 2, "
            "and Tab. 1 for all digits: a final training loss after 5,000 steps of 64 questions.",
            frozenset({1, 2, 3}),
            frozenset({3}),
        )
    ]


def _exam(summary: TrainingSummary | None) -> list[Part]:
    if summary is None:
        return []
    shares = {"uniform": summary.uniform_correct, **summary.curated_correct}
    rows = [
        [name if name == "uniform" else f"curated, {name}", with_interval(share), f"{share.of:,}"]
        for name, share in shares.items()
    ]
    return [
        Table(
            "exam",
            "Whole answers right after training",
            ["questions", "right", "asked"],
            rows,
            "Free-running, with 95 % intervals. Curated questions are chosen to be hard, nines "
            "everywhere, and are never trained on.",
            frozenset({1, 2}),
        )
    ]


def _mix(shelf: Shelf) -> list[Part]:
    """How often each task comes up in data enriched by the paper's rule."""
    if shelf.training is None:
        return []
    model = shelf.config.model
    drawn = held_out_questions(model.digits)
    tasks = Columns.of(drawn).task[:, :-1].ravel()
    rows = [
        [
            kind.name,
            percent(float((tasks == kind).mean())),
            paper_share(f"mix.{kind.name}", model),
        ]
        for kind in Task
    ]
    return [
        Table(
            "mix",
            "Tasks of answer digits in enriched data",
            ["task", "share", "paper"],
            rows,
            f"Of all digits that have a column, in one draw of {len(drawn):,} held-out questions, "
            "enriched by the paper's rule. The paper gives its shares in its appendix on loss "
            "measures; they fit digits, not whole questions.",
            frozenset({1, 2}),
            frozenset({2}),
        )
    ]


def _framework(shelf: Shelf) -> list[Part]:
    graph = Picture("framework", {"": figure("framework", shelf)}, "its Fig. 5")
    return [Folded("What any adder must learn: the paper's framework", [graph])]
