"""How a training went: the loss of each answer digit, task by task, and its three phases.

In: the story of a training. Out: figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt

from carryscope.core.errors import CallError
from carryscope.dissection.story import TrainingStory
from carryscope.report.figures.drawing import (
    BLACK,
    COLOURS,
    DASHES,
    LEAST_LOSS,
    PAGE,
    SAYS,
    TIP,
    Record,
    data,
    loss_axis,
    names_down,
    series,
)
from carryscope.report.figures.figure import AnyChart, Figure

Scale = Literal["log", "linear"]

CURVES = ["all", "BA", "UC1", "US9"]
"""The curves of a digit: all its questions, and those of each task."""

LEARNT = [f"{name} learnt" for name in CURVES]

PHASES = {"1 memorisation": "#f7f7f7", "2 discovery": "#a6cee3", "3 clean-up": "#deebf7"}
"""The paper's three phases, each with a shade that differs from its neighbour's."""

POINTED = 7
"""Width of what one points at to read a step, in pixels: no gap between a hundred steps."""

SIDE_BY_SIDE = 3

Losses = Sequence[float | None]


def digit_curves(story: TrainingStory, scale: Scale = "log") -> Figure:
    """The loss of every answer digit in one chart, as the paper draws it first."""
    curves, names = story.curves.digit_loss, [digit.digit for digit in story.digits]
    lines = {name: curves[name] for name in names}
    y = _axis(scale, [x for losses in lines.values() for x in losses if x is not None])
    legend = alt.Legend(title=None, orient="right", symbolSize=250, symbolStrokeWidth=2)
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(names))]
    dashes = [DASHES[(i + i // len(DASHES)) % len(DASHES)] for i in range(len(names))]
    colour = alt.Color("curve:N", scale=alt.Scale(domain=names, range=colours), legend=legend)
    dash = alt.StrokeDash("curve:N", scale=alt.Scale(domain=names, range=dashes), legend=legend)
    whole = alt.Scale(domain=[0, story.steps], nice=False)
    x = alt.X("step:Q", title="step", scale=whole).axis(tickCount=8)
    chart = alt.layer(
        _threshold(story, y),
        alt.Chart(data(_points(story, lines)))
        .mark_line(strokeWidth=1.6)
        .encode(x=x, y=y, color=colour, strokeDash=dash),
        _pointed(story, lines, x),
    )
    return Figure(
        chart.properties(width=PAGE - 110, height=250),
        "Training loss of each answer digit",
        "A line chart: the loss of each answer digit over the training steps. "
        f"{' '.join(story.statements[:1])}",
        f"Means over {story.curves.window} steps, teacher-forced, on the recipe's own questions. "
        f"Dashed line: {story.learnt_loss:.2f}, below which a loss counts as learnt.",
    )


def task_curves(story: TrainingStory, scale: Scale = "log") -> Figure:
    """The loss of each answer digit by task, with the step at which each was learnt."""
    curves = {digit.digit: _curves(story, digit.digit) for digit in story.digits}
    losses = [x for of in curves.values() for curve in of.values() for x in curve if x is not None]
    axis = _axis(scale, losses)
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


def phases(story: TrainingStory) -> Figure:
    """The paper's three phases of each digit, and the order in which its tasks were learnt."""
    names = [digit.digit for digit in story.digits]
    spans = [span for name in names for span in _spans(story, name)]
    y = names_down("digit", names, padding=0.35)
    x = alt.X("start:Q", title="step", scale=alt.Scale(domain=[0, story.steps], nice=False))
    fill = alt.Fill(
        "phase:N",
        scale=alt.Scale(domain=list(PHASES), range=list(PHASES.values())),
        legend=alt.Legend(title=None, orient="bottom"),
    )
    learnt = [
        {"digit": digit, "learnt": f"{name} learnt", "step": step, TIP: _tip(digit, name, step)}
        for digit in names
        for name, step in _learnt(story, digit).items()
    ]
    bars = alt.Chart(data(spans)).mark_bar(stroke=BLACK, strokeWidth=0.6)
    marks = alt.Chart(data(learnt)).mark_point(filled=False, size=60, opacity=1, strokeWidth=1.6)
    chart = alt.layer(
        bars.encode(x=x, x2="end:Q", y=y, fill=fill, description=SAYS),
        marks.encode(x=alt.X("step:Q"), y=y, description=SAYS, **_learnt_look()),
    )
    return Figure(
        chart.properties(width=PAGE - 60, height=26 * len(names)),
        "Three phases, and when each task was learnt",
        "Bars, one for each answer digit, parted into memorisation, discovery and clean-up, with "
        f"symbols at the steps where its tasks were learnt. {' '.join(story.statements)}",
        "Discovery is the fall of the loss from 90 % to 10 % of its early level. Symbols: the step "
        f"from which a loss stays below {story.learnt_loss:.2f}.",
    )


