"""How a training went, and what the mathematical framework expects of it.

In: findings, or a number of digits. Out: figures.
"""

from __future__ import annotations

from typing import Literal

import altair as alt

from carryscope.dissection.findings import Dissection
from carryscope.dissection.story import TrainingStory
from carryscope.errors import CallError
from carryscope.report.drawing import BLACK, Record, data, needed, series
from carryscope.report.figure import Figure
from carryscope.task.columns import Task
from carryscope.task.framework import Discovery, Node, framework

LEAST_LOSS = 1e-5
"""Where a logarithmic axis of losses begins; what is below is drawn there."""

CURVES = ["all questions", "BA", "UC1", "US9"]


def learning_curves(
    dissection: Dissection, scale: Literal["log", "linear"] = "log"
) -> Figure:
    """The loss of each answer digit by task, with the step at which each was learnt."""
    if scale not in ("log", "linear"):
        raise CallError(f"A scale is 'log' or 'linear'. Got '{scale}'.")
    story: TrainingStory = needed(dissection, "story")
    panels = [_digit_panel(story, digit.digit, scale) for digit in story.digits]
    return Figure(
        alt.concat(*panels, columns=3, spacing=14),
        "Training loss by answer digit and task",
        "Line charts, one for each answer digit: the loss over the training steps for all "
        f"questions and for each task. {' '.join(story.statements)}",
        f"Each point is a mean over {story.curves.window} steps. A diamond marks the step from "
        f"which a loss stays below {story.learnt_loss:.2f}: learnt.",
    )


def _digit_panel(story: TrainingStory, digit: str, scale: str) -> alt.LayerChart:
    curves = {CURVES[0]: story.curves.digit_loss[digit], **story.curves.task_loss[digit]}
    records = [
        {"step": step, "curve": name, "loss": None if loss is None else max(loss, LEAST_LOSS)}
        for name, losses in curves.items()
        for step, loss in zip(story.curves.steps, losses, strict=True)
    ]
    learnt = {CURVES[0]: next(d.learnt_at for d in story.digits if d.digit == digit)}
    learnt |= {pair.task: pair.learnt_at for pair in story.pairs if pair.digit == digit}
    marks = [
        {"step": step, "curve": name, "loss": story.learnt_loss}
        for name, step in learnt.items()
        if step is not None
    ]
    look = series("curve", CURVES, by="dash")
    x = alt.X("step:Q", title="step", axis=alt.Axis(tickCount=4))
    y = alt.Y("loss:Q", title="loss", scale=alt.Scale(type="log" if scale == "log" else "linear"))
    y.axis = alt.Axis(grid=True, tickCount=5)
    return alt.layer(
        alt.Chart(data(records)).mark_line(strokeWidth=1.5).encode(x=x, y=y, **look),
        alt.Chart(data(marks))
        .mark_point(shape="diamond", size=70, filled=True, opacity=1, stroke=BLACK)
        .encode(x=x, y=y, color=look["color"]),
    ).properties(width=175, height=140, title=digit)


def framework_graph(digits: int) -> Figure:
    """The paper's framework: what each task unlocks, what it needs, and the chain of 99999+1."""
    found = framework(digits)
    return Figure(
        _graph(found, digits),
        f"What must be learnt before what, for {digits} digits",
        _told(found, digits),
        "",
    )
