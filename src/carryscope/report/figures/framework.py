"""The paper's framework as a graph: what each task unlocks, and what must be learnt before it.

In: a number of digits. Out: a figure. Columns are answer digits as they are written, A5 to A0;
downwards stand BA, UC1, and US9 by the number of nines that the carry came through.
"""

from __future__ import annotations

import math

import altair as alt

from carryscope.report.figures.drawing import BLACK, PAGE, SAYS, TIP, Record, data, pixels
from carryscope.report.figures.figure import Figure
from carryscope.task.columns import Task
from carryscope.task.framework import DigitTask, Discovery, framework

BOX_HEIGHT, STOREY = 34.0, 66.0
"""Height of a box, and from one box to the one below it, in pixels."""

HEADING, MARGIN = 30.0, 80.0
"""Room for the names of digits above, and for the names of tasks on the left."""

CHAIN, PLAIN = "#08519c", "#deebf7"
"""Fill of the boxes on the chain of 99999+1, and of the others."""


def framework_graph(digits: int) -> Figure:
    """What each task unlocks, what it needs, and the chain of 99999+1."""
    found = framework(digits)
    place = _Places(digits)
    boxes = [_box(discovery, place) for discovery in found]
    links = [
        _link(need, discovery.learnt, place) for discovery in found for need in discovery.needs
    ]
    chart = alt.layer(*_arrows(links), *_boxes(boxes), _names(place))
    hardest = f"{'9' * digits}+1"
    return Figure(
        chart.properties(width=place.width, height=place.height, view=alt.ViewConfig(stroke=None)),
        f"What must be learnt before what: {digits}-digit addition",
        f"A graph of boxes, a column for each answer digit. {_told(found)} The chain of "
        f"{hardest} runs through {', '.join(n.name for n in _chain(found))}.",
        "In each box, the share of uniform questions on which the digit becomes right by this "
        f"task. Arrows: learnt before. Dark boxes, thick arrows: the chain of {hardest}.",
    )


class _Places:
    """Where things stand, in pixels."""

    def __init__(self, digits: int) -> None:
        self.digits = digits
        self.column = max(66.0, (PAGE - MARGIN) / (digits + 1))
        self.box = min(84.0, self.column - 10)
        self.width = MARGIN + self.column * (digits + 1)
        self.height = HEADING + STOREY * digits + BOX_HEIGHT + 4

    def x(self, digit: int) -> float:
        return MARGIN + self.column * (self.digits - digit + 0.5)

    def y(self, node: DigitTask) -> float:
        return self.storey(0 if node.task is Task.BA else 1 + node.depth)

    def storey(self, level: int) -> float:
        return HEADING + BOX_HEIGHT / 2 + STOREY * level


def _in_chain(node: DigitTask) -> bool:
    """Whether 99999+1 needs the task: its carry is made at column 0 and passed on ever since."""
    return node.task is not Task.BA and node.depth == node.digit - 1


def _chain(found: tuple[Discovery, ...]) -> list[DigitTask]:
    return [discovery.learnt for discovery in found if _in_chain(discovery.learnt)]


def _box(discovery: Discovery, place: _Places) -> Record:
    node = discovery.learnt
    x, y = place.x(node.digit), place.y(node)
    return {
        "_x": x,
        "_y": y,
        "_left": x - place.box / 2,
        "_right": x + place.box / 2,
        "_top": y - BOX_HEIGHT / 2,
        "_bottom": y + BOX_HEIGHT / 2,
        "digit": f"A{node.digit}",
        "task": node.task.name,
        "depth": node.depth,
        "share": _share(discovery),
        TIP: f"{node.name}: {_share(discovery)} of uniform questions",
        "_fill": CHAIN if _in_chain(node) else PLAIN,
        "_ink": "white" if _in_chain(node) else "black",
    }


def _link(need: DigitTask, node: DigitTask, place: _Places) -> Record:
    """An arrow from what is needed: straight down, or down to the next digit on the left."""
    aside = 0.0 if need.digit == node.digit else place.box / 4
    start = (place.x(need.digit) - aside, place.y(need) + BOX_HEIGHT / 2)
    end = (place.x(node.digit) + aside, place.y(node) - BOX_HEIGHT / 2)
    length = math.dist(start, end)
    back = 5 / length
    angle = 180 - math.degrees(math.atan2(end[0] - start[0], end[1] - start[1]))
    return {
        "x": start[0],
        "y": start[1],
        "x2": end[0] + back * (start[0] - end[0]),
        "y2": end[1] + back * (start[1] - end[1]),
        "angle": angle,
        "wide": 2.5 if _in_chain(need) and _in_chain(node) else 0.8,
    }


def _arrows(links: list[Record]) -> list[alt.Chart]:
    if not links:
        return []
    chart = alt.Chart(data(links))
    return [
        chart.mark_rule(color=BLACK).encode(
            x=pixels("x", alt.X),
            y=pixels("y", alt.Y),
            x2="x2:Q",
            y2="y2:Q",
            strokeWidth=alt.StrokeWidth("wide:Q", scale=None),
        ),
        chart.mark_point(shape="triangle", filled=True, size=70, color=BLACK, opacity=1).encode(
            x=pixels("x2", alt.X),
            y=pixels("y2", alt.Y),
            angle=alt.Angle("angle:Q", scale=None),
        ),
    ]


def _boxes(boxes: list[Record]) -> list[alt.Chart]:
    chart = alt.Chart(data(boxes))
    ink = alt.Color("_ink:N", scale=None)
    centre = {"x": pixels("_x", alt.X), "y": pixels("_y", alt.Y)}
    return [
        chart.mark_rect(stroke=BLACK, cornerRadius=3).encode(
            x=pixels("_left", alt.X),
            x2="_right:Q",
            y=pixels("_top", alt.Y),
            y2="_bottom:Q",
            fill=alt.Fill("_fill:N", scale=None),
            description=SAYS,
        ),
        chart.mark_text(dy=-7, fontWeight="bold").encode(text="task:N", color=ink, **centre),
        chart.mark_text(dy=7, fontSize=10).encode(text="share:N", color=ink, **centre),
    ]


def _names(place: _Places) -> alt.Chart:
    """Digits above, tasks on the left."""
    tasks = ["BA", "UC1", *(f"US9 depth {depth}" for depth in range(1, place.digits))]
    above = [(place.x(k), HEADING / 2 - 3, f"A{k}") for k in range(place.digits + 1)]
    left = [(MARGIN / 2 - 2, place.storey(level), name) for level, name in enumerate(tasks)]
    names = [{"x": x, "y": y, "name": name} for x, y, name in [*above, *left]]
    text = alt.Chart(data(names)).mark_text(fontSize=11)
    drawn: alt.Chart = text.encode(x=pixels("x", alt.X), y=pixels("y", alt.Y), text="name:N")
    return drawn


def _told(found: tuple[Discovery, ...]) -> str:
    """Each box in words."""
    told = [f"{discovery.learnt.name} {_share(discovery)}" for discovery in found]
    return f"Shares of uniform questions: {'; '.join(told)}."


def _share(discovery: Discovery) -> str:
    """The exact share, with all the digits it has."""
    return f"{float(discovery.share * 100):.6g}%"
