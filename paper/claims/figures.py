"""The paper's figures and ours, in Markdown.

In: the shelves of runs by name. Out: `figures.md`, and the pictures it shows, drawn from findings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from carryscope.core.errors import CallError
from carryscope.report.figures.catalogue import figure
from carryscope.report.markdown import as_text
from carryscope.report.shelf import Shelf

FIGURES_PAGE = "figures.md"


@dataclass(frozen=True)
class Shown:
    """One figure of the paper, or a few that show the same, and our figures of it."""

    where: str
    paper: str
    """What the paper's figure shows, in our words."""
    ours: Mapping[str, Sequence[str]]
    """Figures by the run they are drawn from."""


FIVE, TEN, FIFTEEN, LONG, REUSE = "paper-5", "paper-10", "paper-15", "paper-5-long", "reuse-5"

SHOWN = (
    Shown("Fig. 1 and 9", "How an answer digit is calculated.", {LONG: ["circuit"]}),
    Shown(
        "Fig. 2 and 13 to 15",
        "The training loss of each answer digit, for 5, 10 and 15 digits.",
        {run: ["digits"] for run in (FIVE, LONG, TEN, FIFTEEN)},
    ),
    Shown(
        "Fig. 4 and 16 to 18",
        "Where three heads look, for 5, 10 and 15 digits: the double staircase.",
        {run: ["staircase"] for run in (LONG, TEN, FIFTEEN)},
    ),
    Shown(
        "Fig. 5",
        "Which tasks each digit needs, and in which order they should be found.",
        {FIVE: ["framework"]},
    ),
    Shown(
        "Fig. 6 to 8, 19 and 20",
        "The training loss of each digit on BA, UC1 and US9, and its phases.",
        {FIVE: ["learning", "phases"]},
    ),
    Shown(
        "Fig. 10 to 12",
        "Where two, three and four heads look, after 5,000 steps each.",
        {run: ["staircase"] for run in ("paper-5-heads-2", FIVE, "paper-5-heads-4")},
    ),
    Shown(
        "Fig. 22 to 26",
        "The reuse model: what each node is for, and the questions that fail without it.",
        {REUSE: ["nodes", "circuit"]},
    ),
    Shown(
        "Not in the paper",
        "Questions that the paper leaves open: how A5 and A4 find their carry, whether the key "
        "decides a digit, which edges of attention are used, where the model fails, and whether a "
        "stated algorithm predicts it.",
        {LONG: ["carries", "keys", "edges", "depth", "agreement"]},
    ),
)
"""All figures of the paper but 3 and 21, which only name the tokens."""


def figures_markdown(shelves: Mapping[str, Shelf], directory: Path, *, note: str = "") -> str:
    """The page. The figures of the runs that there are, are drawn in the directory."""
    parts = [
        "# The paper's figures and ours",
        *filter(None, [note]),
        "Drawn from the findings of each run. The numbers of heads mean nothing between seeds, so "
        "each caption says what they read. `carryscope report` has all figures of a run.",
    ]
    for shown in SHOWN:
        pictures = [
            picture
            for run, names in shown.ours.items()
            if run in shelves
            for name in names
            if (picture := _drawn(shelves[run], run, name, directory))
        ]
        if pictures:
            parts += [f"## {shown.where}", shown.paper, *pictures]
    return "\n\n".join(parts) + "\n"


def _drawn(shelf: Shelf, run: str, name: str, directory: Path) -> str:
    """A picture with its caption; nothing if what it needs was not found."""
    try:
        drawn = figure(name, shelf)
    except CallError:
        return ""
    file = Path(run) / "figures" / f"{name}.svg"
    drawn.save(directory / file)
    return f"![{as_text(drawn.title)}]({file.as_posix()})\n\n`{run}`: {as_text(drawn.description)}"
