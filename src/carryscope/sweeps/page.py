"""Many runs for a reader: a page that compares them, and a sweep's pages.

In: the shelves of runs, and a `Sweep`. Out: pages; of a sweep also its tables in Markdown.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from urllib.parse import quote

from carryscope.core.storage import write_bytes
from carryscope.core.words import between, brief, counted, with_interval
from carryscope.dissection.attention import AttentionFinding
from carryscope.report.figures.canvas import HEADS
from carryscope.report.figures.curves import loss_charts
from carryscope.report.figures.figure import Figure
from carryscope.report.figures.grids import panelled
from carryscope.report.markdown import as_text, markdown
from carryscope.report.page import REPORT_FILE, Page, page_of
from carryscope.report.parts import Facts, Part, Picture, Section, Text
from carryscope.report.sections.method import recipe_options
from carryscope.report.sections.verdict import headline, proved
from carryscope.report.sections.verification import case_cell
from carryscope.report.shelf import Shelf
from carryscope.report.tables import Cell, Table
from carryscope.report.words import look_ahead, shape
from carryscope.shipped import run_directory
from carryscope.sweeps.finding import Sweep, roles_read
from carryscope.task.tokens import Format
from carryscope.verification.cases import pooled
from carryscope.verification.faithfulness import PREDICTS_ANSWERS, PREDICTS_ERRORS
from carryscope.verification.risk_verdict import SAFE, UNSAFE

PAGE_FILE, TABLES_FILE = Path("sweep.html"), Path("sweep.md")

THRESHOLDS = (
    f"A seed agrees with an algorithm if both give the same answer to {brief(PREDICTS_ANSWERS)} of "
    "all questions. An algorithm predicts the errors if, where it or the model is wrong, both give "
    f"the same answer in {brief(PREDICTS_ERRORS)} of cases. It agrees best if it matches more "
    "answers than the runner-up. It is compared with exact addition, with shorter and longer "
    "look-aheads, and with what the dissection found. A double staircase is present if two heads "
    "or more step through the columns at different distances. Digits are safe if they are wrong at "
    f"most 1 time in {1 / SAFE:,.0f}. Cascades fail if some digit is wrong in {brief(UNSAFE)} of "
    "cases or more. All of this holds for the whole 95 % interval, not for the estimate alone."
)
"""What the properties mean."""


def compare_page(shelves: Sequence[Shelf], place: Path) -> Page:
    """Runs over each other. `place` is where the page will stand: links are relative to it."""
    title = f"{counted(len(shelves), 'run').capitalize()} compared"
    return page_of(title, "carryscope compare", [_index(shelves, place), *_compared(shelves)])


def index_page(shelves: Sequence[Shelf], place: Path) -> Page:
    """A directory of runs, from which each report opens."""
    title = f"{counted(len(shelves), 'run').capitalize()} in {place.resolve().name}"
    return page_of(title, "carryscope runs", [_index(shelves, place)])


def _compared(shelves: Sequence[Shelf]) -> list[Section]:
    """Runs over each other, where there are findings for it."""
    parts: dict[str, Picture | Table] = {}
    if any(one.story for one in shelves):
        parts["How they learnt"] = Picture("losses", partial(_losses, shelves))
    if any(one.risk for one in shelves):
        parts["Where they fail"] = _failures(shelves)
    if any(_attention(one) for one in shelves):
        parts["How they add"] = Picture("staircases", partial(_staircases, shelves))
    return [Section(part.name, title, title, [part]) for title, part in parts.items()]


def _failures(shelves: Sequence[Shelf]) -> Table:
    """Wrong digits by the nines below them, a column for each run."""
    cases = [(one.name, case) for one in shelves if one.risk for case in pooled(one.risk.cases)]
    words = next(one.risk.words for one in shelves if one.risk)
    return Table.crossed(
        "failures",
        f"Wrong digits, by the {words.passing_plural} directly below them",
        sorted(cases, key=lambda item: item[1].depth),
        "below",
        row=lambda item: look_ahead(item[1], words),
        column=lambda item: item[0],
        order=[one.name for one in shelves if one.risk],
        cell=lambda item: case_cell(item[1], f"{item[0]}, {look_ahead(item[1], words)}"),
        caption="Teacher-forced, answer digits at all places together. '<': none failed.",
    )


def _index(shelves: Sequence[Shelf], place: Path) -> Section:
    """A line for each run: what it is, how well it adds, what is proved."""
    table = Table.of(
        "runs",
        "",
        shelves,
        {
            "run": lambda one: _linked(one, place),
            "verdict": headline,
            "proved": lambda one: proved(one) or "nothing",
            "wrong answers": lambda one: (
                with_interval(one.risk.teacher_forced) if one.risk is not None else "not measured"
            ),
            "heads read": lambda one: roles_read(found) if (found := _attention(one)) else "",
            "model": lambda one: f"{one.config.preset or 'imported'}: {shape(one.config.model)}",
        },
        "A name opens the report of its run, if it was written.",
        text=["model"],
        prose=["verdict", "proved", "heads read"],
    )
    return Section("runs", "Run by run", "Runs", [table])


def _linked(shelf: Shelf, place: Path) -> str:
    """The name of a run, as a link to its report if there is one."""
    report = run_directory(shelf.where) / REPORT_FILE
    if not report.exists():
        return shelf.name
    near = Path(os.path.relpath(report.resolve(), place.resolve()))
    return Cell(shelf.name, link=f"./{quote(os.fsencode(near.as_posix()))}")


def _attention(shelf: Shelf) -> AttentionFinding | None:
    return shelf.dissection.attention if shelf.dissection is not None else None


def _staircases(shelves: Sequence[Shelf]) -> Figure:
    """Which column each head reads at each answer row, run by run."""
    seen = [(one, found) for one in shelves if (found := _attention(one)) is not None]
    present = sum(finding.staircase == "present" for _, finding in seen)
    return Figure(
        panelled([_reads(one.name, one.config.model.layout, found) for one, found in seen]),
        "What the heads read, run by run",
        "Small panels, one for each run: a row for each answer digit, a column for each pair of "
        "question digits, and in it the heads that read it most. The double staircase is present "
        f"in {present} of {len(seen)} runs.",
        "Numbers are heads, each at the column that gets most of its attention; the stronger, "
        "the more.",
    )


def _reads(name: str, layout: Format, finding: AttentionFinding) -> Table:
    columns = list(reversed(range(layout.digits)))

    def cell(answer: str, column: int) -> Cell:
        here = [r for r in finding.readings if (r.answer, r.top_column) == (answer, column)]
        shares = [f"H{r.head} gives it {brief(r.share.estimate)} of its attention" for r in here]
        return Cell(
            "".join(str(reading.head) for reading in here),
            tone=f"head-{here[0].head % len(HEADS)}" if here else "",
            shade=max((reading.share.estimate for reading in here), default=0.0),
            tip=f"{name}, {answer}, column {column}: {', '.join(shares) or 'no head'}",
        )

    rows = [[answer, *(cell(answer, k) for k in columns)] for answer in layout.answer_names]
    return Table("", name, ["", *(f"D{k}" for k in columns)], rows)


def _losses(shelves: Sequence[Shelf]) -> Figure:
    """The training loss of each run over its steps."""
    curves = {}
    for shelf in shelves:
        if shelf.story is not None:
            digits = [v for v in shelf.story.curves.digit_loss.values() if None not in v]
            means = [sum(values) / len(values) for values in zip(*digits, strict=True)]
            curves[shelf.name] = list(zip(shelf.story.curves.steps, means, strict=True))
    return Figure(
        loss_charts({"": curves}),
        "Training loss",
        f"A line chart: the training loss of {len(curves)} runs over their steps.",
        "Mean over all answer digits, on each recipe's own questions.",
    )


# A sweep


def write_pages(found: Sweep, shelves: Sequence[Shelf], directory: Path) -> None:
    """Write both files next to the runs."""
    write_bytes(directory / TABLES_FILE, sweep_tables(found, shelves, directory).encode())
    sweep_page(found, shelves, directory).save(directory / PAGE_FILE)


def sweep_page(found: Sweep, shelves: Sequence[Shelf], place: Path) -> Page:
    """What the seeds have in common, and the seeds over each other."""
    return page_of(_title(found), "carryscope sweep", _sections(found, shelves, place))


def sweep_tables(found: Sweep, shelves: Sequence[Shelf], place: Path) -> str:
    """The page without its pictures, in Markdown."""
    return f"# {as_text(_title(found))}\n\n{markdown(_sections(found, shelves, place))}\n"


def _title(found: Sweep) -> str:
    name = found.recipe.preset or "a recipe of its own"
    return f"{counted(found.finished, 'seed').capitalize()} of {name}: the same algorithm?"


def _sections(found: Sweep, shelves: Sequence[Shelf], place: Path) -> list[Section]:
    """What the seeds have in common, the seeds over each other, and how that was found."""
    return [
        Section("answer", "What the seeds have in common", "In common", summary_parts(found)),
        *([*_compared(shelves), _index(shelves, place)] if shelves else []),
        Section("method", "How this was made", "Method", [_method(found)]),
    ]


def summary_parts(found: Sweep) -> list[Part]:
    """What the sweep found, for the top of the page and for a terminal."""
    held = Table.of(
        "held",
        "What holds in how many seeds",
        [(name, share) for name, share in found.properties.items() if share.of],
        {
            "holds": lambda item: item[0],
            "seeds": lambda item: f"{item[1].count} of {item[1].of}",
            "95 % interval": lambda item: between(item[1]),
        },
    )
    return [
        Text(found.statement, lead=True),
        *([held] if found.finished else []),
        *(Text(f"Seed {n} failed. {why}", lead=True) for n, why in found.failures.items()),
    ]


def _method(found: Sweep) -> Facts:
    seeds = ",".join(map(str, found.seeds))
    return Facts(
        {
            "Command": f"carryscope sweep {recipe_options(found.recipe, 'seed')} --seeds {seeds} "
            "--out DIR",
            "Version": f"carryscope {found.package_version}, on {found.machine}",
            "Intervals": "95 %. Those of a seed are over questions, those of a share of seeds are "
            "over seeds (Wilson).",
            "Thresholds": THRESHOLDS,
        }
    )
