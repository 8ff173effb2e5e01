"""How trainings went: losses over the steps.

In: the story of a training, or any curves. Out: figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from carryscope.dissection.story import TrainingStory
from carryscope.report.figures.canvas import Canvas
from carryscope.report.figures.figure import Figure
from carryscope.report.figures.plot import Axis, Plot, legend, look_of

SIDE_BY_SIDE, PAGE = 3, 700.0
"""Panels in a row at most, and the width that they share, in pixels."""

LARGE, SMALL = 250.0, 140.0
"""Height of a panel that stands alone, and of one among others, in pixels."""

Curve = Sequence[tuple[int, float | None]]
"""A loss at each step."""


def digit_curves(story: TrainingStory) -> Figure:
    """The loss of every answer digit in one chart, as the paper draws it first."""
    losses = {digit.digit: story.curves.digit_loss[digit.digit] for digit in story.digits}
    return Figure(
        loss_charts({"": _curves(story, losses)}, learnt=story.learnt_loss),
        "Training loss of each answer digit",
        "A line chart: the loss of each answer digit over the training steps. "
        f"{' '.join(story.statements[:1])}",
        f"Means over {story.curves.window} steps, teacher-forced, on the recipe's own questions. "
        f"{_dashed(story)}",
    )


def task_curves(story: TrainingStory) -> Figure:
    """The loss of each answer digit by task."""
    known, panels = story.curves, {}
    for digit in (one.digit for one in story.digits):
        losses = {"all": known.digit_loss[digit], **known.task_loss.get(digit, {})}
        panels[digit] = _curves(story, losses)
    return Figure(
        loss_charts(panels, learnt=story.learnt_loss),
        "Training loss by answer digit and task",
        "Line charts, one for each answer digit: the loss over the training steps, for all "
        f"questions and for each task. {' '.join(story.statements)}",
        f"Means over {story.curves.window} steps. {_dashed(story)}",
    )


def _curves(story: TrainingStory, losses: Mapping[str, Sequence[float | None]]) -> dict[str, Curve]:
    return {name: list(zip(story.curves.steps, each, strict=True)) for name, each in losses.items()}


def _dashed(story: TrainingStory) -> str:
    return f"Dashed line: {story.learnt_loss:.2f}, below which a loss counts as learnt."


def loss_charts(
    panels: Mapping[str, Mapping[str, Curve]], *, learnt: float | None = None
) -> Canvas:
    """Curves by panel and name; the same name looks alike in all panels.

    Each step has an invisible stripe whose tip has all its losses.
    """
    canvas, height = Canvas(), LARGE if len(panels) == 1 else SMALL
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    points = [point for curves in panels.values() for curve in curves.values() for point in curve]
    across = Axis.linear(0, max((step for step, _ in points), default=1))
    up = Axis.logarithmic(loss for _, loss in points if loss is not None)
    room = PAGE / min(len(panels), SIDE_BY_SIDE)
    for i, (title, curves) in enumerate(panels.items()):
        down, right = divmod(i, SIDE_BY_SIDE)
        corner, size = (right * room, down * (height + 65)), (room - 75, height)
        plot = Plot(canvas, corner, size, across, up, title, ("step", "loss"))
        if learnt is not None:
            plot.line([(0, learnt), (across.high, learnt)], "#777777", "4 3", 0.7)
        at: dict[int, dict[str, float]] = {}
        for name, curve in curves.items():
            plot.line(curve, *look_of(names.index(name)))
            for step, loss in curve:
                at.setdefault(step, {}).update({} if loss is None else {name: loss})
        for step, here in at.items():
            losses = ", ".join(f"{name} {loss:.4f}" for name, loss in here.items())
            plot.pointed(step, f"step {step:,}: {losses}")
            canvas.records.append({**({"panel": title} if title else {}), "step": step, **here})
    legend(canvas, names, (50.0, canvas.height + 6), 600.0)
    return canvas
