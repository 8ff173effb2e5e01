"""How trainings went: losses over the steps.

In: the story of a training, or of several. Out: figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from carryscope.dissection.story import TrainingStory
from carryscope.report.figures.canvas import Canvas
from carryscope.report.figures.figure import Figure
from carryscope.report.figures.plot import LEAST, Axis, Plot, legend, look_of

SIDE_BY_SIDE, PAGE = 3, 700.0
"""Panels in a row, and the width that they share, in pixels."""

Lines = Mapping[str, Sequence[float | None]]
"""Losses by the name of the curve, at the steps of the story."""


def digit_curves(story: TrainingStory) -> Figure:
    """The loss of every answer digit in one chart, as the paper draws it first."""
    lines = {digit.digit: story.curves.digit_loss[digit.digit] for digit in story.digits}
    canvas = Canvas()
    _chart(canvas, (0.0, 0.0), (600.0, 250.0), story, lines, list(lines), _losses([lines]))
    legend(canvas, list(lines), (50.0, canvas.height + 6), 600.0)
    return Figure(
        canvas,
        "Training loss of each answer digit",
        "A line chart: the loss of each answer digit over the training steps. "
        f"{' '.join(story.statements[:1])}",
        f"Means over {story.curves.window} steps, teacher-forced, on the recipe's own questions. "
        f"Dashed line: {story.learnt_loss:.2f}, below which a loss counts as learnt.",
    )


def task_curves(story: TrainingStory) -> Figure:
    """The loss of each answer digit by task."""
    curves, canvas = story.curves, Canvas()
    panels: dict[str, Lines] = {
        digit.digit: {
            "all": curves.digit_loss[digit.digit],
            **curves.task_loss.get(digit.digit, {}),
        }
        for digit in story.digits
    }
    losses = _losses(list(panels.values()))
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    for i, (digit, lines) in enumerate(panels.items()):
        down, right = divmod(i, SIDE_BY_SIDE)
        corner = (right * PAGE / SIDE_BY_SIDE, down * 205.0)
        _chart(canvas, corner, (160.0, 140.0), story, lines, names, losses, digit)
    legend(canvas, names, (50.0, canvas.height + 6), 600.0)
    return Figure(
        canvas,
        "Training loss by answer digit and task",
        "Line charts, one for each answer digit: the loss over the training steps, for all "
        f"questions and for each task. {' '.join(story.statements)}",
        f"Means over {story.curves.window} steps. Dashed line: {story.learnt_loss:.2f}, below "
        "which a loss counts as learnt.",
    )


def _losses(curves: Sequence[Lines]) -> Axis:
    lines = (line for lines in curves for line in lines.values())
    return Axis.logarithmic(loss for line in lines for loss in line if loss is not None)


def _chart(
    canvas: Canvas,
    corner: tuple[float, float],
    size: tuple[float, float],
    story: TrainingStory,
    lines: Lines,
    names: list[str],
    losses: Axis,
    title: str = "",
) -> None:
    """Curves over the steps, and for each step an unseen stripe that tells all its losses."""
    steps = story.curves.steps
    plot = Plot(canvas, corner, size, Axis.linear(0, story.steps), losses, title, ("step", "loss"))
    plot.line([(0, story.learnt_loss), (story.steps, story.learnt_loss)], "#777777", "4 3", 0.7)
    for name, values in lines.items():
        known = [None if loss is None else max(loss, LEAST) for loss in values]
        plot.line(zip(steps, known, strict=True), *look_of(names.index(name)))
    for i, step in enumerate(steps):
        here = {name: values[i] for name, values in lines.items()}
        told = ", ".join(f"{name} {loss:.4f}" for name, loss in here.items() if loss is not None)
        plot.pointed(step, f"step {step:,}: {told}")
        canvas.records.append({**({"panel": title} if title else {}), "step": step, **here})
