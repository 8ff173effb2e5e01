"""How a training went: the loss of each answer digit, task by task.

In: findings. Out: a figure.
"""

from __future__ import annotations

from typing import Literal

import altair as alt

from carryscope.dissection.findings import Dissection
from carryscope.dissection.story import TrainingStory
from carryscope.errors import CallError
from carryscope.report.drawing import LEAST_LOSS, data, loss_axis, needed, series
from carryscope.report.figure import AnyChart, Figure

CURVES = ["all", "BA", "UC1", "US9"]
"""The curves of a digit: all its questions, and those of each task."""

LEARNT = [f"{name} learnt" for name in CURVES]

SIDE_BY_SIDE = 3


def learning_curves(dissection: Dissection, scale: Literal["log", "linear"] = "log") -> Figure:
    """The loss of each answer digit by task, with the step at which each was learnt."""
    if scale not in ("log", "linear"):
        raise CallError(f"A scale is 'log' or 'linear'. Got '{scale}'.")
    story: TrainingStory = needed(dissection, "story")
    curves = {digit.digit: _curves(story, digit.digit) for digit in story.digits}
    losses = [x for of in curves.values() for curve in of.values() for x in curve if x is not None]
    if scale == "log":
        axis = loss_axis(alt.Y, min(losses), max(losses))
    else:
        axis = alt.Y("value:Q", title="loss").axis(grid=True, tickCount=5)
        axis = axis.scale(domain=[0, max(losses)])
    panels = [
        _panel(story, digit, curves[digit], axis, labelled=i % SIDE_BY_SIDE == 0)
        for i, digit in enumerate(curves)
    ]
    return Figure(
        alt.concat(*panels, columns=SIDE_BY_SIDE, spacing=14),
        "Training loss by answer digit and task",
        "Line charts, one for each answer digit: the loss over the training steps, for all "
        f"questions and for each task. {' '.join(story.statements)} {_told(story)}",
        f"Means over {story.curves.window} steps. Learnt: the step from which a loss stays below "
        f"{story.learnt_loss:.2f}, the dashed line.",
    )


def _curves(story: TrainingStory, digit: str) -> dict[str, list[float | None]]:
    return {CURVES[0]: story.curves.digit_loss[digit], **story.curves.task_loss.get(digit, {})}


def _learnt(story: TrainingStory, digit: str) -> dict[str, int]:
    """The step at which each curve of a digit was learnt, for those that were."""
    steps = {CURVES[0]: next(d.learnt_at for d in story.digits if d.digit == digit)}
    steps |= {pair.task: pair.learnt_at for pair in story.pairs if pair.digit == digit}
    return {name: step for name, step in steps.items() if step is not None}


def _panel(
    story: TrainingStory,
    digit: str,
    curves: dict[str, list[float | None]],
    y: alt.Y,
    *,
    labelled: bool,
) -> AnyChart:
    points = [
        {"step": step, "curve": name, "value": None if loss is None else max(loss, LEAST_LOSS)}
        for name, losses in curves.items()
        for step, loss in zip(story.curves.steps, losses, strict=True)
    ]
    marks = [
        {"step": step, "learnt": f"{name} learnt", "value": story.learnt_loss}
        for name, step in _learnt(story, digit).items()
    ]
    if not labelled:
        y = y.title(None)
    x = alt.X("step:Q", title="step").axis(tickCount=4)
    lines = series("curve", CURVES, by="dash")
    learnt = series("learnt", LEARNT, by="shape")
    # A channel of their own keeps the key of the symbols apart from the key of the lines.
    learnt["stroke"] = alt.Stroke(**learnt.pop("color").to_dict())
    return alt.layer(
        alt.Chart(data([{"value": story.learnt_loss}]))
        .mark_rule(strokeDash=[4, 3], strokeWidth=0.7)
        .encode(y=y),
        alt.Chart(data(points)).mark_line(strokeWidth=1.4).encode(x=x, y=y, **lines),
        alt.Chart(data(marks))
        .mark_point(size=45, opacity=1, strokeWidth=1.5)
        .encode(x=x, y=y, **learnt),
    ).properties(width=172, height=140, title=digit)


def _told(story: TrainingStory) -> str:
    """When everything was learnt, in words."""
    told = [
        f"{digit.digit} {', '.join(f'{n} {step:,}' for n, step in steps.items())}"
        for digit in story.digits
        if (steps := _learnt(story, digit.digit))
    ]
    return f"Learnt at step: {'; '.join(told)}." if told else "Nothing was learnt."
