"""The page of the reproduction, `paper/README.md`: everything on it follows from the records.

In: the records of draws. Out: the page, a strip of dots for each claim, and the sentence that the
project's README quotes. The page of a smoke test says so first and has no verdicts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from carryscope.core.storage import write_bytes
from carryscope.core.words import listed
from carryscope.report.figures.canvas import BLACK, GREY, Canvas
from carryscope.report.figures.figure import Figure
from carryscope.report.figures.plot import BLUE, GREEN, Axis, Plot
from carryscope.training.presets import preset
from paper.claims import (
    Claim,
    DrawRecord,
    Judged,
    Value,
    Verdict,
    authors_seed,
    frozen,
    judge,
    planned,
)
from paper.printed import NUMBERS, placed, table_2
from paper.study import page

PAGE = "README.md"

MARK = "<!-- claims -->\n> "
"""What stands before the sentence in the project's README."""


def pages(records: Sequence[DrawRecord]) -> dict[str, str]:
    """Judge the records; the page and its strips."""
    judged = judge(records)
    text = page(
        PAGE,
        quick=any(draw.steps < preset(draw.recipe).training.steps for draw in records),
        sentence=sentence(judged),
        judged=judged,
        planned=planned,
        open=Verdict.OPEN,
        recipes=list(recipes(records)),
        numbers=list(placed(NUMBERS, records)),
        readings=[list(placed(table_2(token_order=order), records)) for order in (False, True)],
    )
    drawn = [one for one in judged if one.fresh or one.authors]
    return {PAGE: text, **{f"strips/{one.claim.id}.svg": strip(one).svg() for one in drawn}}


def sentence(judged: Sequence[Judged]) -> str:
    """The result in a sentence."""
    counts = Counter(one.verdict for one in judged)
    found = [f"{counts[v]} {'is' if counts[v] == 1 else 'are'} {v}" for v in Verdict if counts[v]]
    fresh = {(v.recipe, v.seed) for one in judged for v in one.fresh}
    total = sum(map(len, frozen().seeds.values()))
    return (
        f"Of {len(judged)} claims of the paper, {listed(found)}, on {len(fresh)} of {total} "
        "planned draws."
    )


def quote(readme: Path, text: str) -> None:
    """Put the sentence into the project's README."""
    old = readme.read_text()
    new = re.sub(rf"(?<={re.escape(MARK)}).*", lambda _: text, old)
    if new != old:
        write_bytes(readme, new.encode())


class Recipe(NamedTuple):
    """A recipe and its draws."""

    name: str
    planned: int
    fresh: list[DrawRecord]
    circuits: list[tuple[str, int]]
    """What the heads of fresh draws read, and how many draws end so."""
    authors: DrawRecord | None


def recipes(records: Sequence[DrawRecord]) -> Iterator[Recipe]:
    """Each recipe, with the circuits that its draws ended with."""
    for recipe, seeds in frozen().seeds.items():
        own = {record.seed: record for record in records if record.recipe == recipe}
        fresh = [own[seed] for seed in seeds if seed in own]
        circuits = Counter(", ".join(record.heads) for record in fresh).most_common()
        yield Recipe(recipe, len(seeds), fresh, circuits, own.get(authors_seed(recipe)))


WIDTH, DOT = 560.0, 9.0
"""Width of a strip, and the room of a dot, in pixels."""

LIMIT = "#888888"
"""The colour of the line at the limit of the rule."""

CIRCUITS = {"three columns read": GREEN, "two": BLUE, "one or none": BLACK}
"""What the heads of a draw read."""


def strip(judged: Judged) -> Figure:
    """The numbers of all draws of a claim, with the limit of its rule."""
    claim, share, canvas = judged.claim, judged.share, Canvas()
    low, high = _ends(claim, [*judged.fresh, *judged.authors])
    dots = _stacked(judged, low, high)
    height = DOT * max(2, 1 + max((level for _, level, *_ in dots), default=0))
    names = (claim.estimand.replace("_", " "), "")
    plot = Plot(canvas, (0.0, 0.0), (WIDTH, height), Axis.linear(low, high), None, names=names)
    limit = plot.x(claim.limit)
    canvas.line(f"M{limit:.1f},{plot.top} v{height}", stroke=LIMIT, width=2.0)
    for at, level, colour, authors in dots:
        x, y = plot.x(at), plot.top + height - DOT * (level + 0.5)
        _dot(canvas, x, y, colour, authors=authors)
    for i, (name, colour) in enumerate([*CIRCUITS.items(), ("authors' draw", GREY)]):
        _dot(canvas, WIDTH + 16, 6.0 + 14 * i, colour, authors=i == len(CIRCUITS))
        canvas.text(WIDTH + 26, 6.0 + 14 * i, name, anchor="start")
    return Figure(
        canvas,
        claim.title,
        f"A dot for each draw. It holds in {share.count} of {share.of} fresh draws.",
        f"Holds if {claim.rule} {claim.limit:g} (grey line).",
    )


def _dot(canvas: Canvas, x: float, y: float, colour: str, *, authors: bool) -> None:
    """A circle; a diamond for the authors' own draw."""
    if authors:
        canvas.line("M0,0", stroke=colour, end=f"M{x:.1f},{y - 6:.1f} l6,6 -6,6 -6,-6 z")
    else:
        canvas.box(x - 4, y - 4, 8.0, 8.0, fill=colour, opacity=0.85, radius=4.0)


def _ends(claim: Claim, values: Sequence[Value]) -> tuple[float, float]:
    """The ends of the axis: all values and the limit, with a margin."""
    known = [claim.limit, *(value.value for value in values if value.value is not None)]
    room = (max(known) - min(known) or 1.0) / 12
    return min(known) - room, max(known) + room


def _stacked(judged: Judged, low: float, high: float) -> list[tuple[float, int, str, bool]]:
    """For each dot its value, level and colour, and whether it is the authors'; none hides another.

    A draw without a value stands at the end of the axis where the claim fails.
    """
    fails_at = high if judged.claim.rule in ("below", "at most") else low
    heights: Counter[int] = Counter()
    dots = []
    drawn = [(value, False) for value in judged.fresh] + [(value, True) for value in judged.authors]
    for value, authors in drawn:
        at = fails_at if value.value is None else value.value
        cell = round((at - low) / (high - low) * WIDTH / DOT)
        colour = list(CIRCUITS.values())[min(2, 3 - value.columns)]
        dots.append((at, heights[cell], colour, authors))
        heights[cell] += 1
    return dots
