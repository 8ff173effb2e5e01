"""Many runs for a reader: a page that compares them, an index of a directory, and a sweep's pages.

In: the shelves of runs, and a `Sweep`. Out: pages; of a sweep also its tables in Markdown.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from urllib.parse import quote

from carryscope.core.storage import write_bytes
from carryscope.core.words import between, brief, counted, percent, with_interval
from carryscope.report.markdown import as_text, markdown
from carryscope.report.page import REPORT_FILE, Page, page_of
from carryscope.report.parts import Facts, Note, Part, Picture, Section, Text
from carryscope.report.sections.verdict import headline, proved
from carryscope.report.shelf import Shelf
from carryscope.report.tables import Cell, Table
from carryscope.sweeps import figures
from carryscope.sweeps.finding import Spread, Sweep
from carryscope.sweeps.seeds import AGREEMENT, ALIKE, LOSSES
from carryscope.training.presets import changes
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
    index = Section("runs", "The runs", "Runs", [_runs(shelves, place)])
    return page_of(title, "carryscope compare", [index, *comparison(shelves)])


def index_page(shelves: Sequence[Shelf], place: Path) -> Page:
    """A directory of runs, from which each report opens."""
    title = f"{counted(len(shelves), 'run').capitalize()} in {place.name or place.resolve().name}"
    index = Section("runs", "The runs", "Runs", [_runs(shelves, place)])
    return page_of(title, "carryscope runs", [index])


def comparison(shelves: Sequence[Shelf]) -> list[Section]:
    """Figures that lay runs over each other, as far as there are findings for them."""
    bodies = {
        "losses": ("How they learnt", any(one.story for one in shelves)),
        "failures": ("Where they fail", any(one.risk for one in shelves)),
        "staircases": ("How they add", any(one.dissection for one in shelves)),
    }
    return [
        Section(name, title, title, [Picture(name, partial(getattr(figures, name), shelves))])
        for name, (title, known) in bodies.items()
        if known
    ]


def _runs(shelves: Sequence[Shelf], place: Path) -> Table:
    """A line for each run: what it is, how well it adds, what is proved."""
    return Table.of(
        "runs",
        "",
        shelves,
        {
            "run": lambda one: _linked(one, place),
            "verdict": headline,
            "recipe": lambda one: one.config.preset or "imported",
            "layers": lambda one: str(one.config.model.layers),
            "heads": lambda one: str(one.config.model.heads),
            "digits": lambda one: str(one.config.model.digits),
            "wrong answers": lambda one: (
                with_interval(one.risk.teacher_forced) if one.risk is not None else "not measured"
            ),
            "proved": lambda one: proved(one) or "nothing",
        },
        "A name opens the report of its run, if it was written.",
        text=["recipe"],
        prose=["verdict", "proved"],
    )


def _linked(shelf: Shelf, place: Path) -> str:
    """The name of a run, as a link to its report if there is one."""
    report = Path(shelf.where) / REPORT_FILE
    if not report.exists():
        return shelf.name
    near = Path(os.path.relpath(report.resolve(), place.resolve()))
    return Cell(shelf.name, link=f"./{quote(near.as_posix())}")


# A sweep


def write_pages(found: Sweep, shelves: Sequence[Shelf], directory: Path) -> None:
    """Write both files next to the runs."""
    write_bytes(directory / TABLES_FILE, sweep_tables(found).encode())
    sweep_page(found, shelves).save(directory / PAGE_FILE)


def sweep_page(found: Sweep, shelves: Sequence[Shelf]) -> Page:
    """The tables of a sweep, and its seeds over each other."""
    answer, *rest = sections(found)
    return page_of(question(found), "carryscope sweep", [answer, *comparison(shelves), *rest])


def sweep_tables(found: Sweep) -> str:
    """The page without its pictures, in Markdown."""
    return f"# {as_text(question(found))}\n\n{markdown(sections(found))}\n"


def question(found: Sweep) -> str:
    """The title of the page."""
    name = found.recipe.preset or "a recipe of its own"
    return f"{counted(len(found.results), 'seed').capitalize()} of {name}: the same algorithm?"


def sections(found: Sweep) -> list[Section]:
    """What the seeds have in common, seed by seed, and how that was found."""
    parts: dict[str, tuple[str, list[Part]]] = {
        "answer": ("What the seeds have in common", summary_parts(found)),
        "numbers": ("How well they add", [_spreads(found)] if found.results else []),
        "seeds": ("Seed by seed", [_seeds(found)] if found.results else []),
        "method": ("How this was made", [_method(found)]),
    }
    return [Section(name, title, title, body) for name, (title, body) in parts.items() if body]


def summary_parts(found: Sweep) -> list[Part]:
    """What the sweep found, for the top of the page and for a terminal."""
    notes = [f"Seed {one.seed} failed {one.tried} times: {one.reason}" for one in found.failures]
    return [
        Text(found.statement, lead=True),
        *([_held(found)] if found.results else []),
        *(Note(note, "Failed") for note in notes),
    ]


def _held(found: Sweep) -> Table:
    """Properties, and the seeds that have them."""
    return Table.of(
        "held",
        "What holds in how many seeds",
        [one for one in found.properties if one.share.of],
        {
            "holds": lambda one: one.name,
            "seeds": lambda one: f"{one.share.count} of {one.share.of}",
            "95 % interval": lambda one: between(one.share),
        },
    )


def _spreads(found: Sweep) -> Table:
    """Numbers over the seeds, and wrong digits by look-ahead."""
    return Table.of(
        "spreads",
        "The numbers",
        found.numbers,
        {
            "number": lambda one: one.name,
            "median": lambda one: _value(one.name, one.median),
            "95 % interval of the median": _of_median,
            "range over seeds": lambda one: _ends(one.name, one.least, one.most),
        },
        "Ranges are those of the seeds' estimates. Few questions have four nines or more below a "
        "digit, so there the range is mostly chance.",
    )


def _seeds(found: Sweep) -> Table:
    return Table.of(
        "seeds",
        "The seeds",
        found.results,
        {
            "seed": lambda one: Cell(str(one.seed), link=f"./seed-{one.seed}/{REPORT_FILE}"),
            LOSSES[0]: lambda one: _value(LOSSES[0], one.numbers[LOSSES[0]]),
            "wrong answers": lambda one: with_interval(one.failure),
            AGREEMENT: lambda one: percent(one.numbers[AGREEMENT]),
            ALIKE: lambda one: percent(one.numbers[ALIKE]) if ALIKE in one.numbers else "no errors",
            "agrees best with": lambda one: one.algorithm,
            "staircase": lambda one: one.staircase,
            "heads read": lambda one: one.roles,
        },
        "Staircase, heads and sub-tasks from `carryscope dissect`, wrong answers over all "
        "questions from `carryscope risk`, agreement from `carryscope faithful`.",
        text=["agrees best with", "staircase"],
        prose=["heads read"],
    )


def _method(found: Sweep) -> Facts:
    model, training = found.recipe.model, found.recipe.training
    assert training is not None
    name = found.recipe.preset or "its own"
    changed = f" ({'; '.join(differing)})" if (differing := changes(found.recipe)) else ""
    where = f", on {found.machine}" if found.machine else ""
    return Facts(
        {
            "Recipe": f"{name}{changed}; {training.steps:,} steps",
            "Model": f"{model.digits} digits, {model.layers} layers, {model.heads} heads, d_model "
            f"{model.d_model}, {model.format} format",
            "Seeds": ", ".join(map(str, found.seeds)),
            "Command": f"carryscope sweep --preset {found.recipe.preset} --seeds "
            f"{','.join(map(str, found.seeds))} --out DIR",
            "Version": f"carryscope {found.package_version}{where}",
            "Intervals": "95 %. Those of a seed are over questions. Those of a share of seeds "
            "(Wilson) and of a median (by order) are over seeds.",
            "Thresholds": THRESHOLDS,
        }
    )


def _value(name: str, value: float) -> str:
    return f"{value:.4f}" if name in LOSSES else percent(value)


def _ends(name: str, low: float, high: float) -> str:
    return f"{_value(name, low)} to {_value(name, high)}"


def _of_median(spread: Spread) -> str:
    if spread.low is None or spread.high is None:
        return "too few seeds"
    return _ends(spread.name, spread.low, spread.high)
