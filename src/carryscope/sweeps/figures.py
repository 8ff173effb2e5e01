"""Many runs in one figure: small staircases, lines of failures, curves of losses.

In: the shelves of runs. Out: figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from carryscope.core.words import brief, with_interval
from carryscope.dissection.attention import AttentionFinding, role_name
from carryscope.report.figures.canvas import GREY, HEADS, Canvas
from carryscope.report.figures.figure import Figure
from carryscope.report.figures.plot import LEAST, Axis, Plot, legend, look_of
from carryscope.report.shelf import Shelf
from carryscope.sweeps.seeds import look_ahead, pooled

ACROSS, STEP = 660.0, 15.0
"""Width that the panels share, and the size of a step of a small staircase, in pixels."""

ROLES = [role_name(offset) for offset in range(len(HEADS))]
"""What heads read; each of it has the colour of the head with its number."""


def staircases(shelves: Sequence[Shelf]) -> Figure:
    """What each head reads at each answer row, run by run."""
    canvas, x, y, lowest = Canvas(), 0.0, 0.0, 0.0
    seen = [(one, found.attention) for one in shelves if (found := one.dissection) is not None]
    for shelf, finding in seen:
        if finding is None:
            continue
        layout = shelf.config.model.layout
        width = STEP * layout.digits + 40
        if x and x + width > ACROSS:
            x, y = 0.0, lowest + 20
        _staircase(canvas, (x, y), shelf.name, finding, layout.answer_names, layout.digits)
        x, lowest = x + width + 16, max(lowest, canvas.height)
    present = sum(finding is not None and finding.staircase == "present" for _, finding in seen)
    return Figure(
        canvas,
        "What the heads read, run by run",
        "Small panels, one for each run: a row for each answer digit, a column for each pair of "
        f"question digits, and a mark where each head looks most. The double staircase is present "
        f"in {present} of {len(seen)} runs.",
        "A mark for each head and answer row, at the column that gets most of its attention; the "
        f"larger, the more. Colours in order: {', '.join(ROLES[:4])}. Grey: no staircase.",
    )


def _staircase(
    canvas: Canvas,
    corner: tuple[float, float],
    name: str,
    finding: AttentionFinding,
    answers: list[str],
    digits: int,
) -> None:
    left, top = corner[0] + 24, corner[1] + 18
    canvas.text(corner[0], corner[1] + 6, name, anchor="start", size=11.0, weight="bold")
    canvas.box(left, top, STEP * digits, STEP * len(answers), stroke="#bbbbbb")
    for i, answer in enumerate(answers):
        canvas.text(left - 4, top + STEP * (i + 0.5), answer, ink=GREY, anchor="end", size=8.0)
    for column in range(digits):
        x = left + STEP * (digits - column - 0.5)
        canvas.text(x, top + STEP * len(answers) + 7, f"D{column}", ink=GREY, size=8.0)
    roles = {(head.layer, head.head): head.role for head in finding.heads}
    for reading in finding.readings:
        role, share = roles[reading.layer, reading.head], reading.share.estimate
        fill = HEADS[ROLES.index(role)] if role in ROLES else "#bbbbbb"
        x = left + STEP * (digits - reading.top_column - 0.5)
        y, r = top + STEP * (answers.index(reading.answer) + 0.5), 1.5 + 5 * share
        tip = f"{name}, H{reading.head} at {reading.answer}: column {reading.top_column} gets "
        tip += f"{brief(share)} of its attention"
        canvas.box(x - r, y - r, 2 * r, 2 * r, fill=fill, opacity=0.85, radius=r, tip=tip)
        told = {"run": name, "head": reading.head, "answer": reading.answer}
        canvas.records.append({**told, "column": reading.top_column, "share": round(share, 4)})


def failures(shelves: Sequence[Shelf]) -> Figure:
    """Wrong digits by the nines below them, a line for each run and a thick one for the median."""
    canvas = Canvas()
    cases = {shelf.name: pooled(shelf.risk) for shelf in shelves if shelf.risk is not None}
    every = [case for found in cases.values() for case in found]
    deepest = max((case.depth for case in every), default=0)
    up = Axis.logarithmic(max(case.wrong.estimate, LEAST) for case in every)
    across = Axis(-0.3, deepest + 0.3, list(range(deepest + 1)))
    for i, carrying in enumerate((True, False)):
        plot = Plot(
            canvas,
            (i * (ACROSS / 2 + 20), 0.0),
            (ACROSS / 2 - 60, 220.0),
            across,
            up,
            "a carry arrives" if carrying else "no carry arrives",
            ("nines below", "wrong digits"),
        )
        at: dict[int, list[float]] = {}
        for line, (name, found) in enumerate(cases.items()):
            chosen = [case for case in found if case.carrying is carrying]
            colour, dash = look_of(line)
            plot.line([(case.depth, case.wrong.estimate) for case in chosen], colour, dash, 1.0)
            for case in chosen:
                at.setdefault(case.depth, []).append(case.wrong.estimate)
                tip = f"{name}, {look_ahead(case)}: {with_interval(case.wrong)} wrong"
                plot.dot(case.depth, case.wrong.estimate, colour, tip)
                told = {"run": name, "nines": case.depth, "carrying": carrying}
                canvas.records.append({**told, "wrong": case.wrong.estimate})
        if len(cases) > 2:
            plot.line([(depth, median(values)) for depth, values in at.items()], width=2.5)
    legend(canvas, list(cases) or ["no run"], (44.0, canvas.height + 6), ACROSS)
    return Figure(
        canvas,
        "Wrong digits by the nines below them",
        "Two charts, a line for each run: the share of digits that are wrong by how many columns "
        "directly below pass a carry on.",
        "Teacher-forced, answer digits at all places together. Where no digit was wrong the line "
        "ends at the bottom. Thick: the median.",
    )


def losses(shelves: Sequence[Shelf]) -> Figure:
    """The training loss of each run over its steps."""
    canvas = Canvas()
    curves: dict[str, list[tuple[float, float]]] = {}
    for shelf in shelves:
        if shelf.story is not None:
            digits = [v for v in shelf.story.curves.digit_loss.values() if None not in v]
            means = [sum(values) / len(values) for values in zip(*digits, strict=True)]
            curves[shelf.name] = list(zip(shelf.story.curves.steps, means, strict=True))
    points = [point for curve in curves.values() for point in curve]
    steps = Axis.linear(0, max((step for step, _ in points), default=1))
    up = Axis.logarithmic(loss for _, loss in points)
    plot = Plot(canvas, (0.0, 0.0), (ACROSS - 60, 240.0), steps, up, names=("step", "loss"))
    for line, (name, curve) in enumerate(curves.items()):
        plot.line(curve, *look_of(line))
        for step, loss in curve:
            canvas.records.append({"run": name, "step": step, "loss": loss})
    legend(canvas, list(curves) or ["no run"], (44.0, canvas.height + 6), ACROSS)
    return Figure(
        canvas,
        "Training loss",
        f"A line chart: the training loss of {len(curves)} runs over their steps.",
        "Mean over all answer digits, on each recipe's own questions.",
    )