def _spans(story: TrainingStory, name: str) -> list[Record]:
    digit = next(digit for digit in story.digits if digit.digit == name)
    begin, end = digit.discovery_from or story.steps, digit.clean_up_from or story.steps
    edges = [0, begin, max(begin, end), story.steps]
    return [
        {
            "digit": name,
            "phase": phase,
            "start": start,
            "end": stop,
            TIP: f"{name}, phase {phase}: steps {start:,} to {stop:,}",
        }
        for phase, start, stop in zip(PHASES, edges, edges[1:], strict=False)
        if stop > start
    ]


def _tip(digit: str, name: str, step: int) -> str:
    what = "all questions" if name == CURVES[0] else name
    return f"{digit}, {what}: learnt at step {step:,}"


def _learnt_look() -> dict[str, Any]:
    look = series("learnt", LEARNT, by="shape")
    # A channel of their own keeps the key of the symbols apart from the key of lines and bars.
    look["stroke"] = alt.Stroke(**look.pop("color").to_dict())
    return look


def check_scale(scale: str) -> None:
    """Refuse an axis that is neither logarithmic nor linear."""
    if scale not in ("log", "linear"):
        raise CallError(f"A scale is 'log' or 'linear'. Got '{scale}'.")


def _axis(scale: str, losses: list[float]) -> alt.Y:
    check_scale(scale)
    if scale == "log":
        return loss_axis(alt.Y, min(losses), max(losses))
    axis = alt.Y("value:Q", title="loss").axis(grid=True, tickCount=5)
    return axis.scale(domain=[0, max(losses)])


def _curves(story: TrainingStory, digit: str) -> dict[str, Losses]:
    return {CURVES[0]: story.curves.digit_loss[digit], **story.curves.task_loss.get(digit, {})}


def _learnt(story: TrainingStory, digit: str) -> dict[str, int]:
    """The step at which each curve of a digit was learnt, for those that were."""
    steps = {CURVES[0]: next(d.learnt_at for d in story.digits if d.digit == digit)}
    steps |= {pair.task: pair.learnt_at for pair in story.pairs if pair.digit == digit}
    return {name: step for name, step in steps.items() if step is not None}


def _points(story: TrainingStory, curves: Mapping[str, Losses]) -> list[Record]:
    return [
        {"step": step, "curve": name, "value": None if loss is None else max(loss, LEAST_LOSS)}
        for name, losses in curves.items()
        for step, loss in zip(story.curves.steps, losses, strict=True)
    ]


def _threshold(story: TrainingStory, y: alt.Y) -> alt.Chart:
    rule = alt.Chart(data([{"value": story.learnt_loss}]))
    drawn: alt.Chart = rule.mark_rule(strokeDash=[4, 3], strokeWidth=0.7).encode(y=y)
    return drawn


def _pointed(story: TrainingStory, curves: Mapping[str, Losses], x: alt.X) -> alt.Chart:
    """One unseen line for each step, so that one can point at a step and read all its losses."""
    records = []
    for i, step in enumerate(story.curves.steps):
        here = {name: losses[i] for name, losses in curves.items()}
        told = ", ".join(f"{name} {loss:.4f}" for name, loss in here.items() if loss is not None)
        records.append({"step": step, **here, TIP: f"step {step:,}: {told}"})
    rules = alt.Chart(data(records)).mark_rule(strokeWidth=POINTED, opacity=0)
    drawn: alt.Chart = rules.encode(x=x, description=SAYS)
    return drawn


def _panel(
    story: TrainingStory, digit: str, curves: dict[str, Losses], y: alt.Y, *, labelled: bool
) -> AnyChart:
    marks = [
        {"step": step, "learnt": f"{name} learnt", "value": story.learnt_loss}
        for name, step in _learnt(story, digit).items()
    ]
    if not labelled:
        y = y.title(None)
    x = alt.X("step:Q", title="step").axis(tickCount=4)
    lines = series("curve", CURVES, by="dash")
    return alt.layer(
        _threshold(story, y),
        alt.Chart(data(_points(story, curves)))
        .mark_line(strokeWidth=1.4)
        .encode(x=x, y=y, **lines),
        alt.Chart(data(marks))
        .mark_point(size=45, opacity=1, strokeWidth=1.5)
        .encode(x=x, y=y, **_learnt_look()),
        _pointed(story, curves, x),
    ).properties(width=172, height=140, title=digit)


def _told(story: TrainingStory) -> str:
    """When everything was learnt, in words."""
    told = [
        f"{digit.digit} {', '.join(f'{n} {step:,}' for n, step in steps.items())}"
        for digit in story.digits
        if (steps := _learnt(story, digit.digit))
    ]
    return f"Learnt at step: {'; '.join(told)}." if told else "Nothing was learnt."
