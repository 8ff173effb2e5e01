"""How a training went: the loss of each answer digit, and task by task.

In: the story of a training. Out: charts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import altair as alt

from carryscope.dissection.story import TrainingStory
from carryscope.report.figures.chart import AnyChart
from carryscope.report.figures.drawing import (
    LEAST_LOSS,
    PAGE,
    SAYS,
    TIP,
    Record,
    data,
    loss_axis,
    series,
)
from carryscope.report.figures.figure import Figure

CURVES = ["all", "BA", "UC1", "US9"]
"""The curves of a digit: all its questions, and those of each task."""

POINTED = 7
"""Width of what one points at to read a step, in pixels: no gap between a hundred steps."""

SIDE_BY_SIDE = 3

Lines = Mapping[str, Sequence[float | None]]
"""Losses by the name of the curve, at the steps of the story."""


def digit_curves(story: TrainingStory) -> Figure:
    """The loss of every answer digit in one chart, as the paper draws it first."""
    lines = {digit.digit: story.curves.digit_loss[digit.digit] for digit in story.digits}
    chart = _chart(story, lines, _loss([lines]), legend=list(lines), orient="right")
    return Figure(
        chart.properties(width=PAGE - 110, height=250),
        "Training loss of each answer digit",
        "A line chart: the loss of each answer digit over the training steps. "
        f"{' '.join(story.statements[:1])}",
        f"Means over {story.curves.window} steps, teacher-forced, on the recipe's own questions. "
        f"Dashed line: {story.learnt_loss:.2f}, below which a loss counts as learnt.",
    )


def task_curves(story: TrainingStory) -> Figure:
    """The loss of each answer digit by task."""
    curves = story.curves
    lines: dict[str, Lines] = {
        digit.digit: {
            CURVES[0]: curves.digit_loss[digit.digit],
            **curves.task_loss.get(digit.digit, {}),
        }
        for digit in story.digits
    }
    axis = _loss(list(lines.values()))
    panels = [
        _chart(story, of, axis.title("loss" if i % SIDE_BY_SIDE == 0 else None), legend=CURVES)
        for i, of in enumerate(lines.values())
    ]
    sized = [
        panel.properties(width=172, height=140, title=digit)
        for panel, digit in zip(panels, lines, strict=True)
    ]
    return Figure(
        alt.concat(*sized, columns=SIDE_BY_SIDE, spacing=14),
        "Training loss by answer digit and task",
        "Line charts, one for each answer digit: the loss over the training steps, for all "
        f"questions and for each task. {' '.join(story.statements)}",
        f"Means over {story.curves.window} steps. Dashed line: {story.learnt_loss:.2f}, below "
        "which a loss counts as learnt.",
    )


def _loss(curves: Sequence[Lines]) -> alt.Y:
    losses = [x for lines in curves for line in lines.values() for x in line if x is not None]
    return loss_axis(alt.Y, min(losses), max(losses))


def _chart(
    story: TrainingStory,
    lines: Lines,
    y: alt.Y,
    *,
    legend: list[str],
    orient: Literal["bottom", "right"] = "bottom",
) -> AnyChart:
    """Curves over the steps, and for each step an unseen line that tells all its losses."""
    x = alt.X("step:Q", title="step", scale=alt.Scale(domain=[0, story.steps], nice=False))
    points: list[Record] = [
        {"step": step, "curve": name, "value": None if loss is None else max(loss, LEAST_LOSS)}
        for name, losses in lines.items()
        for step, loss in zip(story.curves.steps, losses, strict=True)
    ]
    threshold = alt.Chart(data([{"value": story.learnt_loss}]))
    pointed = alt.Chart(data(_steps(story, lines))).mark_rule(strokeWidth=POINTED, opacity=0)
    drawn: AnyChart = alt.layer(
        threshold.mark_rule(strokeDash=[4, 3], strokeWidth=0.7).encode(y=y),
        alt.Chart(data(points))
        .mark_line(strokeWidth=1.5)
        .encode(x=x.axis(tickCount=5), y=y, **series("curve", legend, by="dash", orient=orient)),
        pointed.encode(x=x, description=SAYS),
    )
    return drawn


def _steps(story: TrainingStory, lines: Lines) -> list[Record]:
    records = []
    for i, step in enumerate(story.curves.steps):
        here = {name: losses[i] for name, losses in lines.items()}
        told = ", ".join(f"{name} {loss:.4f}" for name, loss in here.items() if loss is not None)
        records.append({"step": step, **here, TIP: f"step {step:,}: {told}"})
    return records
